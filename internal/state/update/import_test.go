package update

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/state/ledger"
)

// importing is a ledger that takes the files of an earlier version over.
func (w *world) importing() {
	w.Ledger = ledger.New(w.Home, w.Disk, Facts())
	w.Ledger.Imports = []ledger.Import{{Store: "update", Former: Former(), Add: w.Import}}
}

// The files of an earlier version are taken over: the archive with its times, the claims of living and dead processes, what was to be archived
// or restored, and who reported what is pending.
func TestImport(t *testing.T) {
	w := newWorld(t)
	const at = `"at":"2026-11-20T09:00:00+01:00"`
	one := func(message, rest string) string {
		return `{"ts":"2026-11-20T08:00:00Z","message":"` + message + `"` + rest + `}`
	}
	w.put(w.Home.State("updates.jsonl"), strings.Join([]string{
		one("gone", `,"became":"added",`+at+`,"by":"r0"`), one("gone", `,"became":"popped",`+at+`,"to":"r1"`),
		one("over", `,"became":"added",`+at+`,"by":"r0"`), one("over", `,"became":"dropped",`+at),
		one(sentinel(1), `,"became":"cleared","omitted":1,`+at+`,"to":"owner"`), `{"torn`,
		one("pending", `,"became":"added",`+at+`,"by":"owner"`), one("half", `,"became":"popped",`+at+`,"to":"r5"`), "",
	}, "\n"))
	w.put(w.Home.PendingUpdates(), `[`+one("pending", "")+`]`)
	claim := func(name, message, rest string) {
		w.put(filepath.Join(w.Home.State(formerClaims), name), `{"at":"2026-11-21T08:00:00Z",`+rest+`"updates":[`+one(message, "")+`]}`)
	}
	g := w.guard()
	claim("a.json", "alive", `"run":"r2","lock":"`+g.File().Name()+`",`)
	claim("b.json", "returned", `"run":"r3",`)
	claim("c.json", "started", `"run":"r4",`)
	claim("d.done", "delivered", `"run":"r5",`)
	claim("e.done", "half", `"run":"r5",`)
	claim("f.done", "thrown", `"run":"owner","cleared":true,`)
	w.put(filepath.Join(w.Home.State(formerClaims), "g.json"), "{")
	w.started["r2"], w.started["r4"] = true, true

	for range 2 {
		w.importing()
		w.expect("pending returned")
		if list, err := w.Peek(t.Context()); err != nil || list[0].By != "owner" {
			t.Errorf("%+v, %v", list, err)
		}
	}
	w.expectFates("gone popped r1", "over dropped", "(1) cleared owner", "half popped r5", "delivered popped r5", "thrown cleared owner", "started popped r4")
	for f := range w.Fates(noon().AddDate(-1, 0, 0)) {
		if f.Message == "gone" && (f.By != "r0" || !f.At.Equal(noon().AddDate(0, 0, -1).Add(-4*60*60e9))) {
			t.Errorf("%+v", f)
		}
	}
	if c := w.claims(); len(c) != 1 || c[0].Run != "r2" {
		t.Errorf("claims %+v", c)
	}
	g.Release()
	w.expect("pending returned")
	if got := w.fates(); !slices.Contains(got, "alive popped r2") {
		t.Errorf("%q", got)
	}
	for _, name := range Former() {
		if exists(w.Home.State(name)) || !exists(w.Home.State("former", name)) {
			t.Errorf("%s is not put away", name)
		}
	}
}

// What the queue was to be restored to is restored, whatever of it was done.
func TestImportRestores(t *testing.T) {
	for _, rest := range []string{`"array"`, `"claim"`, `"array" "claim"`, ``} {
		w := newWorld(t)
		const queue = `[{"ts":"2026-11-20T08:00:00Z","message":"(2 earlier update(s) omitted — cap reached)"},{"ts":"2026-11-20T08:00:01Z","message":"a"}]`
		w.put(filepath.Join(w.Home.State(formerClaims), "x.back"), `{"updates":`+queue+`}`)
		if strings.Contains(rest, "array") {
			w.put(w.Home.PendingUpdates(), queue)
		}
		if strings.Contains(rest, "claim") {
			w.put(filepath.Join(w.Home.State(formerClaims), "x.json"), `{"run":"r","updates":`+queue+`}`)
		}
		w.started["r"] = true
		w.importing()
		w.expect("(2) a")
		w.expectFates()
	}
}

// A queue that another program has written needs no facts to be read.
func TestImportOfNothing(t *testing.T) {
	w := newWorld(t)
	w.put(w.Home.PendingUpdates(), array(0, "00:01 a"))
	w.importing()
	w.expect("a")
	if _, err := os.Stat(w.Home.State("ledger")); err == nil {
		t.Error("Peek made a ledger")
	}
}
