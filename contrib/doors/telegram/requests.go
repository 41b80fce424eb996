package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	mostData  = 64 // bytes of the data of a button
	mostPhoto = 10 << 20

	disabledMark = "-" // begins the data of a disabled button
)

// take begins what a line asks for.
func (d *door) take(ctx context.Context, r request) {
	switch r.Type {
	case "taken":
		d.updates.taken(r.ID)
	case "pressed":
		d.updates.taken(r.ID)
		d.answer(r.ID)
	case "fetch":
		d.lanes.do("fetch "+r.Address, func() { d.reply(r, d.api.download(ctx, r.Address, r.Path, r.Most)) })
	case "typing":
		d.lanes.do("typing "+r.Channel, func() { d.reply(r, d.typing(ctx, r)) })
	case "ping":
		d.reply(r, nil)
	case "send", "edit", "delete", "react":
		d.lanes.do(r.Channel, func() { d.carry(ctx, r) })
	default:
		if r.Ref != 0 {
			d.reply(r, &failure{Code: 400, Description: "unknown request"})
		}
	}
}

// carry carries out a request about a message.
func (d *door) carry(ctx context.Context, r request) {
	switch r.Type {
	case "send":
		id, err := d.send(ctx, r)
		if err == nil {
			d.write(map[string]any{"type": "done", "ref": r.Ref, "id": id})
			return
		}
		d.reply(r, err)
	case "edit":
		d.reply(r, d.edit(ctx, r))
	case "delete":
		d.reply(r, d.remove(ctx, r))
	case "react":
		d.reply(r, d.react(ctx, r))
	}
}

// reply answers a request.
func (d *door) reply(r request, err error) {
	if err == nil {
		d.write(map[string]any{"type": "done", "ref": r.Ref})
		return
	}
	line := map[string]any{"type": "failed", "ref": r.Ref, "error": err.Error()}
	if f := (*failure)(nil); errors.As(err, &f) {
		switch {
		case f.Parameters.RetryAfter > 0:
			line["retry_after"] = f.Parameters.RetryAfter
		case f.final():
			line["permanent"] = true
		case f.refused():
			line["permanent"], line["refused"] = true, true
		}
	}
	d.write(line)
}

// place returns the parameters that name a channel.
func place(channel string) (map[string]any, error) {
	chat, topic, err := split(channel)
	params := map[string]any{"chat_id": chat}
	if topic != 0 {
		params["message_thread_id"] = topic
	}
	return params, err
}

// at returns the parameters that name a message.
func at(id string) (map[string]any, error) {
	chat, number, err := split(id)
	if err == nil && number == 0 {
		err = &failure{Code: 400, Description: fmt.Sprintf("%q is not the id of a message: want CHAT.NUMBER", id)}
	}
	return map[string]any{"chat_id": chat, "message_id": number}, err
}

// send creates the message of a text, and one of each file. It returns the id of the first.
func (d *door) send(ctx context.Context, r request) (string, error) {
	params, err := place(r.Channel)
	if err != nil {
		return "", err
	}
	if r.Silent {
		params["disable_notification"] = true
	}
	if r.ReplyTo != "" {
		_, number, err := split(r.ReplyTo)
		if err != nil {
			return "", err
		}
		params["reply_parameters"] = map[string]any{"message_id": number, "allow_sending_without_reply": true}
	}
	var buttons keyboard
	if r.Buttons != nil && len(*r.Buttons) > 0 {
		if buttons, err = keyboardOf(*r.Buttons); err != nil {
			return "", err
		}
		params["reply_markup"] = buttons
	}
	var sent message
	files := r.Files
	switch {
	case r.Text != nil && *r.Text != "":
		addText(params, "text", "entities", *r.Text)
		err = d.api.call(ctx, "sendMessage", params, &sent)
	case len(files) > 0:
		sent, err = d.sendFile(ctx, files[0], params)
		files = files[1:]
	default:
		err = &failure{Code: 400, Description: "the message has neither text nor files"}
	}
	if err != nil {
		return "", err
	}
	chat, _, _ := split(r.Channel)
	id := messageID(chat, sent.ID)
	if len(buttons.Rows) > 0 {
		d.remember(id, buttons)
	}
	delete(params, "text")
	delete(params, "entities")
	delete(params, "reply_markup")
	for _, f := range files { // the request must not be repeated any more: the message exists
		d.sendMore(ctx, f, params)
	}
	return id, nil
}

// sendMore sends a further file of a message. A failure is told in the chat.
func (d *door) sendMore(ctx context.Context, f file, params map[string]any) {
	var err error
	for range 3 {
		if _, err = d.sendFile(ctx, f, params); err == nil {
			return
		}
		flood := (*failure)(nil)
		if !errors.As(err, &flood) || flood.Parameters.RetryAfter == 0 || sleep(ctx, flood.wait()) != nil {
			break
		}
	}
	fmt.Fprintln(os.Stderr, err)
	params["text"] = "The file " + f.Name + " could not be sent: " + err.Error()
	if err := d.api.call(ctx, "sendMessage", params, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	delete(params, "text")
}

// sendFile sends a file as what it is: a picture, a voice note, or else a document.
func (d *door) sendFile(ctx context.Context, f file, params map[string]any) (sent message, err error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return sent, err
	}
	method, field := "sendDocument", "document"
	switch kind, _, _ := strings.Cut(f.Type, ";"); {
	case (kind == "image/jpeg" || kind == "image/png") && info.Size() <= mostPhoto:
		method, field = "sendPhoto", "photo"
	case kind == "audio/ogg":
		method, field = "sendVoice", "voice"
	}
	err = d.api.upload(ctx, method, field, f, params, &sent)
	if method != "sendDocument" && (says(err, "photo") || says(err, "voice") || says(err, "image_process")) { // such as one that is too long
		err = d.api.upload(ctx, "sendDocument", "document", f, params, &sent)
	}
	return sent, err
}

