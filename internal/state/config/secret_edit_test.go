package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEditSecrets: a line is replaced where it is, a new one goes to the end, and what else is in the file stays.
func TestEditSecrets(t *testing.T) {
	now := time.Date(2026, 3, 2, 11, 0, 0, 0, time.FixedZone("", 3600))
	const mark = "# set 2026-03-02T10:00:00Z\n"
	for name, c := range map[string]struct{ before, want string }{
		"no file":           {"", mark + "engine.A=new value\n"},
		"no end":            {"# mine\nengine.AB=x", "# mine\nengine.AB=x\n" + mark + "engine.A=new value\n"},
		"in place":          {"# key\nengine.A=old\n\nwebhook.A=1\n", "# key\n" + mark + "engine.A=new value\n\nwebhook.A=1\n"},
		"again":             {"# key\n# set 2025-01-01T00:00:00Z\nengine.A=old\n", "# key\n" + mark + "engine.A=new value\n"},
		"twice":             {"engine.A=1\n# set 2025-01-01T00:00:00Z\nengine.A=2\n# end\n", mark + "engine.A=new value\n# end\n"},
		"commented":         {"# engine.A=old\n", "# engine.A=old\n" + mark + "engine.A=new value\n"},
		"indented and CRLF": {"  engine.A=old\r\nengine.B=1\r\n", mark + "engine.A=new value\nengine.B=1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "new", "secrets.env")
			if c.before != "" {
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, path, c.before)
			}
			if err := SetSecret(path, "engine.A", "new value ", now); err != nil {
				t.Fatal(err)
			}
			if got := content(t, path); got != c.want {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
			for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
				if info, err := os.Stat(file); err != nil || info.Mode() != want {
					t.Errorf("%s: %v, %v", file, info.Mode(), err)
				}
			}
			s, err := LoadSecrets(path, false)
			if err != nil || s.For("engine")[len(s.For("engine"))-1] != "A=new value" && name != "indented and CRLF" {
				t.Errorf("%q, %v", s.For("engine"), err)
			}
			for _, found := range s.List() {
				if found.Since.Equal(now) != (found.Name == "engine.A") {
					t.Errorf("%+v", found)
				}
			}
			if removed, err := RemoveSecret(path, "engine.A"); err != nil || !removed {
				t.Error(removed, err)
			}
			if got := content(t, path); strings.Contains(got, "new value") || strings.Contains(got, "# set") {
				t.Errorf("%q", got)
			}
			if removed, err := RemoveSecret(path, "engine.A"); err != nil || removed {
				t.Error(removed, err)
			}
		})
	}
}

// TestEditSecretsRefused: a file that others can read, or that is not valid, is left as it is.
func TestEditSecretsRefused(t *testing.T) {
	for text, mode := range map[string]os.FileMode{"engine.A=1\n": 0o644, "engine A\n": 0o600} {
		path := filepath.Join(t.TempDir(), "secrets.env")
		write(t, path, text)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := SetSecret(path, "engine.A", "2", time.Now()); err == nil || content(t, path) != text {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSecretNames(t *testing.T) {
	for name, want := range map[string]string{
		"engine.ANTHROPIC_API_KEY": "", "discord.TOKEN": "", "delivery.TOKEN": "", "mcp.KEY": "", "webhook.ci-2.x": "", "door.telegram.TOKEN": "", "engine.AWS_REGION": "",
		"ANTHROPIC_API_KEY":       "did you mean engine.ANTHROPIC_API_KEY?",
		"engine.ANTROPIC_API_KEY": "did you mean engine.ANTHROPIC_API_KEY?",
		"discord.token":           "did you mean discord.TOKEN?",
		"discord.OTHER":           "write engine.NAME",
		"delivery.A B":            "write engine.NAME",
		"delivery.A=B":            "write engine.NAME",
		"door.TOKEN":              "write engine.NAME",
		"mcp.":                    "write engine.NAME",
		"radio.KEY":               "write engine.NAME",
		"":                        "write engine.NAME",
	} {
		if err := CheckSecretName(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	for value, good := range map[string]bool{"x y": true, " ": false, "": false, "a\nb": false, "a\x00": false} {
		if err := CheckSecretValue(value); (err == nil) != good {
			t.Errorf("%q: %v", value, err)
		}
	}
}
