package process

import (
	"os"
	"os/exec"
	"testing"
)

// insideVar is what TestInside's ancestors carry; askVar makes TestAskInside say what it finds.
const (
	insideVar = "OLLIM_INSIDE_TEST"
	askVar    = "OLLIM_INSIDE_ASK"
)

func TestInside(t *testing.T) {
	const ask = askVar + `=1 "$0" -test.run '^TestAskInside$'; true`
	for name, c := range map[string]struct{ env, script, want string }{
		"not there":          {"", ask, "no"},
		"in the parent":      {insideVar + "=r1", ask, "r1"},
		"unset by the child": {insideVar + "=r1", `env -u ` + insideVar + ` ` + ask, "r1"},
		"emptied":            {insideVar + "=r1", `env -i GORACE=$GORACE ` + ask, "r1"},
		"another session":    {insideVar + "=r1", `env -u ` + insideVar + ` setsid -w ` + `env ` + ask, "r1"},
		"two deep":           {insideVar + "=r1", `env -u ` + insideVar + ` sh -c '` + askVar + `=1 "$0" -test.run TestAskInside; true' "$0"; true`, "r1"},
		"the nearest":        {insideVar + "=r1", `env ` + insideVar + `=r2 sh -c '` + askVar + `=1 "$0" -test.run TestAskInside; true' "$0"; true`, "r2"},
		"empty":              {insideVar + "=", ask, "no"},
		"longer name":        {insideVar + "S=r1", ask, "no"},
		"only its own":       {"", insideVar + "=r1 " + ask, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", c.script, os.Args[0])
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", c.env}
			out, err := cmd.CombinedOutput()
			if err != nil || len(out) < len(c.want) || string(out[:len(c.want)+1]) != c.want+"\n" {
				t.Errorf("%q, %v, want %s", out, err, c.want)
			}
		})
	}
}

// TestAskInside is a child process of TestInside.
func TestAskInside(*testing.T) {
	if os.Getenv(askVar) == "" {
		return
	}
	if value, inside := Inside(insideVar); inside {
		os.Stdout.WriteString(value + "\n")
	} else {
		os.Stdout.WriteString("no\n")
	}
}

func TestParent(t *testing.T) {
	if got := stat(os.Getpid()).parent; got != os.Getppid() {
		t.Errorf("got %d, want %d", got, os.Getppid())
	}
	if got := stat(1).parent; got != 0 {
		t.Errorf("of the first process: %d", got)
	}
	if got := stat(-1).parent; got != 0 {
		t.Errorf("of none: %d", got)
	}
}
