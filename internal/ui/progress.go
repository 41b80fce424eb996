package ui

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Progress is the status line of work that a person waits for: its name, the seconds, the tokens and the cost so far, and the tool in
// use. A nil Progress shows nothing.
type Progress struct {
	screen *Screen
	now    func() time.Time
	done   chan struct{}

	mu     sync.Mutex
	began  time.Time
	name   string
	tool   string
	tokens int
	cost   float64 // USD
	over   bool
}

// Begin shows the progress of work on a screen, each second anew, until End.
func (s *Screen) Begin(name string, now func() time.Time) *Progress {
	p := &Progress{screen: s, now: now, done: make(chan struct{}), began: now(), name: plaintext.Line(name)}
	p.draw()
	ticks := time.NewTicker(time.Second)
	go func() {
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				p.draw()
			case <-p.done:
				return
			}
		}
	}()
	return p
}

// Use shows the tool in use; "" for none.
func (p *Progress) Use(tool string) {
	p.change(func() { p.tool = plaintext.Line(tool) })
}

// Spent adds tokens and a cost in USD.
func (p *Progress) Spent(tokens int, cost float64) {
	p.change(func() { p.tokens, p.cost = p.tokens+tokens, p.cost+cost })
}

func (p *Progress) change(do func()) {
	if p == nil {
		return
	}
	p.mu.Lock()
	do()
	p.mu.Unlock()
	p.draw()
}

// End removes the line.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over = true
		close(p.done)
		p.screen.Status("")
	}
}

func (p *Progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	parts := []string{p.name, p.now().Sub(p.began).Round(time.Second).String()}
	if p.tokens > 0 {
		parts = append(parts, plaintext.Thousands(p.tokens)+" tokens")
	}
	if p.cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", p.cost))
	}
	if p.tool != "" {
		parts = append(parts, p.tool)
	}
	p.screen.Status(strings.Join(parts, "  "))
}
