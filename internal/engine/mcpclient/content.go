package mcpclient

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/transcript"
)

// maxText is how many characters of a result the model is shown.
const maxText = 30_000

type sources []*transcript.Source

// maxFiles is how many images and documents of a result the model is shown.
const maxFiles = 8

// contentOf returns a result as text, and the images and documents that the model is shown.
func contentOf(r *mcp.CallToolResult) (string, sources) {
	var parts []string
	var files sources
	for _, part := range r.Content {
		switch p := part.(type) {
		case mcp.TextContent:
			parts = append(parts, p.Text)
		case mcp.ImageContent:
			files.add(&parts, "image", p.Data)
		case mcp.AudioContent:
			parts = append(parts, fmt.Sprintf("(audio, %s, omitted)", p.MIMEType))
		case mcp.ResourceLink:
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s: %s %s", p.Name, p.URI, p.Description)))
		case mcp.EmbeddedResource:
			switch held := p.Resource.(type) {
			case mcp.TextResourceContents:
				parts = append(parts, held.URI+":\n"+held.Text)
			case mcp.BlobResourceContents:
				files.add(&parts, held.URI, held.Blob)
			}
		}
	}
	if len(parts)+len(files) == 0 && r.StructuredContent != nil {
		if data, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(data))
		}
	}
	if len(files) > 1 { // at the beginning, where it is not cut off
		parts = slices.Insert(parts, 0, fmt.Sprintf("(%d files; the first is here, the others follow the results of all tools)", len(files)))
	}
	return strings.Join(parts, "\n"), files
}

// bounded cuts a text off that is longer than the model is shown. No secret may be in it: half of one would not be recognized.
func bounded(text string) string {
	if n := utf8.RuneCountInString(text); n > maxText {
		text, _ = plaintext.First(text, maxText)
		text += fmt.Sprintf("\n(%d more characters omitted)", n-maxText)
	}
	return text
}

// add adds a file that a model can see; a note stands for another, and for those that are too many.
func (s *sources) add(parts *[]string, name, encoded string) {
	content, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil && media.IsSeen(media.Type(content)) && len(*s) < maxFiles {
		var source *transcript.Source
		if source, err = engine.Source(plaintext.Line(name), content); err == nil {
			*s = append(*s, source)
			return
		}
	}
	*parts = append(*parts, fmt.Sprintf("(%s, %d bytes, omitted)", plaintext.Line(name), len(content)))
}
