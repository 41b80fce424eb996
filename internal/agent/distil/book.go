package distil

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book is the distils of one data directory.
type Book struct{ Home paths.Dir }

// try is a line of tries.jsonl.
type try struct {
	Filter string `json:"filter"`
	Why    string `json:"why,omitempty"` // it cannot be used
}

func (b Book) addTry(id string, t try) error {
	return store.AppendJSON(b.Home.Distil(id, "tries.jsonl"), store.Buffered, t)
}

// Begin stores the plan of a new distil.
func (b Book) Begin(p Plan) error {
	if err := store.MkdirOwn(b.Home.Distil(p.ID)); err != nil {
		return err
	}
	return store.WriteJSON(b.Home.Distil(p.ID, "plan.json"), p, store.Buffered)
}

// conclude stores a gate, and the verdict about it last.
func (b Book) conclude(v Verdict, gate []byte) error {
	if err := store.Write(b.Home.Distil(v.ID, "gate"), gate, store.Buffered); err != nil {
		return err
	}
	return store.WriteJSON(b.Home.Distil(v.ID, "verdict.json"), v, store.Buffered)
}

var errCut = errors.New("was cut off before its verdict")

// Verdict returns the verdict about a gate. The error is a *plaintext.Unknown if there is no such distil.
func (b Book) Verdict(id string) (v Verdict, err error) {
	path := b.Home.Distil(filepath.Base(id), "verdict.json")
	data, err := store.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, planErr := os.Stat(b.Home.Distil(filepath.Base(id), "plan.json")); planErr == nil {
			return v, fmt.Errorf("distil %s %w", id, errCut)
		}
		return v, &plaintext.Unknown{What: "distil", Name: id}
	}
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err == nil && (v.ID != filepath.Base(id) || v.Digest == "") {
		err = errors.New("it is damaged")
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// Gate returns the text of a gate as it was judged.
func (b Book) Gate(id string) ([]byte, error) {
	return store.Read(b.Home.Distil(filepath.Base(id), "gate"))
}

// placed is the file that keeps a distil as long as its gate may be in use.
const placed = "placed"

// Place notes that the gate was put in place.
func (b Book) Place(id string) error {
	return store.Write(b.Home.Distil(filepath.Base(id), placed), []byte("\n"), store.Buffered)
}

// Placed reports whether the gate was put in place.
func (b Book) Placed(id string) bool {
	_, err := os.Stat(b.Home.Distil(id, placed))
	return err == nil
}

// List returns the verdicts of all distils that have one, the newest first. bad has the errors of those that cannot be read.
func (b Book) List() (list []Verdict, bad []error, err error) {
	list, bad, err = store.LoadAll(b.Home.State("distils"), b.Verdict)
	return list, slices.DeleteFunc(bad, func(err error) bool { return errors.Is(err, errCut) }), err
}
