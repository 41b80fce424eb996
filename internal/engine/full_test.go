package engine

import (
	"testing"

	"github.com/ollim/ollim/internal/state/model"
)

func TestFull(t *testing.T) {
	sonnet, free := model.Known().Resolve("claude-sonnet-5-5"), model.Known().Resolve("llama3.3") // 2.50 USD for a million tokens
	for name, c := range map[string]struct {
		full   Full
		model  model.Model
		window int
		want   int
	}{
		"no limit":               {Full{}, sonnet, 800_000, 800_000},
		"tokens":                 {Full{Tokens: 120_000, MaxCost: 1}, sonnet, 800_000, 120_000},
		"a small window":         {Full{Tokens: 120_000, MaxCost: 1}, sonnet, 80_000, 80_000},
		"half of the money":      {Full{Tokens: 120_000, MaxCost: 0.25}, sonnet, 800_000, 50_001},
		"too little money":       {Full{Tokens: 120_000, MaxCost: 0.001}, sonnet, 800_000, leastFull},
		"little money, no space": {Full{MaxCost: 0.001}, sonnet, 5000, 5000},
		"no price":               {Full{Tokens: 120_000, MaxCost: 0.25}, free, 800_000, 120_000},
	} {
		if got := c.full.At(c.model, c.window); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
