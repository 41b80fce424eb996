package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// fakeCrontab keeps the crontab in a file, and the number of times that it was written in another. As in Debian -l shows two
// control characters as escapes, and -e does not.
const fakeCrontab = `#!/bin/sh
cd "${0%/*}"
case $1 in
-l) test -e table || { echo "no crontab for ada" >&2; exit 1; }
	sed 's/\r/\\r/g; s/\x08/\\b/g' table ;;
-e) $EDITOR table; echo "No modification made" >&2 ;;
*) cat "$1" >draft && mv draft table && echo >>written ;;
esac
`

// theTable is a Table over the program, a shell script, and the directory in which that lives.
func theTable(t *testing.T, script string) (Table, string) {
	t.Helper()
	dir := t.TempDir()
	if err := testkit.WriteFile(filepath.Join(dir, "crontab"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	disk := store.Disk{Now: time.Now, Warn: func(message string) { t.Error(message) }}
	return Table{Home: paths.Dir(filepath.Join(dir, "data")), Disk: disk, Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}, dir
}

func merge(block string) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) { return Merge(old, block) }
}

func remove(old []byte) ([]byte, error) {
	rest, _, err := Remove(old)
	return rest, err
}

// edit is an Edit that must go well.
func edit(t *testing.T, table Table, change func([]byte) ([]byte, error)) (changed bool) {
	t.Helper()
	changed, err := table.Edit(context.Background(), change)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTableKeepsForeignBytes(t *testing.T) {
	table, dir := theTable(t, fakeCrontab)
	file, written := filepath.Join(dir, "table"), filepath.Join(dir, "written")
	gen := tables(strings.TrimSpace(begin), strings.TrimSpace(end), strings.TrimSpace(noted))
	for i := range testkit.Full(100, 8) {
		old := gen.Example(i)
		put(t, file, old)
		rest, _, err := Remove([]byte(old))
		if err != nil {
			for _, change := range []func([]byte) ([]byte, error){merge(block), remove} {
				if changed, err := table.Edit(context.Background(), change); !errors.Is(err, ErrMarkers) || changed || fileText(t, file) != old {
					t.Fatalf("%q: %v, %v, %q", old, changed, err, fileText(t, file))
				}
			}
			continue
		}
		edit(t, table, merge(block))
		put(t, written, "")
		if edit(t, table, merge(block)) || fileText(t, written) != "" {
			t.Fatalf("%q: written again", old)
		}
		edit(t, table, merge(other))
		now := fileText(t, file)
		if got, _, err := Extract([]byte(now)); err != nil || got != other || !strings.HasPrefix(now, string(rest)) {
			t.Fatalf("%q: %v: %q", old, err, now)
		}
		if !edit(t, table, remove) || fileText(t, file) != string(rest) {
			t.Fatalf("%q: afterwards %q", old, fileText(t, file))
		}
	}
}

func TestTableOfManyLines(t *testing.T) {
	table, dir := theTable(t, fakeCrontab)
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "%d * * * * echo \"line %d\" # BEGIN\r\n", i%60, i)
	}
	put(t, filepath.Join(dir, "table"), b.String()+"last")
	edit(t, table, merge(block))
	edit(t, table, remove)
	if fileText(t, filepath.Join(dir, "table")) != b.String()+"last" {
		t.Error("not as it was")
	}
}

