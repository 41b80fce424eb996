package tools

import (
	"context"
	_ "embed"

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
		call: takes(callSearchDocs),
	}
}

func callSearchDocs(_ context.Context, _ *Set, in struct {
	Query string `json:"query"`
}) (string, error) {
	return man.Answer(in.Query), nil
}
