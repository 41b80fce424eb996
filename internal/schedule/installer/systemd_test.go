package installer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/testkit"
)

func TestSystemd(t *testing.T) {
	for _, system := range []bool{false, true} {
		h, jobs, name := host(t), someJobs(t), "systemd-user"
		if system {
			h.System, h.Config, jobs, name = true, "/etc/ollim.yaml", jobs[:1], "systemd-system"
		}
		files, err := Systemd(h, jobs)
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, f := range files {
			all.WriteString("==> " + f.Name + "\n" + f.Text + "\n")
		}
		golden(t, name, all.String())
		if reported := strings.Contains(textOf(t, files, "ollim-tick.service"), "\nEnvironment="+UnitsVariable+"=user\n"); reported == system {
			t.Errorf("%s: the tick names a manager: %v", name, reported)
		}
	}
}

func TestSystemdOfTheTickAlone(t *testing.T) {
	h := host(t)
	h.TickOnly = true
	files, err := Systemd(h, someJobs(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	want := []string{"ollim-fire@.service", "ollim-failed@.service", "ollim-tick.service", "ollim-tick.timer"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestSystemdNamesAZoneOnlyWhereItIsNotItsOwn(t *testing.T) {
	jobs := []job.Job{routine(t, "plain", "0 9 * * *"), routine(t, "own", "0 9 * * *", in("Asia/Tokyo"))}
	for _, c := range []struct{ manager, configured, plain, own string }{
		{"Europe/Paris", "Europe/Paris", "", " Asia/Tokyo"},
		{"Asia/Tokyo", "Europe/Paris", " Europe/Paris", ""},
		{"UTC", "Etc/UTC", "", " Asia/Tokyo"},
		{"America/New_York", "UTC", " UTC", " Asia/Tokyo"},
	} {
		h := host(t)
		h.Zone, h.Configured = zone(t, c.manager), zone(t, c.configured)
		files, err := Systemd(h, jobs)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"ollim-job-plain.timer": c.plain, "ollim-job-own.timer": c.own} {
			if text := textOf(t, files, name); !strings.Contains(text, "\nOnCalendar=*-*-* 09:00:00"+want+"\n") {
				t.Errorf("%+v: %s", c, text)
			}
		}
	}
}

// A description is words on one line, whatever it holds.
func TestSystemdDescriptions(t *testing.T) {
	plain, err := Systemd(host(t), []job.Job{routine(t, "x", "0 9 * * *")})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range hostile {
		files, err := Systemd(host(t), []job.Job{routine(t, "x", "0 9 * * *", described(text))})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range files {
			got, want := strings.Split(f.Text, "\n"), strings.Split(plain[i].Text, "\n")
			if len(got) != len(want) {
				t.Fatalf("%q: %s", text, f.Text)
			}
			for n, line := range got[1:] {
				if strings.HasPrefix(line, "Description=") {
					if strings.HasSuffix(line, `\`) || strings.Contains(strings.ReplaceAll(line, "%%", ""), "%") && !strings.Contains(line, "%i") {
						t.Errorf("%q: %s", text, line)
					}
				} else if line != want[n+1] {
					t.Errorf("%q changed a line: %s", text, line)
				}
			}
		}
	}
}

// systemd hands on these words as they are; it was asked.
func TestSystemdQuotes(t *testing.T) {
	h := host(t)
	h.Ollim, h.DataDir, h.Config = "/we ird %h $HOME/ollim", `/srv/50%/$HOME ${X}/"x"/back\slash/it's;`, "/plain"
	files, err := Systemd(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "\nExecStart=" + `"/we ird %%h $HOME/ollim" --data-dir "/srv/50%%/$$HOME $${X}/\"x\"/back\\slash/it's;" --config /plain tick` + "\n"
	if text := textOf(t, files, "ollim-tick.service"); !strings.Contains(text, want) {
		t.Errorf("got %s\nwant %s", text, want)
	}
}

func TestSystemdRefuses(t *testing.T) {
	for _, path := range []string{"", "ollim", "/a\nb", "/a\x00", "/\xff", "/a\u2028b"} {
		h := host(t)
		h.DataDir = path
		if _, err := Systemd(h, nil); !errors.Is(err, ErrUnfit) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{`/a"b`, "/a'b", `/a\b`} { // a directory may be called so
		h := host(t)
		h.Ollim = path
		if _, err := Systemd(h, nil); !errors.Is(err, ErrUnfit) {
			t.Errorf("program %q: %v", path, err)
		}
	}
	for _, user := range []string{"", "a b", "ada\nExecStart=/x", "%u"} {
		h := host(t)
		h.System, h.User = true, user
		if _, err := Systemd(h, nil); !errors.Is(err, ErrUnfit) {
			t.Errorf("user %q: %v", user, err)
		}
	}
	if _, err := Systemd(host(t), []job.Job{routine(t, "a b", "0 9 * * *")}); !errors.Is(err, ErrUnfit) {
		t.Errorf("id: %v", err)
	}
}

// hard is jobs that make the most of what a job file may hold.
func hard(t *testing.T) []job.Job {
	jobs := someJobs(t)
	for i, text := range hostile {
		jobs = append(jobs, routine(t, "h"+strings.Repeat("x", i), "5 4 1-7 */3 sun", described(text)))
	}
	for _, id := range []string{"a-b", "a--b", "a.b", "a.timer", "a.service", "x.d", "A_B", strings.Repeat("z", 64), "0", "tick", "9-"} {
		jobs = append(jobs, routine(t, id, "1-59/7 * * * *", in("America/Argentina/Buenos_Aires")))
	}
	return jobs
}

// systemd itself finds nothing to say about the units, whatever the paths and the jobs are called.
func TestSystemdVerifies(t *testing.T) {
	testkit.Program(t, "systemd-analyze", "systemd")
	for _, system := range []bool{false, true} {
		for i, odd := range []string{"plain", "we ird %h $HOME ${X} é; #"} {
			dir := filepath.Join(t.TempDir(), odd)
			h := host(t)
			h.System, h.User = system, "root"
			h.Ollim, h.DataDir = filepath.Join(dir, "ollim"), hostilePaths[1]+dir
			files, err := Systemd(h, hard(t)[i*7:])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/bin/true", h.Ollim); err != nil {
				t.Fatal(err)
			}
			if out := verify(t, system, files); out != "" {
				t.Errorf("system %v, %s:\n%s", system, odd, out)
			}
		}
	}
}

func TestVerifyWouldSayIt(t *testing.T) {
	testkit.Program(t, "systemd-analyze", "systemd")
	h := host(t)
	h.Ollim = "/bin/true"
	for _, damage := range [][2]string{{"OnCalendar=", "OnCalendar=x"}, {"Type=", "Tipe="}, {"/bin/true", "/bin/no-such"}} {
		files, err := Systemd(h, someJobs(t))
		if err != nil {
			t.Fatal(err)
		}
		for i := range files {
			files[i].Text = strings.ReplaceAll(files[i].Text, damage[0], damage[1])
		}
		if verify(t, false, files) == "" {
			t.Errorf("nothing was said about %s", damage[1])
		}
	}
}

func TestHardeningVerifies(t *testing.T) {
	testkit.Program(t, "systemd-analyze", "systemd")
	h := host(t)
	h.Ollim = "/bin/true"
	files, err := Systemd(h, someJobs(t))
	if err != nil {
		t.Fatal(err)
	}
	example := fileText(t, filepath.Join("..", "..", "..", "contrib", "systemd", hardening))
	for _, folder := range []string{"ollim-job-.service.d", "ollim-fire@.service.d"} {
		if !strings.Contains(example, folder) {
			t.Errorf("the example does not name %s", folder)
		}
		files = append(files, File{Name: filepath.Join(folder, hardening), Text: example})
	}
	if out := verify(t, false, files); out != "" {
		t.Error(out)
	}
	files[len(files)-2].Text += "NoSuchThing=yes\n"
	if verify(t, false, files) == "" {
		t.Error("the drop-in was not read")
	}
}

// mostExposed is the most that systemd-analyze security may say of the listener's unit, which talks to the network all day.
const mostExposed = 30 // tenths

func TestListenerIsHardened(t *testing.T) {
	testkit.Program(t, "systemd-analyze", "systemd")
	path := filepath.Join("..", "..", "..", "contrib", "systemd", listener)
	text := strings.ReplaceAll(fileText(t, path), "ExecStart=ollim", "ExecStart=/bin/true")
	for _, system := range []bool{false, true} {
		if out := verify(t, system, []File{{Name: listener, Text: text}}); out != "" {
			t.Errorf("system %v: %s", system, out)
		}
	}
	cmd := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold="+strconv.Itoa(mostExposed), path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDoorUnit: the unit of a door is correct as one of a user.
func TestDoorUnit(t *testing.T) {
	testkit.Program(t, "systemd-analyze", "systemd")
	text := strings.ReplaceAll(fileText(t, filepath.Join("..", "..", "..", "contrib", "systemd", doorServer)), "ExecStart=ollim", "ExecStart=/bin/true")
	if out := verify(t, false, []File{{Name: doorServer, Text: text}}); out != "" {
		t.Error(out)
	}
	if verify(t, false, []File{{Name: doorServer, Text: text + "NoSuchThing=yes\n"}}) == "" {
		t.Error("the unit was not read")
	}
}

// verify is what systemd-analyze says about the units.
func verify(t *testing.T, system bool, files []File) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"verify", "--recursive-errors=yes", "--man=no"}
	if !system {
		args = append(args, "--user")
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(f.Name) != ".conf" {
			args = append(args, path)
		}
	}
	cmd := exec.Command("systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

func textOf(t *testing.T, files []File, name string) string {
	t.Helper()
	i := slices.IndexFunc(files, func(f File) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no file %s", name)
	}
	return files[i].Text
}

func TestMarked(t *testing.T) {
	files, err := Systemd(host(t), someJobs(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if ours, intact := isMarked(f.Text); !ours || !intact {
			t.Errorf("%s: %v %v", f.Name, ours, intact)
		}
		for _, changed := range []string{f.Text + "\n", f.Text[:len(f.Text)-1], strings.Replace(f.Text, "\n", "\n# mine\n", 1), strings.SplitAfter(f.Text, "\n")[0]} {
			if ours, intact := isMarked(changed); !ours || intact {
				t.Errorf("%s, changed: %v %v", f.Name, ours, intact)
			}
		}
		_, rest, _ := strings.Cut(f.Text, "\n")
		for _, foreign := range []string{"", rest, "\n" + f.Text, "# mine\n" + f.Text, "#" + f.Text} {
			if ours, intact := isMarked(foreign); ours || intact {
				t.Errorf("%q: %v %v", foreign, ours, intact)
			}
		}
	}
}

func TestJobOf(t *testing.T) {
	for name, want := range map[string]string{
		"ollim-job-morning.service": "morning", "ollim-job-morning.timer": "morning", "ollim-fire@a-b.service": "a-b",
		"ollim-job-a.timer.service": "a.timer", "ollim-job-a.timer.timer": "a.timer", "ollim-job-ollim-tick.service": "ollim-tick",
		"ollim-job-x.socket": "", "ollim-job-x": "", "ollim-job-.service": "", "ollim-fire@.service": "", "ollim-tick.service": "",
		"ollim-failed@x.service": "", "x.service": "", "": "", "ollim-job-../x.service": "", "ollim-job-a b.timer": "",
	} {
		if got := JobOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, id := range []string{"morning", "a.b", "a--b", "x.service"} {
		if got := JobOf(instance(id)); got != id {
			t.Errorf("%s: %q", id, got)
		}
	}
	files, err := Systemd(host(t), hard(t))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, f := range files {
		seen[JobOf(f.Name)]++
	}
	for id, n := range seen {
		if id != "" && n != 2 || id == "" && n != 4 {
			t.Errorf("%q: %d files", id, n)
		}
	}
}

// Whose an entry is can be read from it, whatever the directory is called and whatever else it says.
func TestCallOf(t *testing.T) {
	for _, dir := range append(hostilePaths, "/home/ada/.ollim-bot", `/a $HOME/b`, `/a$b`, `/a$$b`, `/a%%b`, `/a\`, `/a\"`, `/a "b" c`, "/a --data-dir /b") {
		h := host(t)
		h.DataDir = dir
		files, err := Systemd(h, []job.Job{routine(t, "x", "0 9 * * *", described("as --data-dir /other fire"))})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			want := dir
			if filepath.Ext(f.Name) == ".timer" {
				want = ""
			}
			if _, got := CallOf(f.Text); got != want {
				t.Errorf("%s: %q, want %q", f.Name, got, want)
			}
		}
	}
	block, _, err := Crontab(host(t), someJobs(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, got := CallOf(block); got != host(t).DataDir {
		t.Errorf("a crontab's: %q", got)
	}
	for _, text := range []string{"", "x", `ExecStart=/x --data-dir "`, "ExecStart=/x --data-dir "} {
		if _, got := CallOf(text); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}
