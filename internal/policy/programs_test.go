package policy_test

import (
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

// What the refusals of programs leave: patterns that may be given, each with commands that they allow.
func TestProgramsThatOnlyRead(t *testing.T) {
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
		"gh auth token":             {"gh auth token"}, // written out by the owner
		"sed -n 1,5p notes/a.md":    {"sed -n 1,5p notes/a.md"},
		"sqlite3 a.db .tables":      {"sqlite3 a.db .tables"},
		"awk '{print $1}' *":        {"awk '{print $1}' notes/a.md"},
		"sort *":                    {"sort -u notes/a.md"},
		"wc *":                      {"wc -l notes/a.md"},
		"tar *":                     {"tar -tf a.tar", "tar -cf a.tar notes/a.md"},
		"jq *":                      {"jq .important a.json", `jq '.included[] | .import' a.json`, `jq -r .a a.json`},
		"wget -qO page.html *":      {"wget -qO page.html https://example.com/x"},
		"curl *": {
			`curl -s -d '{"a": [1, "b"]}' https://example.com/x`, `curl -s '-d{"a": "b\n"}' https://example.com/x`,
			`curl -s -o page.html '-w%{http_code}' https://example.com/x`,
		},
	} {
		p := h.policy(t, "Bash("+pattern+")")
		for _, command := range commands {
			bash(t, p, true, command)
		}
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
		if _, err := policy.Parse("Bash(" + pattern + ")"); err == nil {
			t.Errorf("Bash(%s) is accepted", pattern)
		}
	}
}
