package tools

import (
	"context"

	"github.com/ollim/ollim/man"
)

func callSearchDocs(_ context.Context, _ *Set, in struct {
	Query string `json:"query"`
}) (string, error) {
	return man.Answer(in.Query), nil
}
