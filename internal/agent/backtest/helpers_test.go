package backtest

import (
	"context"
	"errors"
	"testing"

	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/testkit"
)

func dirOf(t *testing.T) paths.Dir { return paths.Dir(testkit.MemoryDir(t)) }

// asker is a service that is a function.
type asker func(context.Context, provider.Request) (provider.Answer, error)

func (a asker) Ask(ctx context.Context, r provider.Request, _ func(string) error) (provider.Answer, error) {
	return a(ctx, r)
}

func (asker) Search(context.Context, provider.SearchRequest) (provider.Found, error) {
	return provider.Found{}, errors.New("no search")
}