// Eight at once, some of which install and some of which remove: none takes what another wrote for foreign. One that has waited too long for
// the others on a busy machine tries again.
func TestTableOfManyWriters(t *testing.T) {
	table, dir := theTable(t, fakeCrontab)
	const foreign = "MAILTO=ada\r\n0 1 * * * backup"
	put(t, filepath.Join(dir, "table"), foreign)
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			change := merge(strings.Replace(other, "-- x", fmt.Sprintf("-- x%d", i), 1))
			if i%4 == 3 {
				change = remove
			}
			for range 3 {
				err := lock.ErrBusy
				for errors.Is(err, lock.ErrBusy) {
					_, err = table.Edit(context.Background(), change)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	edit(t, table, merge(block))
	if got := fileText(t, filepath.Join(dir, "table")); !strings.HasPrefix(got, foreign+"\n"+begin) || strings.Count(got, "ollim tick") != 1 {
		t.Errorf("%q", got)
	}
	edit(t, table, remove)
	if got := fileText(t, filepath.Join(dir, "table")); got != foreign {
		t.Errorf("%q", got)
	}
}

// What it was is kept before each change, for the last twenty.
func TestTableBackups(t *testing.T) {
	table, dir := theTable(t, fakeCrontab)
	for i := range 23 {
		put(t, filepath.Join(dir, "table"), fmt.Sprintf("# %d\n", i))
		edit(t, table, merge(block))
	}
	kept, err := os.ReadDir(table.Home.State("backups"))
	if err != nil || len(kept) != 20 {
		t.Fatalf("%d, %v", len(kept), err)
	}
	for i, e := range kept {
		if got, want := fileText(t, filepath.Join(table.Home.State("backups"), e.Name())), fmt.Sprintf("# %d\n", i+3); got != want {
			t.Errorf("%s: %q, want %q", e.Name(), got, want)
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", e.Name(), info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(table.Home.State(".crontab.tmp-*")); len(left) > 0 {
		t.Errorf("drafts are left: %q", left)
	}
}

// In Debian -n is a dry run; in cronie it sets the host of a cluster, and only root may.
func TestTableUsesNoOptionsThatDiffer(t *testing.T) {
	table, dir := theTable(t, strings.Replace(fakeCrontab, "*) cat", "-*) echo \"must be privileged\" >&2; exit 1 ;;\n*) cat", 1))
	edit(t, table, merge(block))
	edit(t, table, remove)
	if got := fileText(t, filepath.Join(dir, "table")); got != "" {
		t.Errorf("%q", got)
	}
}

func TestTableRefused(t *testing.T) {
	const foreign = "0 1 * * * grep '\\bx' backup\r\n"
	for name, c := range map[string]struct{ from, to, why string }{
		"a list that breaks off":   {"-l) test", "-l) cat table; exit 1;; -x) test", "exit status 1"},
		"no right to it":           {"-l) test", "-l) echo 'not allowed to use this program' >&2; exit 1;; -x) test", "not allowed"},
		"a killed list":            {"-l) test", "-l) kill -9 $$;; -x) test", "signal: killed"},
		"another one to edit":      {"-e) $EDITOR table", "-e) echo", "crontab -e edits a different crontab than crontab -l prints"},
		"none to edit":             {"-e) $EDITOR table", "-e) exit 1", "crontab -e: exit status 1"},
		"not taken":                {"*) cat", "*) echo 'bad minute' >&2; exit 1;; -x) cat", "was rejected: exit status 1: bad minute"},
		"taken, and changed by it": {"mv draft table", "tr a-z A-Z <draft >table", "reads back differently"},
		"a list that is too long":  {"-l) test", "-l) head -c 17000000 /dev/zero;; -x) test", "larger than 16 MiB"},
	} {
		table, dir := theTable(t, strings.Replace(fakeCrontab, c.from, c.to, 1))
		put(t, filepath.Join(dir, "table"), foreign)
		_, err := table.Edit(context.Background(), merge(block))
		if !errors.Is(err, ErrTable) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
		if got := fileText(t, filepath.Join(dir, "table")); got != foreign && c.from != "mv draft table" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// debianUser has no crontab of its own, and nobody misses it. The users of TestCronFires are others.
const debianUser = "uucp"

// debianTable is the real crontab of a user, as root sees it.
func debianTable(t *testing.T) (table Table, spool string) {
	t.Helper()
	testkit.Program(t, "crontab", "cron")
	spool = filepath.Join("/var/spool/cron/crontabs", debianUser)
	if _, err := os.Stat(filepath.Dir(spool)); err != nil || os.Getuid() != 0 {
		testkit.Missing(t, "needs root, and Debian's cron: apt-get install cron")
	}
	if _, err := os.Stat(spool); err == nil {
		testkit.Missing(t, "%[1]s has a crontab: crontab -u %[1]s -r", debianUser)
	}
	t.Cleanup(func() { _ = exec.Command("crontab", "-u", debianUser, "-r").Run() })
	path, err := exec.LookPath("crontab")
	if err != nil {
		t.Fatal(err)
	}
	table, _ = theTable(t, "#!/bin/sh\nexec "+path+" -u "+debianUser+" \"$@\"\n")
	return table, spool
}

func TestTableOfDebian(t *testing.T) {
	table, spool := debianTable(t)
	read := func() string {
		t.Helper()
		text, err := table.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	jobs := hard(t)
	real, _, err := Crontab(host(t), jobs)
	if err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{"", "\n", "# a\n\n \t# b\nA = 'b'\n  5\t4 1 1 *\techo \xff %x\r\n# \b \\b \\r \\x\n", strings.Repeat("0 5 1 1 * true\n", 9_000)} {
		if foreign != "" {
			edit(t, table, func([]byte) ([]byte, error) { return []byte(foreign), nil })
		}
		edit(t, table, merge(real))
		if got := read(); got != foreign+real {
			t.Fatalf("%.80q: %.300q", foreign, got)
		}
		if edit(t, table, merge(real)) || !edit(t, table, remove) || read() != foreign {
			t.Errorf("%.80q: %.300q", foreign, read())
		}
	}

	// It takes no table without a final newline, and none with a bad line, but such can have come to be there.
	const cut = "0 5 1 1 * true"
	put(t, spool, cut)
	edit(t, table, merge(block))
	edit(t, table, remove)
	if got := read(); got != cut+"\n" {
		t.Errorf("%q", got)
	}
	for _, foreign := range []string{"61 5 1 1 * true\n", strings.Repeat("0 5 1 1 * true\n", 10_000)} {
		put(t, spool, foreign)
		if _, err := table.Edit(context.Background(), merge(block)); !errors.Is(err, ErrTable) || read() != foreign {
			t.Errorf("%.80q: %v", foreign, err)
		}
	}
}

// What was there before is in the backups even if the data directory is new.
func TestTableKeepsWhatItReplaces(t *testing.T) {
	table, dir := theTable(t, fakeCrontab)
	put(t, filepath.Join(dir, "table"), "a\xff\r\nb\b\\b")
	edit(t, table, merge(block))
	kept, err := filepath.Glob(filepath.Join(table.Home.State("backups"), "*"))
	if err != nil || len(kept) != 1 || !bytes.Equal([]byte(fileText(t, kept[0])), []byte("a\xff\r\nb\b\\b")) {
		t.Errorf("%q, %v", kept, err)
	}
}
