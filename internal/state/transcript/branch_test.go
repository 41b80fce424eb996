package transcript_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit"
)

func TestBranch(t *testing.T) {
	sessions := t.TempDir()
	source := begin(t, sessions, "n-1", user("one"), agent("two"), user("three"))
	all := read(t, source.Path)
	first, lines, _ := strings.Cut(all, "\n")
	write(t, source.Path, first+"\n"+strings.Replace(lines, "\n", "\nnonsense\n\n", 1)+`{"type":"mess`)
	torn := read(t, source.Path)
	for after, want := range map[int]string{-1: "one two", 0: "", 1: "one", 2: "one two", 3: "one two three", 9: "one two three"} {
		h := header(fmt.Sprint("b", after))
		h.Cwd, h.ParentID, h.Compacted = "/elsewhere", "n-0", true // as the header of a compaction has it
		b, err := branch(sessions, source, after, h)
		if err != nil {
			t.Fatal(err)
		}
		list, _ := load(t, b)
		var texts []string
		for _, m := range messages(list) {
			texts = append(texts, m.Text())
		}
		if got := strings.Join(texts, " "); got != want {
			t.Errorf("after %d: %q, want %q", after, got, want)
		}
		again, err := transcript.Open(b.Path)
		if err != nil || again.ParentID != "n-1" || b.ParentID != "n-1" || again.Compacted || b.Compacted || again.Cwd != "/elsewhere" || filepath.Dir(b.Path) != folder(sessions, "/elsewhere") {
			t.Errorf("%+v, %v", again, err)
		}
		if after == 3 && !strings.HasSuffix(read(t, b.Path), "three\"}}\n") {
			t.Errorf("%q", read(t, b.Path))
		}
		if _, err := branch(sessions, source, after, h); !errors.Is(err, os.ErrExist) {
			t.Errorf("again: %v", err)
		}
	}
	if read(t, source.Path) != torn {
		t.Error("the source was changed")
	}
	if _, err := branch(sessions, source, -1, header("../x")); err == nil || !strings.HasSuffix(err.Error(), ": not a valid session id") {
		t.Errorf("%v", err)
	}
	if _, err := branch(sessions, transcript.Transcript{Path: filepath.Join(sessions, "none")}, -1, header("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A branch that was killed in the middle is not there.
func TestBranchKilled(t *testing.T) {
	sessions := t.TempDir()
	source := begin(t, sessions, "n-1")
	const n = 50
	for range n {
		if err := source.Append(store.Buffered, entries(agent(strings.Repeat("x", 20_000)))...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range testkit.Full(40, 6) {
		c := testkit.Child(t, "branch", sessions, source.Path)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
		time.Sleep(time.Duration(i%10) * 1717 * time.Microsecond)
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	list, skipped, err := transcript.Dir(sessions).List("", nil)
	if err != nil || skipped != 0 || len(list) < 6 {
		t.Fatalf("%d, %d skipped, %v", len(list), skipped, err)
	}
	_, want, _ := strings.Cut(read(t, source.Path), "\n")
	for _, s := range list {
		if _, got, _ := strings.Cut(read(t, s.Path), "\n"); got != want {
			t.Errorf("%s: %d bytes behind the header, not the %d of the source", s.Path, len(got), len(want))
		}
	}
	for _, name := range names(t, filepath.Dir(source.Path)) {
		if strings.HasPrefix(name, ".") && !store.IsDraft(name) {
			t.Errorf("nobody will remove %s", name)
		}
	}
}

func TestCompact(t *testing.T) {
	sessions := t.TempDir()
	talk := []transcript.Message{
		user("q1"), agent("a1"), user("q2"), agent("a2", call("x"), call("y")), user(result("x", "rx"), result("y", "ry")), agent("a3"), user("q3"), agent("a4"),
	}
	for keep, want := range map[int]string{
		-1: "user: S",
		0:  "user: S",
		1:  "user: S|assistant: a4",
		2:  "user: S|user: q3|assistant: a4",
		3:  "user: S|assistant: a3|user: q3|assistant: a4",
		4:  "user: S|assistant: a2 call x call y|user: result x result y|assistant: a3|user: q3|assistant: a4",
		5:  "user: S|assistant: a2 call x call y|user: result x result y|assistant: a3|user: q3|assistant: a4",
		8:  "user: S|user: q1|assistant: a1|user: q2|assistant: a2 call x call y|user: result x result y|assistant: a3|user: q3|assistant: a4",
		99: "user: S|user: q1|assistant: a1|user: q2|assistant: a2 call x call y|user: result x result y|assistant: a3|user: q3|assistant: a4",
	} {
		source := begin(t, sessions, fmt.Sprint("n", keep))
		list := entries(talk...)
		for i := range list {
			list[i].Tokens = 1000 * i
		}
		if err := source.Append(store.Buffered, list...); err != nil {
			t.Fatal(err)
		}
		before := read(t, source.Path)
		h := header(fmt.Sprint("c", keep))
		h.Timestamp = noon.Add(time.Hour)
		made, err := compact(sessions, source, "S", keep, h)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := load(t, made)
		if short := strings.Join(reported(messages(got)), "|"); short != want {
			t.Errorf("keep %d: %s, want %s", keep, short, want)
		}
		for _, e := range got {
			if e.Tokens != 0 {
				t.Errorf("keep %d: %d tokens, of a conversation that is shorter now", keep, e.Tokens)
			}
		}
		if made.ParentID != source.ID || read(t, source.Path) != before {
			t.Errorf("parent %q", made.ParentID)
		}
	}
	if _, err := compact(sessions, begin(t, sessions, "e"), " \n", 0, header("f")); err == nil {
		t.Error("an empty summary was taken")
	}
}

func TestCutKeepsCallsAndResultsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := entries(drawMessages(t)...)
		keep := rapid.IntRange(-1, len(list)+1).Draw(t, "keep")
		cut := transcript.Cut(list, keep)
		if cut < 0 || cut > len(list) || cut > max(0, len(list)-keep) {
			t.Fatalf("%d of %d", cut, len(list))
		}
		open := map[string]bool{} // calls that the cut takes
		for i, e := range list {
			for _, b := range e.Message.Content {
				switch {
				case b.Type == transcript.ToolUse:
					open[b.ID] = i < cut
				case b.Type == transcript.ToolResult && i >= cut && open[b.ToolUseID]:
					t.Fatalf("cut at %d: the call of %q is gone", cut, b.ToolUseID)
				}
			}
		}
		if cut > 0 && cut < len(list) && list[cut].Message.Role == transcript.Assistant && list[cut-1].Message.Role == transcript.Assistant {
			t.Fatalf("cut at %d: in the middle of an answer", cut)
		}
	})
}

// What a compaction of a conversation that the service took leaves is one that it takes.
func TestCompactedIsWhole(t *testing.T) {
	sessions := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		whole := transcript.Repair(drawMessages(t))
		keep := rapid.IntRange(0, len(whole)).Draw(t, "keep")
		h := header(fmt.Sprint("n", n))
		source, err := transcript.Dir(sessions).Create(h)
		if err == nil {
			err = source.Append(store.Buffered, entries(whole...)...)
		}
		if err != nil {
			t.Fatal(err)
		}
		h.ID = fmt.Sprint("c", n)
		if n++; n > testkit.Full(100, 25) {
			return // each waits for the disk
		}
		made, err := compact(sessions, source, "summary", keep, h)
		if err != nil {
			t.Fatal(err)
		}
		list, err := made.Load(nil)
		if err != nil || len(list) < min(keep, len(whole)) {
			t.Fatalf("%d, %v", len(list), err)
		}
		read := messages(made.Settled(list))
		if got, changed := repaired(read); changed {
			t.Fatalf("%q is not whole: %q", reported(read), reported(got))
		}
		if !slices.ContainsFunc(list[:1], func(e transcript.Entry) bool { return strings.HasPrefix(e.Message.Text(), "summary") }) {
			t.Fatalf("%q", reported(messages(list)))
		}
	})
}

// TestCompactWithoutThoughts: services bind thoughts to the conversation before, which is another one now.
func TestCompactWithoutThoughts(t *testing.T) {
	dir := t.TempDir()
	thought := transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{
		{Type: transcript.ThinkingBlock, Thinking: "hm", Signature: "s"}, {Type: transcript.RedactedBlock, Data: "d"}, {Type: transcript.TextBlock, Text: "two"},
	}}
	source := begin(t, dir, "n-1", user("one"), thought, user("three"))
	made, err := compact(dir, source, "the summary", 2, header("n-2"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := made.Load(nil)
	if err != nil || len(kept) != 3 || len(kept[1].Message.Content) != 1 || kept[1].Message.Text() != "two" {
		t.Errorf("%+v, %v", kept, err)
	}
	if !made.Compacted || made.ParentID != "n-1" {
		t.Errorf("%+v", made.Header)
	}
}
