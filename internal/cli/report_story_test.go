package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// hostile is what a web page could make an agent say, as a script writes it.
const hostile = `<script>document.title="taken"</script></pre></details></style><img src=x onerror='document.title="taken"'>` +
	`<a href="javascript:document.title=1">click</a>` + "\x00\x1b[31mred\x1b[0m \u202etxt.exe\u202c"

// reportWorld makes a world with a week of a routine: runs that went well, one with hostile texts, one with a text of a megabyte, and one
// that failed. The owner was pinged and has an update.
func reportWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.secretsAs("engine.KEY=value-of-a-secret\n", 0o600)
	w.must("routine", "add", "digest", "--cron", "0 9 * * *", "--background", "--description", "<b>The</b> digest", "Summarise <the> news & more.")
	long := strings.Repeat("x", 1_000_000)
	for _, turn := range []string{
		`{tool: ping_user, input: {message: "A <ping>."}}, {tool: report_updates, input: {message: "An <update>."}}, {cost: 0.25}, {text: fine}`,
		`{tool: "<script>", input: {command: ` + strconv.Quote(hostile) + `}}, {text: ` + strconv.Quote(hostile) + `}, {cost: 0.5}`,
		`{text: "` + long + `"}`,
		`{error: "no <service>"}`,
		`{text: fine}`,
	} {
		w.script("turns:\n  - [" + turn + "]\n")
		w.must("tick")
		w.pass(23 * time.Hour)
		w.run("fire", "digest")
		w.pass(time.Hour)
	}
	return w
}

// TestReport: the page has the slots, runs, cost and messages of the time, and what each run did.
func TestReport(t *testing.T) {
	t.Parallel()
	w := reportWorld(t)
	page := w.must("report")
	w.wants(page,
		`<i class=bad>failed</i> no &lt;service&gt;<br><span class=note><a href="#r`, `</a>: digest</span>`, // problems
		`<svg class=row role=img aria-label="digest: `, "<title>", // the timeline
		"$0.75, 100 %, 2 runs", ": $0.25, 1 run</title>", // the cost
		"<i class=kind>ping</i> by <a href=\"#r", "<pre>A &lt;ping&gt;.</pre>", "<i class=kind>update</i> by <a", "<pre>An &lt;update&gt;.</pre>",
		"<b>Prompt</b> </p>\n<pre>Summarise &lt;the&gt; news &amp; more.</pre>", "<b>Tool</b> ping_user</p>\n<pre>message: A &lt;ping&gt;.</pre>", "<b>Answer</b> </p>\n<pre>fine</pre>",
		"Cut after 4,000 of 1,000,000 characters. <code>ollim run log 2026",
	)
	for _, wrong := range []string{"<script", "<img", "<b>The", `href="javascript`, "\x00", "\x1b", "\u202e", "style=", "http://", "https://", " onerror='"} {
		if strings.Contains(page, wrong) {
			t.Errorf("the page has %q", wrong)
		}
	}
	if n := strings.Count(page, "<details class="); n != 5 {
		t.Errorf("%d runs unfold, want 5", n)
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, ` id="`+link[1]+`"`) && !strings.Contains(page, " id="+link[1]+">") {
			t.Errorf("nothing has the id %s", link[1])
		}
	}
	if later := w.must("report", "--since", "25h"); strings.Count(later, "<details class=") != 1 || strings.Contains(later, "<i class=kind>ping") {
		t.Error("--since 25h shows another time")
	}
	if page := w.must("report", "--since", "1s"); !strings.Contains(page, "No run began in this time.") {
		t.Errorf("no time: %s", page)
	}
}

// TestReportOfNotices: the page has what ollim itself told the owner, once.
func TestReportOfNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(t).phone()
	w.must("routine", "add", "watch", "--cron", "30 * * * *", "--background", "Look.")
	w.must("tick")
	w.pass(49 * time.Hour) // the machine is off
	for range 4 {
		w.must("tick")
		w.pass(time.Minute)
	}
	w.gets("^49 slots were missed ")
	page := w.must("report")
	w.wants(page, "<i class=kind>notice</i>", "<pre>49 slots were missed from ", "<i class=missed>missed</i> nothing ran", "49 times, Mon 2 Mar 10:30 to Wed 4 Mar 10:30: watch</span>")
	if n := strings.Count(page, "<article>"); n != 1 {
		t.Errorf("the page has %d messages", n)
	}
}

// TestReportNothing: the page of an empty directory says so.
func TestReportNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wants(w.must("report"), "<p class=none>None.</p>", "<p class=none>Nothing.</p>", "No run began in this time.")
}