// edit changes the text, the buttons or both. Telegram removes the buttons of a text that is edited without them.
func (d *door) edit(ctx context.Context, r request) error {
	params, err := at(r.ID)
	if err != nil {
		return err
	}
	buttons, known := d.remembered(r.ID)
	if r.Buttons != nil {
		if buttons, err = keyboardOf(*r.Buttons); err != nil {
			return err
		}
		known = len(buttons.Rows) > 0
	}
	if known {
		params["reply_markup"] = buttons
	}
	switch {
	case r.Text != nil && *r.Text != "":
		addText(params, "text", "entities", *r.Text)
		err = d.api.call(ctx, "editMessageText", params, nil)
		if says(err, "no text in the message") { // it is the caption of a file
			delete(params, "text")
			delete(params, "entities")
			addText(params, "caption", "caption_entities", *r.Text)
			err = d.api.call(ctx, "editMessageCaption", params, nil)
		}
	case r.Buttons != nil:
		params["reply_markup"] = buttons
		err = d.api.call(ctx, "editMessageReplyMarkup", params, nil)
	}
	if says(err, "message is not modified") {
		err = nil
	}
	if err == nil && r.Buttons != nil {
		d.remember(r.ID, buttons)
	}
	return err
}

func (d *door) remove(ctx context.Context, r request) error {
	params, err := at(r.ID)
	if err != nil {
		return err
	}
	if err = d.api.call(ctx, "deleteMessage", params, nil); says(err, "message to delete not found") {
		return nil
	}
	return err
}

func (d *door) typing(ctx context.Context, r request) error {
	params, err := place(r.Channel)
	if err != nil {
		return err
	}
	params["action"] = "typing"
	return d.api.call(ctx, "sendChatAction", params, nil)
}

// allowedEmoji returns the reaction that Telegram has for one of ollim's: a bot can use a fixed set only.
func allowedEmoji(emoji string) string {
	switch emoji {
	case "✅":
		return "👍"
	case "❌":
		return "👎"
	case "⏳":
		return "🤔"
	}
	return emoji
}

// react sets or removes a reaction. A bot has one reaction to a message, so an earlier one is not removed after a later one.
func (d *door) react(ctx context.Context, r request) error {
	params, err := at(r.ID)
	if err != nil {
		return err
	}
	emoji := allowedEmoji(r.Emoji)
	d.mu.Lock()
	now, known := d.reactions.values[r.ID]
	d.mu.Unlock()
	if r.Remove && known && now != emoji {
		return nil
	}
	list := []map[string]string{}
	if !r.Remove {
		list = append(list, map[string]string{"type": "emoji", "emoji": emoji})
	}
	params["reaction"] = list
	err = d.api.call(ctx, "setMessageReaction", params, nil)
	if err == nil {
		d.mu.Lock()
		d.reactions.put(r.ID, map[bool]string{false: emoji}[r.Remove])
		d.mu.Unlock()
	}
	return err
}

func (d *door) remember(id string, k keyboard) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keyboards.put(id, k)
}

func (d *door) remembered(id string) (keyboard, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.keyboards.values[id]
	return k, len(k.Rows) > 0
}

// keyboardOf returns a keyboard of rows of up to three short buttons. A disabled button stays as one without effect.
func keyboardOf(list []button) (k keyboard, err error) {
	k.Rows = [][]key{}
	const wide = 12 // characters of a label beside others
	for _, b := range list {
		one := key{Text: b.Label, Data: b.ID, Style: b.Style}
		if b.Disabled {
			if one.Data = disabledMark + b.ID; len(one.Data) > mostData {
				one.Data = disabledMark
			}
		}
		if len(one.Data) > mostData {
			return k, &failure{Code: 400, Description: fmt.Sprintf("the id of the button %q has more than %d bytes", b.Label, mostData)}
		}
		last := len(k.Rows) - 1
		if last >= 0 && len(k.Rows[last]) < 3 && len([]rune(b.Label)) <= wide && len([]rune(k.Rows[last][0].Text)) <= wide {
			k.Rows[last] = append(k.Rows[last], one)
		} else {
			k.Rows = append(k.Rows, []key{one})
		}
	}
	return k, nil
}

// buttonsOf is the reverse of keyboardOf.
func buttonsOf(k keyboard) (list []button) {
	for _, row := range k.Rows {
		for _, one := range row {
			id, disabled := strings.CutPrefix(one.Data, disabledMark)
			list = append(list, button{ID: id, Label: one.Text, Style: one.Style, Disabled: disabled})
		}
	}
	return list
}
