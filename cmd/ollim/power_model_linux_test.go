package main

import (
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// modelled runs a script of the shell under strace in a directory, and returns the model after it.
func modelled(t *testing.T, script string) *disk {
	t.Helper()
	root := filepath.Join(t.TempDir(), "tree")
	if err := os.MkdirAll(filepath.Join(root, "safe"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "old"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	model, err := newDisk(root, filepath.Join(root, "safe"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Dir = root
	out, code, calls := record(t, cmd)
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, out)
	}
	for _, c := range calls {
		if _, err := model.apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := model.top.differs(root); err != nil {
		t.Fatal(err)
	}
	return model
}

// outcomes returns all trees that a power failure leaves in many tries, each as a list of names and contents.
func (d *disk) outcomes(t *testing.T) (all []string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "left")
	for seed := range 200 {
		random := rand.New(rand.NewSource(int64(seed)))
		if err := d.write(&choice{random: random, keep: 50, torn: seed%2 == 0}, to); err != nil {
			t.Fatal(err)
		}
		text := ""
		err := filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			text += e.Name() + "=" + string(data) + " "
			return err
		})
		if err != nil || os.RemoveAll(to) != nil {
			t.Fatal(err)
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// TestPowerModel: what is left after a power failure is every mixture of what was synced and what was not, and nothing else.
func TestPowerModel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"a synced file in a synced directory": {`echo a > new; sync new .`, []string{"new=a\n old=old "}},
		"a synced file without its name":      {`echo a > new; sync new`, []string{"new=a\n old=old ", "old=old "}},
		"a name without its content":          {`: > new; sync .; echo a > new; `, []string{"new=\x00\x00 old=old ", "new= old=old ", "new=a\x00 old=old ", "new=a\n old=old ", "new=a old=old "}},
		"a rename of what is synced":          {`echo a > new; sync new .; mv new old`, []string{"new=a\n old=old ", "old=a\n "}},
		"a rename between directories":        {`mkdir "$PWD/d"; sync .; mv old d/new; sync .`, []string{"new=old ", "old=old "}},
		"a removal":                           {`rm old`, []string{"", "old=old "}},
		"a removal that is synced":            {`rm old; sync .`, []string{""}},
		"a file in a new directory":           {`mkdir "$PWD/d"; echo a > d/new; sync d/new d`, []string{"new=a\n old=old ", "old=old "}},
		"two names":                           {`ln old second; rm old; sync .`, []string{"second=old "}},
		"a safe directory":                    {`echo a > safe/new`, []string{"old=old new=a\n "}},
		"an appended line":                    {`sh -c 'exec 3>>old; echo 1 >&3'; sync old`, []string{"old=old1\n "}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := modelled(t, test.script).outcomes(t); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestParseTrace: a call that another process interrupts counts when it ends, and one that fails does not count.
func TestParseTrace(t *testing.T) {
	calls, err := parseTrace("7  fsync(3<\\x2f\\x61> <unfinished ...>\n8  write(4<\\x2f\\x61>, \"\\x62\\x0a\", 2) = 2\n" +
		"7  <... fsync resumed>)   = 0\n8  unlink(\"\\x2f\\x61\") = -1 ENOENT (No such file or directory)\n8  +++ exited with 0 +++\n")
	if err != nil || len(calls) != 2 || calls[1].name != "fsync" || calls[1].began != 0 || calls[1].ended != 1 {
		t.Fatalf("%+v, %v", calls, err)
	}
	text, err := quotedText(calls[0].args[1])
	if _, path := descriptor(calls[0].args[0]); err != nil || text != "b\n" || path != "/a" {
		t.Errorf("%q to %q, %v", text, path, err)
	}
	for _, bad := range []string{"nothing\n", "8  write(4<\\x2f\\x61>, \"\\x62\"..., 9) = 9\n"} {
		if _, err := parseTrace(bad); err == nil {
			t.Errorf("%q was understood", bad)
		}
	}
}
