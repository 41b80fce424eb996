package transcript_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

const (
	cutOff   = "|assistant: " + transcript.CutOff
	noAnswer = "|assistant: [No answer.]"
)

// by is a message that a run has said.
func by(run, text string) transcript.Entry {
	return transcript.Entry{Message: user(text), Run: run, At: noon}
}

func entry(m transcript.Message) transcript.Entry { return transcript.Entry{Message: m, At: noon} }

// unfinished is an answer that broke off.
func unfinished(text string) transcript.Entry {
	return transcript.Entry{Message: agent(text), More: true, At: noon}
}

func TestSettled(t *testing.T) {
	thought := transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.ThinkingBlock, Thinking: "hm", Signature: "s"}}}
	whole := []transcript.Entry{by("1", "q1"), entry(agent("a1", call("x"))), entry(user(result("x", "rx"))), entry(agent("a2"))}
	const read = "user: q1|assistant: a1 call x|user: result x|assistant: a2"
	for name, tc := range map[string]struct {
		compacted bool
		more      []transcript.Entry
		want      string
	}{
		"whole":             {more: nil, want: ""},
		"not answered":      {more: []transcript.Entry{by("2", "q2")}, want: ""},
		"not answered yet":  {more: []transcript.Entry{by("2", "q2"), by("3", "q3"), entry(agent("a3"))}, want: "|user: q3|assistant: a3"},
		"of nobody":         {more: []transcript.Entry{by("", "q2"), by("3", "q3"), entry(agent("a3"))}, want: "|user: q2" + noAnswer + "|user: q3|assistant: a3"},
		"in a tool":         {more: []transcript.Entry{by("2", "q2"), entry(agent(call("y"), call("z")))}, want: "|user: q2|assistant: call y call z|user: result y lost result z lost" + cutOff},
		"between two tools": {more: []transcript.Entry{by("2", "q2"), entry(agent(call("y"), call("z"))), entry(user(result("z", "rz")))}, want: "|user: q2|assistant: call y call z|user: result z|user: result y lost" + cutOff},
		"after a tool":      {more: []transcript.Entry{by("2", "q2"), entry(agent(call("y"))), entry(user(result("y", "ry"))), by("3", "q3")}, want: "|user: q2|assistant: call y|user: result y" + cutOff},
		"in an answer":      {more: []transcript.Entry{by("2", "q2"), unfinished("I am")}, want: "|user: q2|assistant: I am" + cutOff},
		"only thought":      {more: []transcript.Entry{by("2", "q2"), entry(thought)}, want: "|user: q2|assistant: thinking" + noAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			list := append(slices.Clone(whole), tc.more...)
			got := strings.Join(reported(messages(transcript.Transcript{}.Settled(list))), "|")
			if want := read + tc.want; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	summary := transcript.Transcript{Header: transcript.Header{Compacted: true}}
	got := strings.Join(reported(messages(summary.Settled([]transcript.Entry{by("", "S"), by("2", "q"), entry(agent("a"))}))), "|")
	if want := "user: S|assistant: [I have read the summary and go on from there.]|user: q|assistant: a"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestSettledKeepsSpeakersApart: wherever kills cut a conversation off, what is said next is a message of its own.
func TestSettledKeepsSpeakersApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []transcript.Entry
		for range rapid.IntRange(0, 3).Draw(t, "kills") {
			whole := transcript.Repair(drawMessages(t))
			list = append(list, entries(whole[:rapid.IntRange(0, len(whole)).Draw(t, "cut")]...)...)
		}
		for i := range list {
			list[i].More = rapid.Bool().Draw(t, "more")
			list[i].Run = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "run")
		}
		file := transcript.Transcript{Header: transcript.Header{Compacted: rapid.Bool().Draw(t, "compacted")}}
		settled := messages(file.Settled(list))
		whole := transcript.Repair(append(settled, user("next")))
		last := whole[len(whole)-1]
		if last.Role != transcript.User || len(last.Content) != 1 || last.Text() != "next" {
			t.Fatalf("%q: the last message is %+v", reported(settled), last)
		}
	})
}

// TestBranchAtATurn: a branch holds the complete turns, wherever its source ends.
func TestBranchAtATurn(t *testing.T) {
	turns := [][]transcript.Entry{
		{by("1", "q1"), entry(agent("a1"))},
		{by("2", "q2"), entry(agent(call("x"))), entry(user(result("x", "rx"))), unfinished("I am"), entry(agent("a2"))},
		{by("3", "q3")},
		{by("4", "q4"), entry(agent("a4", call("y")))},
		{by("5", "q5"), entry(agent("a5"))},
	}
	all, complete := slices.Concat(turns...), map[int]int{0: 0}
	for _, n := range []int{2, 7, len(all)} {
		complete[n] = n
	}
	for n := 1; n <= len(all); n++ {
		if _, ends := complete[n]; !ends {
			complete[n] = complete[n-1]
		}
		sessions := t.TempDir()
		source := begin(t, sessions, "n-1")
		if err := source.Append(store.Buffered, all[:n]...); err != nil {
			t.Fatal(err)
		}
		made, err := branch(sessions, source, -1, header("n-2"))
		if err != nil {
			t.Fatal(err)
		}
		if got, bad := load(t, made); len(got) != complete[n] || bad != 0 {
			t.Errorf("%d of %d messages: the branch has %d, want %d", n, len(all), len(got), complete[n])
		}
	}
}

// TestBranchOfACompaction: a summary that holds the beginning of a turn is not branched before that turn is over.
func TestBranchOfACompaction(t *testing.T) {
	for name, tc := range map[string]struct {
		midTurn bool
		over    bool
		gone    bool
		want    string
	}{
		"between two turns": {want: "user: S"},
		"in a turn":         {midTurn: true, want: "user: q1|assistant: a1"},
		"its source gone":   {midTurn: true, gone: true, want: "user: S"},
		"after the turn":    {midTurn: true, over: true, want: "user: S|assistant: call x|user: result x|assistant: a2"},
	} {
		t.Run(name, func(t *testing.T) {
			sessions := t.TempDir()
			old := begin(t, sessions, "n-1", user("q1"), agent("a1"), user("q2"), agent(call("x")), user(result("x", "rx")))
			list, _ := load(t, old)
			ids := []string{"n-2", "n-3"} // compacted twice
			source := old
			for i, id := range ids {
				h := header(id)
				h.ParentID, h.MidTurn, h.Timestamp = source.ID, tc.midTurn, noon.Add(time.Duration(i+1)*time.Hour)
				var err error
				if source, err = summed(sessions, "S", list[3:], h); err != nil {
					t.Fatal(err)
				}
			}
			if tc.over {
				if err := source.Append(store.Buffered, entry(agent("a2"))); err != nil {
					t.Fatal(err)
				}
			}
			if tc.gone {
				if err := store.Remove(old.Path); err != nil {
					t.Fatal(err)
				}
			}
			made, err := branch(sessions, source, -1, header("n-4"))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := load(t, made)
			if text := strings.Join(reported(messages(got)), "|"); text != tc.want || made.MidTurn {
				t.Errorf("got  %s\nwant %s", text, tc.want)
			}
		})
	}
}
