package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// memory is what a file keeps of earlier runs, by test and changed package.
type memory map[string]reach

// reach is what a test reached of a package.
type reach struct {
	Of     string        // hash of the package and of the test
	Fails  bool          `json:",omitempty"` // without a change
	Took   time.Duration // alone
	Places []string      // of changes
}

// reach runs each test alone and notes which changes it reaches, unless the file kept says so and neither the test nor a changed package
// is another one since; "" is no file.
func (b *build) reach(kept string) error {
	known := memory{}
	if text, err := os.ReadFile(kept); err == nil && len(text) > 0 {
		if err := json.Unmarshal(text, &known); err != nil {
			return fmt.Errorf("%s: %w", kept, err)
		}
	}
	packages := map[string]string{}
	for _, s := range b.suites {
		if len(b.in(s.dir)) > 0 {
			packages[s.dir] = hashOf(filepath.Join(s.dir, "*.go"), "_test.go")
		}
	}
	var mu sync.Mutex
	for _, s := range b.suites {
		err := b.each(len(s.tests), func(w *worker, i int) error { return w.learn(&mu, known, s, s.tests[i], packages) })
		if err != nil {
			return err
		}
		for _, test := range s.tests {
			b.note(known, s, test, packages)
		}
		if err := known.store(kept); err != nil {
			return err
		}
	}
	return nil
}

// key is the key of what a test of the suite reaches of a package.
func (s *suite) key(test, dir string) string { return s.dir + " " + test + " " + dir }

// learn runs one test alone, unless what it reaches of packages, which are hashes by directory, is known already. mu guards known.
func (w *worker) learn(mu *sync.Mutex, known memory, s *suite, test string, packages map[string]string) error {
	ran, source := false, s.source(test)
	mu.Lock()
	for dir, hash := range packages {
		ran = ran || known[s.key(test, dir)].Of != hash+source
	}
	mu.Unlock()
	if !ran {
		return nil
	}
	_ = os.Remove(w.path("reached"))
	if err := os.WriteFile(w.path("on"), []byte("reach"), 0o600); err != nil {
		return err
	}
	began := time.Now()
	passes := w.run(s, 10*time.Minute, test).passes
	took := time.Since(began)
	places, err := w.placesReached()
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	for dir, hash := range packages {
		known[s.key(test, dir)] = reach{hash + source, !passes, took, places[dir]}
	}
	return nil
}

// note gives the suite what is known of a test.
func (b *build) note(known memory, s *suite, test string, packages map[string]string) {
	fails := false
	for dir := range packages {
		r := known[s.key(test, dir)]
		fails, s.took[test] = fails || r.Fails, r.Took
	}
	if fails {
		_, _ = fmt.Fprintf(os.Stderr, "left out, because it fails without a change: %s %s\n", s.dir, test)
		return
	}
	for dir := range packages {
		for _, place := range known[s.key(test, dir)].Places {
			if i, ok := b.places[place]; ok {
				s.reached[i] = append(s.reached[i], test)
			}
		}
	}
}

// store writes the memory to a file; "" is none.
func (m memory) store(file string) error {
	if file == "" {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// placesReached reads which changes were reached, and lists their places by package.
func (w *worker) placesReached() (map[string][]string, error) {
	text, err := os.ReadFile(w.path("reached"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	places, seen := map[string][]string{}, map[int]bool{}
	for line := range strings.Lines(string(text)) {
		i, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || seen[i] { // two processes may have written at once
			continue
		}
		seen[i] = true
		if c, ok := w.all[i]; ok {
			dir := filepath.Dir(c.file)
			places[dir] = append(places[dir], c.place())
		}
	}
	return places, nil
}

// source is a hash of the files that a test consists of.
func (s *suite) source(test string) string {
	if script, ok := strings.CutPrefix(test, "TestScript/"); ok {
		return hashOf(filepath.Join(s.dir, "testdata/script", script+".txtar"), " ")
	}
	return hashOf(filepath.Join(s.dir, "*_test.go"), " ")
}

// hashOf returns a hash of the files that match a pattern, without those of the suffix.
func hashOf(pattern, but string) string {
	files, _ := filepath.Glob(pattern)
	sum := sha256.New()
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, but) {
			_, _ = fmt.Fprintf(sum, "%s %d\n%s", file, len(text), text)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
