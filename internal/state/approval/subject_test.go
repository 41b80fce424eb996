package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"pgregory.net/rapid"
)

func TestPlainJobIsNotWidened(t *testing.T) {
	d := newDesk(t)
	j := job.New(job.Routine)
	j.ID, j.Body, j.AllowedTools, j.Dirs, j.Skills = "p1", "Do.", []string{}, []string{}, []string{}
	if s, widened, err := d.Of(j); widened || err != nil || s.Key != "" {
		t.Errorf("%+v, %v, %v", s, widened, err)
	}
}

func TestEachFieldWidens(t *testing.T) {
	for key, set := range map[string]func(*job.Job){
		"allowed-tools": func(j *job.Job) { j.AllowedTools = []string{"WebFetch"} },
		"gate":          func(j *job.Job) { j.Gate = "g" },
		"after":         func(j *job.Job) { j.After = "g" },
		"verify":        func(j *job.Job) { j.Verify = "g" },
		"unsealed":      func(j *job.Job) { j.Unsealed = []string{"gate"} },
		"heartbeat":     func(j *job.Job) { j.Heartbeat = "https://a.example" },
		"dirs":          func(j *job.Job) { j.Dirs = []string{"/a"} },
		"subagent":      func(j *job.Job) { j.Subagent = "a" },
		"fallback":      func(j *job.Job) { j.Fallback = []string{"a", "b"} },
		"skills":        func(j *job.Job) { j.Skills = []string{"s"} },
	} {
		d, j := newDesk(t), job.New(job.Reminder)
		set(&j)
		if got := d.of(j).Widening(); !slices.Equal(got, []string{key}) {
			t.Errorf("%s: %v", key, got)
		}
	}
}

// An approval covers what the seal allowed: tightening it needs none, loosening it does.
func TestApprovalOfTheSeal(t *testing.T) {
	tight := func(seal, network string) job.Job {
		j := widened()
		j.Seal, j.Network = seal, network
		return j
	}
	any, none, on := job.NetworkAny, job.NetworkNone, job.SealOn
	for _, c := range []struct {
		was, is job.Job
		want    bool
	}{
		{tight("", any), tight("", none), true},
		{tight("", any), tight(on, any), true},
		{tight("", any), tight(on, none), true},
		{tight(on, any), tight(on, none), true},
		{tight("", none), tight(on, none), true},
		{tight("", none), tight("", any), false},
		{tight("", none), tight(on, any), false},
		{tight(on, any), tight("", any), false},
		{tight(on, any), tight("", none), false},
		{tight(on, none), tight("", none), false},
	} {
		d := newDesk(t)
		d.approve(d.of(c.was))
		if ok, err := d.Approved(d.of(c.is)); ok != c.want || err != nil {
			t.Errorf("from seal %q, network %s to seal %q, network %s: %v, %v", c.was.Seal, c.was.Network, c.is.Seal, c.is.Network, ok, err)
		}
	}
	j := job.New(job.Routine)
	j.ID, j.Seal, j.Network = "p1", on, none
	if _, widened, err := newDesk(t).Of(j); widened || err != nil {
		t.Errorf("seal and network alone widen a job: %v", err)
	}
}

func TestFilesOfAJob(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	d.write("skills/other/SKILL.md", "not named")
	want := []string{
		"agents/scout.md", "gates/check", "gates/clean", "skills/maps/SKILL.md", "skills/maps/lib/.hidden", "skills/news/SKILL.md",
	}
	s := d.of(widened())
	if got := sortedKeys(s.Files); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	for name, got := range s.Files {
		if want := sha256.Sum256([]byte("text of " + name)); got != hex.EncodeToString(want[:]) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	d := newDesk(t)
	s := d.of(widened())
	want := map[string]string{
		"agents/scout.md": missingFile, "gates/check": missingFile, "gates/clean": missingFile, "skills/maps": missingFile, "skills/news": missingFile,
	}
	if !maps.Equal(s.Files, want) {
		t.Errorf("%v", s.Files)
	}
	d.approve(s)
	d.approved(d.of(widened()), true)
	d.write("gates/check", "")
	d.approved(d.of(widened()), false)
}

func TestGateBehindALink(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	if err := errors.Join(os.Remove(d.Home.Gate("check")), os.Symlink("../bin/real", d.Home.Gate("check"))); err != nil {
		t.Fatal(err)
	}
	if got := d.of(widened()).Files["gates/check"]; got != missingFile {
		t.Errorf("a link to nothing: %q", got)
	}
	d.write("bin/real", "a")
	before := d.of(widened())
	d.write("bin/real", "b")
	if d.of(widened()).Digest() == before.Digest() {
		t.Error("what the link leads to does not count")
	}
}

func TestUnfit(t *testing.T) {
	for name, spoil := range map[string]func(*desk) error{
		"gates/check":     func(d *desk) error { return remake(d.Home.Gate("check"), os.Mkdir) },
		"gates/clean":     func(d *desk) error { return remake(d.Home.Gate("clean"), pipe) },
		"agents/scout.md": func(d *desk) error { return remake(d.Home.Agent("scout"), os.Mkdir) },
		"skills/maps/lib/.hidden": func(d *desk) error {
			return remake(d.Home.Path("skills/maps/lib/.hidden"), func(p string, _ os.FileMode) error { return os.Symlink("../SKILL.md", p) })
		},
		"skills/news/pipe": func(d *desk) error { return pipe(d.Home.Path("skills/news/pipe"), 0o600) },
		"skills/news/dir":  func(d *desk) error { return os.Symlink("../maps", d.Home.Path("skills/news/dir")) },
		"skills/news":      func(d *desk) error { return remake(d.Home.Path("skills/news"), newFile) },
		"skills/maps":      func(d *desk) error { return os.Truncate(d.Home.Skill("maps"), maxBytes+1) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.furnish()
			if err := spoil(d); err != nil {
				t.Fatal(err)
			}
			var unfit *Unfit
			_, widened, err := d.Of(widened())
			if !widened || !errors.As(err, &unfit) || unfit.Path != name {
				t.Errorf("widened %v, %v", widened, err)
			}
		})
	}
}

