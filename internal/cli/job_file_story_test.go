package cli

import (
	"strings"
	"testing"
)

// TestJobFileIsKept: a run keeps the file of its job as it was, comments and all, whatever becomes of the file.
func TestJobFileIsKept(t *testing.T) {
	t.Parallel()
	w, _ := newNativeWorld(t)
	w.must("routine", "add", "look", "--cron", "0 9 * * *", "--background", "--isolated", "Look.")
	text := strings.Replace(w.read("routines/look.md"), "---\n", "---\n# mine\n", 1)
	w.write("routines/look.md", text)
	w.must("fire", "look")
	w.write("routines/look.md", strings.Replace(text, "Look.", "Look elsewhere.", 1))
	if got := w.must("run", "show", "last", "--job-file"); got != text {
		t.Errorf("%q is kept, not %q", got, text)
	}
	w.must("ask", "-n", "hello")
	if r := w.run("run", "show", "last", "--job-file"); r.status != int(statusNoJob) || !strings.Contains(r.errOut, "no job file is kept") {
		t.Errorf("%+v", r)
	}
}
