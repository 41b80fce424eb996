package discordapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"unicode/utf8"
)

// Limits of a message, from the documentation.
const (
	maxContent = 2000
	maxNonce   = 25
	maxEmbeds  = 10
	maxEmbedAt = 6000 // characters over all embeds
)

// keys are those that a message's body may have.
func keys() []string {
	return []string{
		"content", "nonce", "enforce_nonce", "tts", "embeds", "allowed_mentions", "message_reference", "components", "sticker_ids",
		"attachments", "flags", "poll", "username", "avatar_url",
	}
}

// fits reports whether the body may become a message; otherwise it answers.
func (x *exchange) fits(before string) bool {
	content := before
	if raw, ok := x.in["content"]; ok {
		content = text(raw)
	}
	for key := range x.in {
		if !slices.Contains(keys(), key) {
			x.violate("%s %s: unknown key %q", x.call.Method, x.call.Path, key)
		}
	}
	x.checkMentions()
	reason := ""
	embeds, size := x.embeds()
	switch {
	case utf8.RuneCountInString(content) > maxContent:
		reason = "content: Must be 2000 or fewer in length."
	case utf8.RuneCountInString(text(x.in["nonce"])) > maxNonce:
		reason = "nonce: Must be 25 or fewer in length."
	case embeds > maxEmbeds || size > maxEmbedAt:
		reason = "embeds: too many or too long."
	case len(x.in["components"]) > 0 && !x.components():
		reason = "components: not as Discord wants them."
	}
	if reason != "" {
		x.fail(http.StatusBadRequest, 50035, "Invalid Form Body: "+reason)
		return false
	}
	if content == "" && embeds == 0 && len(x.call.Files) == 0 && len(x.in["components"]) == 0 {
		x.fail(http.StatusBadRequest, 50006, "Cannot send an empty message")
		return false
	}
	return true
}

// checkMentions: the text of a model may hold @everyone, so every text must turn mentions off.
func (x *exchange) checkMentions() {
	var mentions struct {
		Parse *[]string `json:"parse"`
		Users []string  `json:"users"`
		Roles []string  `json:"roles"`
	}
	raw, ok := x.in["allowed_mentions"]
	if _, says := x.in["content"]; !says {
		return
	}
	if !ok || json.Unmarshal(raw, &mentions) != nil || mentions.Parse == nil || len(*mentions.Parse)+len(mentions.Users)+len(mentions.Roles) > 0 {
		x.violate("%s %s: allowed_mentions is %s, want {\"parse\": []}", x.call.Method, x.call.Path, raw)
	}
}

// embeds returns how many there are, and their characters.
func (x *exchange) embeds() (n, size int) {
	var list []struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		Fields      []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"fields"`
		Footer struct {
			Text string `json:"text"`
		} `json:"footer"`
	}
	raw, ok := x.in["embeds"]
	if !ok {
		return 0, 0
	}
	if json.Unmarshal(raw, &list) != nil {
		x.violate("%s %s: embeds is %s", x.call.Method, x.call.Path, raw)
		return 0, 0
	}
	count := utf8.RuneCountInString
	for _, e := range list {
		if count(e.Title) > 256 || count(e.Description) > 4096 || len(e.Fields) > 25 || count(e.Footer.Text) > 2048 {
			size = maxEmbedAt + 1
		}
		size += count(e.Title) + count(e.Description) + count(e.Footer.Text)
		for _, f := range e.Fields {
			if f.Name == "" || f.Value == "" || count(f.Name) > 256 || count(f.Value) > 1024 {
				size = maxEmbedAt + 1
			}
			size += count(f.Name) + count(f.Value)
		}
	}
	return len(list), size
}

// component is a row, a button or a select.
type component struct {
	Type       int               `json:"type"`
	Style      int               `json:"style"`
	Label      string            `json:"label"`
	CustomID   string            `json:"custom_id"`
	URL        string            `json:"url"`
	Options    []json.RawMessage `json:"options"`
	Components []component       `json:"components"`
}

// components reports whether rows and what is in them are within the limits.
func (x *exchange) components() bool {
	var rows []component
	raw := x.in["components"]
	if json.Unmarshal(raw, &rows) != nil || len(rows) > 5 {
		return false
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if row.Type != 1 || len(row.Components) == 0 || len(row.Components) > 5 {
			return false
		}
		for _, c := range row.Components {
			link := c.Type == 2 && c.Style == 5
			if link && c.URL == "" || !link && (c.CustomID == "" || len(c.CustomID) > 100 || seen[c.CustomID]) || utf8.RuneCountInString(c.Label) > 80 || len(c.Options) > 25 {
				return false
			}
			seen[c.CustomID] = !link
		}
	}
	return true
}
