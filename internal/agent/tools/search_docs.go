package tools

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/ollim/ollim/man"
)

//go:embed search_docs.md
var searchDocsText string

func searchDocs() tool {
	return tool{
		name:        "search_docs",
		description: searchDocsText,
		schema: `{"type":"object","properties":{"query":{"type":"string","minLength":1}},` +
			`"required":["query"],"additionalProperties":false}`,
		may:  listed("search_docs"),
		call: callSearchDocs,
	}
}

func callSearchDocs(_ context.Context, _ *Set, input json.RawMessage) (string, error) {
	var in struct {
		Query string `json:"query"`
	}
	if err := decode(input, &in); err != nil {
		return "", err
	}
	return man.Answer(in.Query), nil
}