func TestTooManyFiles(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	for n := range maxEntries {
		d.write("skills/maps/"+strconv.Itoa(n), "")
	}
	if _, err := d.OfSkill("maps"); !errors.As(err, new(*Unfit)) {
		t.Errorf("%v", err)
	}
}

func remake(path string, make func(string, os.FileMode) error) error {
	return errors.Join(os.RemoveAll(path), make(path, 0o700))
}

func pipe(path string, mode os.FileMode) error { return syscall.Mkfifo(path, uint32(mode)) }

func newFile(path string, mode os.FileMode) error { return os.WriteFile(path, nil, mode) }

func TestOfSkill(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	s, err := d.OfSkill("maps")
	if err != nil || s.Key != "skill:maps" || s.Kind != "skill" || len(s.Files) != 2 || !slices.Equal(s.Widening(), []string{"commands"}) {
		t.Errorf("%+v, %v", s, err)
	}
	d.approve(s)
	d.approved(s, true)
	d.write("skills/maps/new", "")
	s, _ = d.OfSkill("maps")
	d.approved(s, false)
	d.approved(d.of(widened()), false)
}

// What gives no power makes no difference, nor does the order or the spelling of a list.
func TestDigestOfUnrelatedFields(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	want := d.of(widened()).Digest()
	for name, change := range map[string]func(*job.Job){
		"cron":          func(j *job.Job) { j.Cron = "@daily" },
		"description":   func(j *job.Job) { j.Description = "other" },
		"path":          func(j *job.Job) { j.Path = "routines/other.md" },
		"enabled":       func(j *job.Job) { j.Enabled = false },
		"timeout":       func(j *job.Job) { j.Timeout = time.Hour },
		"model":         func(j *job.Job) { j.Model = "opus" },
		"order":         func(j *job.Job) { slices.Reverse(j.AllowedTools); slices.Reverse(j.Skills); slices.Reverse(j.Dirs) },
		"said twice":    func(j *job.Job) { j.AllowedTools = append(j.AllowedTools, "WebFetch") },
		"nothing":       func(*job.Job) {},
		"time and mode": func(j *job.Job) { j.Background, j.Isolated, j.RunAt = true, true, time.Unix(1, 0) },
	} {
		j := widened()
		change(&j)
		if d.of(j).Digest() != want {
			t.Errorf("%s changes the digest", name)
		}
	}
}

func TestDigestOfEachField(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	for name, change := range map[string]func(*job.Job){
		"id":       func(j *job.Job) { j.ID = "W1" },
		"kind":     func(j *job.Job) { j.Kind = job.Reminder },
		"body":     func(j *job.Job) { j.Body += " " },
		"bytes":    func(j *job.Job) { j.Body += "\xff" },
		"tool":     func(j *job.Job) { j.AllowedTools[0] = "WebSearch" },
		"less":     func(j *job.Job) { j.AllowedTools = j.AllowedTools[:1] },
		"moved":    func(j *job.Job) { j.AllowedTools, j.Dirs = j.AllowedTools[:1], append(j.Dirs, "Bash(curl *)") },
		"dir":      func(j *job.Job) { j.Dirs[0] = "rw:~/src" },
		"gate":     func(j *job.Job) { j.Gate = "" },
		"swapped":  func(j *job.Job) { j.Gate, j.After = j.After, j.Gate },
		"after":    func(j *job.Job) { j.After = "" },
		"verify":   func(j *job.Job) { j.Verify = "check" },
		"moved on": func(j *job.Job) { j.Verify, j.After = j.After, "" },
		"unsealed": func(j *job.Job) { j.Unsealed = []string{"gate"} },
		"call":     func(j *job.Job) { j.Heartbeat = "https://a.example" },
		"subagent": func(j *job.Job) { j.Subagent = "other" },
		"skills":   func(j *job.Job) { j.Skills = j.Skills[1:] },
		"fallback": func(j *job.Job) { j.Fallback = []string{"sonnet"} },
	} {
		j := widened()
		change(&j)
		if d.of(j).Digest() == d.of(widened()).Digest() {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

// Parsed jobs count: how the file spells a key does not.
func TestDigestOfSpelling(t *testing.T) {
	d := newDesk(t)
	var digests []string
	for _, key := range []string{"allowed-tools", "allowed_tools"} {
		j, err := job.Parse(job.Routine, "a.md", []byte("---\nid: a\ncron: \"@daily\"\n"+key+": [WebFetch]\n---\nDo.\n"))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d.of(j).Digest())
	}
	if digests[0] != digests[1] {
		t.Errorf("%v", digests)
	}
}

// Every byte of every file counts, and its name.
func TestDigestOfEachByte(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := deskAt(t, dir)
		d.furnish()
		before := d.of(widened())
		name := rapid.SampledFrom(sortedKeys(before.Files)).Draw(t, "name")
		data := []byte(d.read(d.Home.Path(name)))
		i := rapid.IntRange(0, len(data)).Draw(t, "at")
		b := rapid.Byte().Draw(t, "byte")
		changed := i == len(data) || data[i] != b
		if i < len(data) {
			data[i] = b
		} else {
			data = append(data, b)
		}
		d.write(name, string(data))
		if after := d.of(widened()); (after.Digest() != before.Digest()) != changed {
			t.Errorf("%s: byte %d to %d: changed %v", name, i, b, changed)
		}
	})
}

