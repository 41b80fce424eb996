package agentapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// responses is one exchange of the Responses API.
type responses struct{ exchange }

func (a *responses) serve(header http.Header, raw []byte) {
	q, fault := parseResponses(raw)
	q.Key = strings.TrimPrefix(header.Get("Authorization"), "Bearer ")
	r := next(a.exchange, q, fault)
	switch {
	case a.Begin(r.Way):
	case r.Status >= http.StatusBadRequest:
		a.JSON(r.Status, openaiError(r.Status, fault))
	default:
		a.Stream(apiserver.Stream{Events: a.events(q, r)}, r.Way)
	}
}

// parseResponses reads a request. fault is the first rule that it breaks.
func parseResponses(raw []byte) (q Request, fault string) {
	q.Raw = raw
	body, fault := object(raw)
	if fault != "" {
		return q, fault
	}
	q.Model, q.System = text(body, "model"), text(body, "instructions")
	q.Tools = toolNames("", body["tools"])
	input := list(body["input"])
	switch {
	case q.Model == "":
		return q, "Missing required parameter: 'model'."
	case body["stream"] != true:
		return q, "stream must be true"
	case len(input) == 0:
		return q, "input must be a list of items"
	}
	var open []string
	for i, item := range input {
		if fault := q.add(item, &open); fault != "" {
			return q, fmt.Sprintf("Invalid 'input[%d]': %s", i, fault)
		}
	}
	if len(open) > 0 {
		return q, "No tool output found for function call " + open[0] + "."
	}
	return q, ""
}

// add takes an item of the conversation over. open are the calls that have no result yet.
func (q *Request) add(item obj, open *[]string) string {
	id := text(item, "call_id")
	switch kind := text(item, "type"); kind {
	case "message", "":
		return q.message(item)
	case "additional_tools":
		q.Tools = append(q.Tools, toolNames("", item["tools"])...)
	case "reasoning":
	case "function_call", "custom_tool_call":
		if id == "" || slices.Contains(q.ids, id) || text(item, "name") == "" {
			return "a call needs a name and an id of its own"
		}
		q.ids, *open = append(q.ids, id), append(*open, id)
		q.Said = append(q.Said, text(item, "arguments")+text(item, "input"))
	case "function_call_output", "custom_tool_call_output":
		at := slices.Index(*open, id)
		if at < 0 {
			return "No tool call found for function call output with call_id " + id + "."
		}
		*open = slices.Delete(*open, at, at+1)
		q.Said = append(q.Said, texts(item["output"])...)
	default:
		return "Invalid value: '" + kind + "'."
	}
	return ""
}

func (q *Request) message(item obj) string {
	said := texts(item["content"])
	if len(said) == 0 {
		return "a message needs content"
	}
	switch role := text(item, "role"); role {
	case "system", "developer":
		q.System += "\n" + strings.Join(said, "\n")
	case "user", "assistant":
		q.Said = append(q.Said, said...)
	default:
		return "Invalid value: '" + role + "' as role."
	}
	return ""
}

// toolNames returns the names of tools, those of a namespace as NAMESPACE/NAME.
func toolNames(space string, tools any) (names []string) {
	for _, tool := range list(tools) {
		if text(tool, "type") == "namespace" {
			names = append(names, toolNames(text(tool, "name")+"/", tool["tools"])...)
			continue
		}
		if name := text(tool, "name"); name != "" {
			names = append(names, space+name)
		}
	}
	return names
}

// events returns the stream that delivers a reply.
func (a *responses) events(q Request, r Reply) (list []string) {
	id := a.ID("resp_", func(string) bool { return false })
	event := func(kind string, body obj) {
		body["type"], body["sequence_number"] = kind, len(list)
		list = append(list, "event: "+kind+"\ndata: "+encode(body)+"\n\n")
	}
	response := func(status string, output []obj, usage any) obj {
		return obj{"response": obj{
			"id": id, "object": "response", "created_at": created(), "status": status, "model": q.Model,
			"output": output, "error": nil, "incomplete_details": nil, "usage": usage,
		}}
	}
	event("response.created", response("in_progress", []obj{}, nil))
	event("response.in_progress", response("in_progress", []obj{}, nil))
	output := []obj{}
	if r.Text != "" {
		output = append(output, message(event, strings.Replace(id, "resp", "msg", 1), r.Text))
	}
	for _, use := range r.Uses {
		call := a.ID("call_", func(id string) bool { return slices.Contains(q.ids, id) })
		output = append(output, use.item(event, call, len(output)))
	}
	event("response.completed", response("completed", output, obj{
		"input_tokens": r.Usage.In, "input_tokens_details": obj{"cached_tokens": r.Usage.Cached},
		"output_tokens": r.Usage.Out, "output_tokens_details": obj{"reasoning_tokens": 0}, "total_tokens": r.Usage.In + r.Usage.Out,
	}))
	return list
}

// message sends the events of a text, the first item of the output.
func message(event func(string, obj), id, said string) obj {
	item := func(status string, content []obj) obj {
		return obj{"id": id, "type": "message", "status": status, "role": "assistant", "content": content}
	}
	part := func(text string) obj { return obj{"type": "output_text", "text": text, "annotations": []obj{}} }
	at := func(more obj) obj {
		more["item_id"], more["output_index"], more["content_index"] = id, 0, 0
		return more
	}
	event("response.output_item.added", obj{"output_index": 0, "item": item("in_progress", []obj{})})
	event("response.content_part.added", at(obj{"part": part("")}))
	for _, piece := range apiserver.Pieces(said) {
		event("response.output_text.delta", at(obj{"delta": piece}))
	}
	event("response.output_text.done", at(obj{"text": said}))
	event("response.content_part.done", at(obj{"part": part(said)}))
	whole := item("completed", []obj{part(said)})
	event("response.output_item.done", obj{"output_index": 0, "item": whole})
	return whole
}

// item sends the events of a call.
func (u ToolUse) item(event func(string, obj), call string, at int) obj {
	id := "fc_" + call
	input, free := u.Input.(string)
	key, name, kind := "arguments", "function_call_arguments", "function_call"
	if free {
		key, name, kind, id = "input", "custom_tool_call_input", "custom_tool_call", "ctc_"+call
	} else {
		input = u.arguments()
	}
	item := func(status, said string) obj {
		m := obj{"id": id, "type": kind, "status": status, "call_id": call, "name": u.Name, key: said}
		if u.Namespace != "" {
			m["namespace"] = u.Namespace
		}
		return m
	}
	event("response.output_item.added", obj{"output_index": at, "item": item("in_progress", "")})
	event("response."+name+".delta", obj{"item_id": id, "output_index": at, "delta": input})
	event("response."+name+".done", obj{"item_id": id, "output_index": at, key: input})
	whole := item("completed", input)
	event("response.output_item.done", obj{"output_index": at, "item": whole})
	return whole
}
