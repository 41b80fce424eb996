package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

func files(t testing.TB, sessions string) []transcript.File {
	t.Helper()
	list, err := transcript.Dir(sessions).Files()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func search(t testing.TB, sessions string, words ...string) (found []string) {
	t.Helper()
	for m, err := range transcript.Search(t.Context(), files(t, sessions), words, nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%s/%d", m.Transcript.ID, m.Index()))
	}
	return found
}

func TestSearch(t *testing.T) {
	sessions := t.TempDir()
	old := begin(t, sessions, "old",
		user("Where is the Train to Zürich?"),
		agent("ПРИВЕТ, it says \"platform 9\\3\" <b>", call("x")),
		user(result("x", "train.go:12:\tfunc Train()")),
		agent(thought("secret train", "sig"), "done"),
	)
	young := begin(t, sessions, "young", user("a train\nand zürich"), agent("STRASSE straße"))
	touch(t, old.Path, 1)
	touch(t, young.Path, 2)
	write(t, filepath.Join(filepath.Dir(old.Path), "2026-02-24T14-30-00_broken.jsonl"), "train\n")
	write(t, filepath.Join(sessions, "script", "s-1.jsonl"), `{"type":"message","message":{"role":"user","content":"train"}}`+"\n")
	for words, want := range map[string]string{
		"train":          "young/0 old/2 old/0",
		"TRAIN|zÜRICH":   "young/0 old/0",
		"train|func":     "old/2",
		"привет":         "old/1",
		`"platform`:      "old/1",
		`9\3`:            "old/1",
		`" <B>`:          "old/1",
		`<B>`:            "old/1",
		"\tfunc":         "old/2",
		"train\nand":     "young/0",
		"straße":         "young/1",
		"strasse":        "young/1",
		"read":           "old/1", // a tool's name
		"read {":         "old/1",
		"secret":         "",
		"sig":            "",
		"content":        "",
		"session":        "",
		"":               "",
		"nowhere at all": "",
		"train|nowhere":  "",
		"to Z":           "old/0",
	} {
		if got := strings.Join(search(t, sessions, strings.Split(words, "|")...), " "); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}

func TestSearchMatch(t *testing.T) {
	sessions := t.TempDir()
	f := begin(t, sessions, "n-1", user("x"), agent(strings.Repeat("é ", 100)+"Found\x1b[1m\nit"+strings.Repeat(" é", 100)))
	for m, err := range transcript.Search(t.Context(), files(t, sessions), []string{"found"}, nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Role != transcript.Assistant || m.Index() != 1 || m.Transcript.Path != f.Path || m.Transcript.Cwd != f.Cwd || !m.At.Equal(noon.Add(1e9)) {
			t.Errorf("%+v", m)
		}
		if !strings.HasPrefix(m.Excerpt, "…é é") || !strings.HasSuffix(m.Excerpt, "é…") || !strings.Contains(m.Excerpt, " Found[1m it ") || len(m.Excerpt) > 200 {
			t.Errorf("%q", m.Excerpt)
		}
	}
}

// Other software writes all but ASCII by number, and slashes with a backslash.
func TestSearchInFilesOfOthers(t *testing.T) {
	sessions := t.TempDir()
	f := begin(t, sessions, "n-1")
	write(t, f.Path, read(t, f.Path)+`{"type": "message", "message": {"role": "user", "content": "Z\u00fcrich and\/or B\u00e9arn \u003ctag\u003e"}}`+"\n")
	for _, word := range []string{"zürich", "ÜRI", "and/or", "and", "<tag>", "béarn"} {
		if got := search(t, sessions, word); len(got) != 1 || got[0] != "n-1/0" {
			t.Errorf("%q: %q", word, got)
		}
	}
}

func TestSearchEndsEarly(t *testing.T) {
	sessions := t.TempDir()
	f := begin(t, sessions, "n-1")
	for range 2000 {
		if err := f.Append(store.Buffered, entries(user("train"), agent(strings.Repeat("x", 100)))...); err != nil {
			t.Fatal(err)
		}
	}
	write(t, f.Path, read(t, f.Path)+"{torn train")
	n := 0
	for m, err := range transcript.Search(t.Context(), files(t, sessions), []string{"train"}, nil, nil) {
		if err != nil || m.Index() != 4000-2-2*n {
			t.Fatalf("%d: %+v, %v", n, m, err)
		}
		if n++; n == 3 {
			break
		}
	}
	if got := search(t, sessions, "train"); len(got) != 2000 || got[1999] != "n-1/0" {
		t.Errorf("%d, %q", len(got), got[len(got)-1])
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n = 0
	for _, err := range transcript.Search(ctx, files(t, sessions), []string{"train"}, nil, nil) {
		n++
		cancel()
		if n > 1 && !errors.Is(err, context.Canceled) {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if n != 2 {
		t.Errorf("%d after the end", n)
	}
}

// Whatever a message holds is found by any piece of it, in any case.
func TestSearchFindsEveryPiece(t *testing.T) {
	sessions := t.TempDir()
	f := begin(t, sessions, "n-1")
	clean := read(t, f.Path)
	text := rapid.StringOfN(rapid.SampledFrom([]rune("abEZ 19\n\t\"\\/<&éÖжЖΣ漢😀\u2028\x1b\ufffd")), 1, 30, -1)
	rapid.Check(t, func(r *rapid.T) {
		said := text.Draw(r, "text")
		if err := os.WriteFile(f.Path, []byte(clean), 0o600); err != nil {
			r.Fatal(err)
		}
		if err := f.Append(store.Buffered, entries(user("z"), agent(said), user(result("a", said+said)))...); err != nil {
			r.Fatal(err)
		}
		runes := []rune(said)
		from := rapid.IntRange(0, len(runes)-1).Draw(r, "from")
		to := rapid.IntRange(from+1, len(runes)).Draw(r, "to")
		piece := string(runes[from:to])
		for _, word := range []string{piece, strings.ToUpper(piece), strings.ToLower(piece)} {
			got := strings.Join(search(t, sessions, word), " ")
			if !strings.HasPrefix(got, "n-1/2 n-1/1") {
				r.Fatalf("%q in %q: %s", word, said, got)
			}
		}
	})
}

func TestSearchInLinesOfAnyLength(t *testing.T) {
	sessions := t.TempDir()
	var said []transcript.Message
	var want []string
	for i, n := range []int{1, 2_000_000, 16_200, 16_300, 16_384, 5, 1_048_576, 70_000, 1} {
		said = append(said, user(strings.Repeat("x", n)+" here"))
		want = append([]string{fmt.Sprintf("n-1/%d", i)}, want...)
	}
	begin(t, sessions, "n-1", said...)
	if got := search(t, sessions, "here"); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%q", got)
	}
}

// TestSearchAgainstLoad: a search finds what a comparison of all messages finds, with its place among them.
func TestSearchAgainstLoad(t *testing.T) {
	sessions := t.TempDir()
	f := begin(t, sessions, "n-1")
	header := read(t, f.Path)
	rapid.Check(t, func(r *rapid.T) {
		text := header
		for range rapid.IntRange(0, 12).Draw(r, "lines") {
			said := rapid.StringOfN(rapid.SampledFrom([]rune("esESton é\"\\\n<漢")), 0, 20, -1).Draw(r, "said")
			own, err := entries(agent(said))[0].MarshalJSON()
			if err != nil {
				r.Fatal(err)
			}
			text += rapid.SampledFrom([]string{
				string(own), string(own), string(own), "", " \r", string(own[:len(own)/2]), `{"type":"note","message":{"role":"user","content":"esE"}}`,
				strings.Repeat(" ", 300_000) + string(own),
				fmt.Sprintf(`{ "timestamp":"x", "type":"message","message":{"role":"user","content":%s}}`, strconv.QuoteToASCII(said)),
			}).Draw(r, "line") + "\n"
		}
		text = text[:max(len(header), len(text)-rapid.IntRange(0, 30).Draw(r, "torn"))]
		if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
			r.Fatal(err)
		}
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"e", "ES", "ton", "sé", `"`, `s\`, "n e"}), 1, 2).Draw(r, "words")
		loaded, err := f.Load(nil)
		if err != nil {
			r.Fatal(err)
		}
		var want, got []string
		for i, e := range slices.Backward(loaded) {
			if line, found := plaintext.NewQuery(words).Excerpt(e.Message.Text()); found {
				want = append(want, fmt.Sprint(i, e.At, e.Message.Role, line))
			}
		}
		for m, err := range transcript.Search(t.Context(), files(t, sessions), words, nil, nil) {
			if err != nil {
				r.Fatal(err)
			}
			got = append(got, fmt.Sprint(m.Index(), m.At, m.Role, m.Excerpt))
		}
		if !slices.Equal(got, want) {
			r.Fatalf("%q in %.3000s:\n%q\n%q", words, text, got, want)
		}
	})
}
