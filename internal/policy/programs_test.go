package policy_test

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

// What may be given where nothing is sealed, each pattern with commands that it allows.
func TestProgramsWithoutSeal(t *testing.T) {
	h := newFixture(t)
	for pattern, commands := range map[string][]string{
		"docker ps *":               {"docker ps", "docker ps -a --no-trunc"},
		"docker logs *":             {"docker logs --tail 20 web"},
		"systemctl status *":        {"systemctl status nginx.service"},
		"systemctl --user status *": {"systemctl --user status ollim.timer"},
		"crontab -l":                {"crontab -l"},
		"git log *":                 {"git log -p -u --oneline", "git log --author=me"},
		"git -C notes log *":        {"git -C notes log"},
		"git push *":                {"git push -u origin main"},
		"gh pr *":                   {"gh pr list --json title", "gh pr view 3"},
		"gh repo view *":            {"gh repo view a/b"},
		"df -h":                     {"df -h"},
		"date *":                    {"date", "date +%F"},
		"/bin/date *":               {"/bin/date"},
		"cat *":                     {"cat notes/a.md"},
		"sed -n 1,5p notes/a.md":    {"sed -n 1,5p notes/a.md"},
		"sqlite3 a.db .tables":      {"sqlite3 a.db .tables"},
		"awk '{print $1}' top.md":   {"awk '{print $1}' top.md"},
		"python3 tools/x.py":        {"python3 tools/x.py"},
		"npm run lint":              {"npm run lint"},
		"go test ./...":             {"go test ./..."},
		"./tools/x.sh *":            {"./tools/x.sh", "./tools/x.sh -v notes/a.md"},
		"tools/x.py *":              {"tools/x.py 3"},
		"SRC/s.rb":                  {"SRC/s.rb"},
	} {
		p := h.policy(t, "Bash("+pattern+")")
		for _, command := range commands {
			bash(t, p, true, h.text(command))
		}
	}
}

// Everything else needs a seal, by whatever name it is called and without wildcards as well.
func TestProgramsThatNeedTheSeal(t *testing.T) {
	h := newFixture(t)
	for pattern, command := range map[string]string{
		"sh x.sh": "", "bash -c id": "", "/bin/bash -c id": "", "./sh": "", "./bash.exe": "", "env id": "", "find . -name x": "", "ls": "", "grep x *": "grep x y",
		"curl https://example.com/x": "", "jq .a x": "", "tar tf x": "", "sort x": "", "wc -l x": "", "khal list": "", "./probe *": "./probe x", "x.sh": "", "./x.so": "",
		"make *": "make test", "python3 tools/x.py *": "python3 tools/x.py a", "npm run *": "npm run lint", "sed -n *": "sed -n 1p", "git l*": "git log",
		"docker compose *": "docker compose up", "gh api *": "gh api user", "node x*": "node x.js",
		"git log * --output=x": "git log a --output=x", "systemctl status * -H x": "systemctl status a -H x",
	} {
		p := h.policy(t)
		pattern = "Bash(" + pattern + ")"
		if parsed, err := policy.Parse(pattern); err == nil {
			p.Allow = append(p.Allow, parsed)
			if parsed.Unsealed() == "" {
				t.Errorf("%s is in force without a seal", pattern)
			}
		} else if !strings.Contains(pattern, "docker") && !strings.Contains(pattern, "systemctl") {
			t.Error(err)
		}
		if command == "" {
			command = strings.TrimSuffix(strings.TrimPrefix(pattern, "Bash("), ")")
		}
		bash(t, p, false, command)
	}
}

// A verb counts only where the program looks for it, and a verb that begins like another is another.
func TestVerbsThatRunPrograms(t *testing.T) {
	for _, pattern := range lines(`
		git *
		git -p log *
		git lo*
		git filter-repo *
		gh re* list
		gh pr* list
		gh release *
		docker
		docker compose *
		docker --config x ps
		docker -H ssh://x ps *
		systemctl --user
		systemctl --user start *
		systemctl -H x status *
		crontab
		crontab notes/a.md
		crontab -l -u root
		kubectl get *
		mariadb *
		duckdb a.db *`) {
		if p, err := policy.Parse("Bash(" + pattern + ")"); err == nil && p.Unsealed() == "" {
			t.Errorf("Bash(%s) is accepted", pattern)
		}
	}
}

// In a sealed run a pattern gives every program and every argument that its words name. Elsewhere it says why it gives nothing.
func TestSealed(t *testing.T) {
	h := newFixture(t)
	for pattern, commands := range map[string][]string{
		"sh *":             {"sh -c 'cat notes/a.md | wc'", "sh x.sh"},
		"python3 *":        {"python3 -c 'print(1)'"},
		"jq *":             {`jq 'import "a" as $a; .' a.json`},
		"curl *":           {`curl -s -d '{"a": 1}' https://example.com/x`, "curl -O file:///etc/passwd"},
		"git *":            {"git config --list", "git -c alias.x=y x"},
		"find *":           {"find . -exec id", "find"},
		"tar *":            {"tar xf a.tar"},
		"make *":           {"make test"},
		"gh *":             {"gh auth status"},
		"cat *":            {"cat state/x.md", "cat /proc/self/environ", "cat ../secret", "cat SECRET"}, // the kernel refuses
		"docker ps *":      {"docker ps -a"},
		"sort *":           {"sort --files0-from=x"},
		"systemctl show *": {"systemctl show x"},
		"./x.sh *":         {"./x.sh a b"},
	} {
		p := h.policy(t, "Bash("+pattern+")")
		p.Sealed = true
		for _, command := range commands {
			bash(t, p, true, h.text(command))
		}
		p.Sealed = false
		if reason := p.Allow[0].Unsealed(); reason != "" {
			for _, command := range commands {
				bash(t, p, false, h.text(command))
			}
		}
	}
	p := h.policy(t, "Bash(ollim *)", "Bash(sh *)", "Bash(docker ps *)", "Bash(cat notes/*)")
	p.Sealed = true
	for _, command := range lines(`
		ollim config set a b
		ollim approve --all
		ollim ping --file config.yaml
		ollim ping --file DATA/state/x.md
		ollim --data-dir x tasks
		./ollim help
		ollim.sh help
		sh -c ls; id
		sh -c "$HOME"
		docker run x
		docker --host x ps
		cat notes
		bash -c id
		-x`) {
		bash(t, p, false, h.text(command))
	}
	for _, pattern := range []string{"docker *", "docker run *", "Docker run *", "/usr/bin/docker run *", "docker-20 run *", "systemctl restart *", "systemctl -H x status *", "crontab *", "./ollim *", "*", "sh -c ls; id"} {
		if _, err := policy.Parse("Bash(" + pattern + ")"); err == nil {
			t.Errorf("Bash(%s) is accepted", pattern)
		}
	}
	p.Sealed = false
	if v := p.Decide("Bash", object(t, "command", "sh -c ls")); !strings.Contains(v.Reason, "sh is not one of the programs") {
		t.Error(v.Reason)
	}
	p = h.policy(t, "Bash(make *)")
	if v := p.Decide("Bash", object(t, "command", "make test")); !strings.Contains(v.Reason, "Bash(make *) is in force only in a sealed run: make does") {
		t.Error(v.Reason)
	}
}