// Two subjects have one digest only if they are the same, also where their texts run into each other.
func TestDigestTellsApart(t *testing.T) {
	texts := rapid.SliceOfN(rapid.StringMatching(`[0-9:;,]{0,4}`), 0, 3)
	subject := rapid.Custom(func(t *rapid.T) Subject {
		word := func(label string) string { return rapid.StringMatching(`[0-9:;,]{0,4}`).Draw(t, label) }
		s := Subject{Key: word("key"), Kind: word("kind"), Body: word("body"), Files: map[string]string{}}
		s.Fields = fields{AllowedTools: texts.Draw(t, "tools"), Gate: word("gate"), After: word("after"), Dirs: texts.Draw(t, "dirs")}
		s.Fields.Seal, s.Fields.Network = word("seal"), word("network")
		s.Fields.Verify, s.Fields.Heartbeat = word("verify"), word("heartbeat")
		s.Fields.Unsealed, s.Fields.Fallback = texts.Draw(t, "unsealed"), texts.Draw(t, "fallback")
		for _, name := range texts.Draw(t, "files") {
			s.Files[name] = word("digest")
		}
		return s
	})
	parts := func(s Subject) string { return fmt.Sprintf("%q", []any{s.Key, s.Kind, s.Body, s.Fields, s.Files}) }
	rapid.Check(t, func(t *rapid.T) {
		a, b := subject.Draw(t, "a"), subject.Draw(t, "b")
		if same := parts(a) == parts(b); (a.Digest() == b.Digest()) != same {
			t.Errorf("same %v:\n%s\n%s", same, parts(a), parts(b))
		}
	})
}

func TestDigestIsStable(t *testing.T) {
	s := Subject{Key: "a", Kind: "routine", Body: "Do.", Fields: fields{Gate: "g"}, Files: map[string]string{"gates/g": missingFile}}
	const want = "b133bb54fbf4597ea645816734ff995c540a36dfa132acb3c544cd5de679a03e"
	if got := s.Digest(); got != want {
		t.Errorf("got %s: everything that was approved has to be approved again", got)
	}
}

// TestDataOfACommand: a file that a command only reads may change, and one that it executes may not. An approval from when both were covered
// holds while neither changes.
func TestDataOfACommand(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	j := widened()
	j.AllowedTools = []string{"Bash(cat data/x.txt)", "Bash(python3 scripts/r.py)", "Bash(./cat scripts/c)"}
	for _, name := range []string{"data/x.txt", "scripts/r.py", "scripts/c", "cat"} {
		d.write(name, "1")
	}
	all := d.of(j)
	for _, name := range []string{"scripts/r.py", "scripts/c", "cat"} {
		if all.Files[name] == "" {
			t.Errorf("%s is not a part of the subject: %v", name, all.Files)
		}
	}
	if all.Files["data/x.txt"] != "" {
		t.Errorf("data is a part of the subject: %v", all.Files)
	}
	sum := sha256.Sum256([]byte("1"))
	all.Files["data/x.txt"], all.data = hex.EncodeToString(sum[:]), nil
	d.approve(all)
	d.approved(d.of(j), true)
	d.write("data/x.txt", "2")
	d.approved(d.of(j), false)
	d.approve(d.of(j))
	d.write("data/x.txt", "3")
	d.approved(d.of(j), true)
	d.write("scripts/r.py", "2")
	d.approved(d.of(j), false)
	for text, want := range map[string]string{"Bash(cat data/x.txt)": "", "Bash(python3 scripts/r.py)": "scripts/r.py"} {
		p, err := policy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if name, err := d.Altered(p, nil); name != want || err != nil {
			t.Errorf("%s: altered: %q, %v", text, name, err)
		}
	}
}