// TestReportFile: the page replaces a file, which others cannot read; a terminal gets none.
func TestReportFile(t *testing.T) {
	t.Parallel()
	w := reportWorld(t)
	file := filepath.Join(w.home, "report.html")
	for range 2 {
		if out := w.must("report", "-o", file); out != "" {
			t.Errorf("standard output: %q", out)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 || info.Size() < 10_000 || info.Size() > 100_000 {
		t.Errorf("%v, %v", info, err)
	}
	for path, want := range map[string]status{filepath.Join(file, "below-a-file"): statusUnwritten, w.home: statusUsage, os.DevNull: statusUsage} {
		if r := w.run("report", "-o", path); r.status != int(want) {
			t.Errorf("%s: %+v, want %d", path, r, want)
		}
	}
	_, terminal := testkit.Terminal(t)
	d := w.deps(strings.NewReader(""), terminal, terminal)
	if status := execute(t.Context(), d, []string{"report", "-o", "-"}); status != int(statusUsage) {
		t.Errorf("on a terminal: exit status %d", status)
	}
}

// TestReportOfFaults: records that cannot be read are named, and the rest is there. What has become a secret since is not shown.
func TestReportOfFaults(t *testing.T) {
	t.Parallel()
	w := reportWorld(t)
	w.script("turns: [[{text: the word is sesame-sesame}]]\n")
	w.must("fire", "digest")
	w.secretsAs("engine.KEY=sesame-sesame\n", 0o600)
	runs, err := w.facts().Runs.After(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	newest := runFile(runs[len(runs)-1])
	w.write(runFile(runs[0], "run.json"), "{")
	w.write(newest+"/events.jsonl", w.read(newest+"/events.jsonl")+"{\xff\"torn\n")
	r := w.run("report")
	if r.status != 0 || !strings.Contains(r.errOut, "run "+runs[0]) || !strings.Contains(r.errOut, "omitted 1 event that cannot be read") {
		t.Errorf("%d %s", r.status, r.errOut)
	}
	w.wants(r.out, "Could not be read: run "+runs[0], "the word is [secret]")
	if strings.Contains(r.out, "sesame") || strings.Count(r.out, "<details class=") != 5 {
		t.Error("the page has the secret, or not the other runs")
	}
}

// TestReportInBrowser: in Chromium nothing of a hostile record runs or becomes an element, and the browser has nothing to complain of.
func TestReportInBrowser(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "a browser takes seconds; the other tests of the report read its page")
	browser := testkit.Program(t, "chromium", "chromium")
	w := reportWorld(t)
	file := filepath.Join(w.home, "report.html")
	w.must("report", "-o", file)
	dom, said := browse(t, browser, w.home, file)
	if complaints := console(said); len(complaints) > 0 {
		t.Errorf("on the console: %q", complaints)
	}
	w.wants(dom, "<title>ollim, ", `document.title="taken"&lt;/script&gt;`)
	if n := strings.Count(dom, "<details "); n != 5 {
		t.Errorf("%d runs unfold, want 5", n)
	}
	for _, element := range []string{"<script", "<img", "<b>The", `<a href="javascript`, "<the>", "<title>taken"} {
		if strings.Contains(dom, element) {
			t.Errorf("the document has %s", element)
		}
	}
	// The same page with a script shows that the policy is in force, and that the test would see it.
	text := strings.Replace(w.readHome("report.html"), "<body>", `<body><script>document.title="taken"</script><p style="color:red">`, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, said = browse(t, browser, w.home, file)
	if complaints := console(said); len(complaints) < 2 || strings.Contains(dom, "<title>taken") {
		t.Errorf("with a script: %q", complaints)
	}
}

func (w *world) readHome(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.home, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// browse loads a file in Chromium, and returns its document and what the browser said.
func browse(t *testing.T, browser, home, file string) (dom, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
		"--user-data-dir="+filepath.Join(home, "chromium"), "--dump-dom", "file://"+file)
	cmd.Env = append(os.Environ(), "HOME="+home)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	return out.String(), errOut.String()
}

// console returns the messages of the page among the lines of the browser's log.
func console(log string) (messages []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "CONSOLE") {
			messages = append(messages, line)
		}
	}
	return messages
}

// TestReportOnATerminal: the page goes to a file in the working directory, and its place is said; - is refused.
func TestReportOnATerminal(t *testing.T) {
	w := newWorld(t)
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // also over the page of before
		r := w.onColumns(500, "report")
		if r.status != 0 || r.out != "" || r.errOut != "written; open "+dir+"/ollim-report.html in a browser\n" {
			t.Errorf("%+v", r)
		}
	}
	page, err := os.ReadFile("ollim-report.html")
	if err != nil || string(page) != w.must("report") {
		t.Errorf("the page is not what a pipe gets: %.80q, %v", page, err)
	}
	if r := w.onTerminal("report", "-o", "-"); r.status != 64 || !strings.Contains(r.errOut, "ollim report -o ollim-report.html") {
		t.Errorf("%+v", r)
	}
}
