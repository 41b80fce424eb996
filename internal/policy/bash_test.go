package policy_test

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

func bash(t testing.TB, p policy.Policy, allow bool, command string) {
	t.Helper()
	expect(t, p, allow, "Bash", object(t, "command", command))
}

func TestBashOfMain(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, policy.DefaultMain()...)
	for _, command := range lines(`
		ollim
		ollim help
		ollim help config
		ollim --help
		  ollim   help  all
		ollim tasks list
		ollim -q tasks list
		ollim -q -v --log-format json tasks list
		ollim --log-format=json tasks list
		ollim routine list
		ollim routines show morning
		ollim sessions list
		ollim -q sessions list
		ollim session list
		ollim state
		ollim ping 'a; b && c | d > e $(id) ~ * {a,b}'
		ollim ping "it's \"fine\" at \$5 \\ and 'so' on! [x] ~ *"
		ollim ping "see state/runs for more"
		ollim ping 'über allem'
		ollim updates pop
		ollim updates pop --json
		ollim updates list
		ollim updates add 'how to add'
		ollim task add 'routine add'
		ollim ask 'what is config?'
		ollim remind 45m take the pizza out
		ollim ping ''
		ollim ping --file notes/a.md
		ollim ping --file=notes/a.md
		ollim budget
		ollim skill list`) {
		bash(t, p, true, command)
	}
	for _, command := range lines(`
		ollim help; rm -rf ~
		ollim help;
		ollim help &
		ollim help && id
		ollim help || id
		ollim help | sh
		ollim help |& sh
		! ollim help
		(ollim help)
		{ ollim help; }
		ollim $(id)
		ollim "$(id)"
		ollim "$HOME"
		ollim "${x}"
		ollim "$x"
		ollim $x
		ollim "$((1))"
		ollim ping "$ 5"
		ollim $'help'
		ollim $"help"
		ollim help > x
		ollim help >x
		ollim help 2>&1
		ollim help < x
		ollim help <<< x
		ollim help <(id)
		ollim help # comment
		# comment
		OLLIM_RUN= ollim help
		OLLIM_DATA_DIR=/x ollim help
		X=1
		ollim ~
		ollim ~/x
		ollim {a,b}
		ollim {1..3}
		ollim *
		ollim a?
		ollim [a]
		ollim @(a|b)
		ollim a\ b
		o\llim help
		ollim it's
		ollim "
		ollim =ls
		ollim ''=ls
		ollim ""''=ls
		ollim ping über
		ollim ping hello!
		ollim tasks *
		ollim tasks a*b
		ollim tasks a#b
		ollim check in/../top.md
		ollim updates pop -- --x
		'ollim' help
		"ollim" help
		ol'li'm help
		''ollim help
		./ollim help
		/tmp/ollim help
		bin/ollim help
		ollim.sh help
		ollim-x help
		Ollim help
		ollims help
		if true; then ollim help; fi
		for i in a; do ollim help; done
		time ollim help
		exec ollim help
		command ollim help
		env ollim help
		f() { ollim help; }
		[[ -n x ]]
		ollim approve
		ollim approve --all
		ollim Approve
		ollim approves
		ollim config
		ollim config set a b
		ollim configs get a
		ollim -q config set a b
		ollim --quiet config set a b
		ollim --log-format json config set a b
		ollim --log-format=json config set a b
		ollim --data-dir x config set a b
		ollim --data-dir x tasks list
		ollim --data-dir=x tasks list
		ollim tasks list --data-dir x
		ollim tasks list --config=x
		ollim --config x tasks list
		ollim ping -- --data-dir
		ollim fire x --engine script:y
		ollim --json tasks config set a b
		ollim --foo tasks config
		ollim -x tasks config
		ollim -p hello config set a b
		ollim -p approve
		ollim -- config
		ollim - config
		ollim '' config set a b
		ollim "" routine add x
		ollim schedule list
		ollim schedules
		ollim init
		ollim mcp serve
		ollim mcp tools
		ollim hook stop
		ollim routine add x
		ollim routines add x
		ollim routine edit x
		ollim routine --json x edit y
		ollim routine '' add x
		ollim routine "add" x
		ollim routine a'd'd x
		ollim 'config' set a b
		ollim co"nfig" set a b
		ollim webhook add x
		ollim skill render x
		ollim budget set 9
		ollim updates pop -- sh -c id
		ollim updates pop sh
		ollim update --json pop -- id
		ollim ping --file config.yaml
		ollim ping --file=config.yaml
		ollim ping --file=./state/x.md
		ollim ping --file state
		ollim ping --file DATA/state/x.md
		ollim ping --file notes/up/x.md
		ollim ping --file notes/here/config.yaml
		ollim ping --file cfg.md
		ollim ping --file hard.md
		ollim check cfg
		ollim check hard.md
		ollim ping --file dangling.md
		ollim ping --file /proc/self/environ
		ollim check ./config.yaml
		ollim check notes/../config.yaml
		ollim check STATE/x.md
		ls
		cat notes/a.md
		id`) {
		bash(t, p, false, h.text(command))
	}
	for _, command := range []string{
		"", " ", "\n", "ollim help\nid", "ollim help\n", "\nollim help", "ollim help\r\nid", "ollim help\x00", "ollim\x00 help", "ollim \\\nhelp",
		"ollim ping 'a\nb'", "ollim ping \"a\nb\"", "ollim\thelp", "ollim\u00a0help", "ollim\u2028id", "ollim help\x85id", "ollim `id`", "ollim \"`id`\"",
		"ollim ping " + strings.Repeat("x", 40<<10), "ollim " + strings.Repeat("$(", 8000), strings.Repeat("(", 16000), strings.Repeat("{ ", 16000),
		"ollim ping " + strings.Repeat("a ", 600), "ollim \x1b[2J", "ollim ping '\u202e\n'", "ollim help\uFFFD", strings.Repeat("x", 30<<10) + "-/",
	} {
		bash(t, p, false, command)
	}
}

func TestBashOfJobs(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Bash(ollim help)", "Bash(ollim tasks *)", "Bash(cat *)", "Bash(stat *)", "Bash(git log * --oneline)", "Bash(git log *)", "Bash(git show *)",
		"Bash(git add *)", "Bash(git commit *)", "Bash(./tools/x.sh *)", "Bash(echo 'a*' *)", "Bash(git l*)", "Bash(make *)", "Bash(find *)")
	for _, command := range lines(`
		ollim help
		ollim tasks
		ollim tasks add 'x y'
		ollim 'tasks' add
		cat
		cat notes/a.md
		cat ./notes/b.txt notes/a.md
		cat 'notes/a b'
		cat alias.md
		cat state.md
		cat /dev/null
		cat statement/x.md
		cat LIB/l.md
		cat -t/usr/share/ notes/a.md
		cat -S'as it was.' notes/a.md
		stat notes
		git log 'HEAD~1' --oneline
		git log '' --oneline
		git log -n5
		git commit --message='Fixed it.'
		echo 'a*' b
		./tools/x.sh notes/a.md`) {
		bash(t, p, true, h.text(command))
	}
	in := h.policy(t, "Bash(echo a*b*c *a*a*)")
	for command, allow := range map[string]bool{
		"echo abc aa": true, "echo a-b-c -a-a-": true, "echo abbc aaa": true, "echo ac aa": false, "echo abc a": false, "echo abc xa": false,
		"echo abcd aa": false, "echo abc aa b": false, "echo acb aa": false, "echo bc aa": false, "echo 'ab.c' a+a": true, "echo abc": false,
	} {
		bash(t, in, allow, command)
	}
	for _, command := range lines(`
		ollim help x
		ollim tasksx
		ollim task
		ollim ping x
		catx
		/bin/cat notes/a.md
		cat https://example.com/x?
		make test
		find notes
		git ls-files
		echo a b
		cat state/x.md
		cat ./state/x.md
		cat notes/../state/x.md
		cat DATA/state/x.md
		cat DATA//state/x.md
		cat TOP/linked/state/x.md
		cat State/x.md
		cat in/../state/x.md
		cat notes/up/x.md
		cat notes/here/state/x.md
		cat cfg.md
		cat hard.md
		cat -- config.yaml
		cat '--file=my own'
		cat 'config.yaml'
		cat "state"/x.md
		cat --file=config.yaml
		cat --file=./config.yaml
		cat -fconfig.yaml
		cat -abfconfig.yaml
		cat -abbbbbbbbbbbbbbbbbbbbfconfig.yaml
		cat -abbbbbbbbbbbbbbbbbbbbf./state/x.md
		cat -abbbbbbbbbbbbbbbbbbbbfDATA/config.yaml
		cat -f./state/x.md
		cat if=config.yaml
		cat @config.yaml
		cat 'x state/y'
		cat 'x,config.yaml'
		cat host:DATA/config.yaml
		cat file://DATA/config.yaml
		cat file://DATA/config%2Eyaml
		cat SECRET
		cat .
		cat ./
		cat /
		cat TOP
		cat DATA
		cat ..
		cat --dir=.
		cat /proc/self/environ
		cat /proc/self/cwd/state/x.md
		cat /dev/fd/3
		cat dangling.md
		cat link/o.md
		git -c alias.x=y x
		git -ccore.pager=id log
		git --exec-path=x log
		git log --output=x
		git log --out x
		git log -pOx
		git show HEAD:state/x.md
		git add .
		git show --no-index /dev/null x
		./tools/x.sh state/
		./tools/x.sh notes/a.md gates/x
		./tools/x.sh config.yaml`) {
		bash(t, p, false, h.text(command))
	}
	bash(t, p, false, "cat -"+strings.Repeat("a", 5000)+"fconfig.yaml")
}

// In a directory around nothing protected, naming it is fine; around the data directory it is not.
func TestBashElsewhere(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Bash(stat *)")
	p.Roots = []policy.Root{{Dir: h.write, Writable: true}}
	for _, command := range []string{"stat . -n x", "stat s.md", "stat"} {
		bash(t, p, true, command)
	}
	for _, command := range []string{"stat .. -n x", "stat " + h.dir, "stat ../data/state"} {
		bash(t, p, false, command)
	}
	p.Roots[0].Dir = h.text("TOP")
	bash(t, p, false, "stat .")
	bash(t, p, false, "stat data/state")
	bash(t, p, true, "stat src")
	p.Roots = nil
	bash(t, p, false, "stat src")
	p.Roots = []policy.Root{{Dir: "rel"}}
	bash(t, p, false, "stat src")
	p.Roots = []policy.Root{{Dir: h.text("TOP/none")}}
	bash(t, p, false, "stat src")
	p = h.policy(t, "Bash(stat *)")
	p.Protected = append(p.Protected, "rel")
	bash(t, p, false, "stat notes")
}

func TestOllimCommands(t *testing.T) {
	p := newFixture(t).policy(t, "Bash(ollim *)")
	verbs := policy.Verbs{
		"session": policy.All, "session list": policy.All, "session rm": policy.Never, "session compact": policy.Own,
		"update": policy.All, "update add": policy.Own, "update clear": policy.Never, "help": policy.All, "pause": policy.Never,
		"ping": policy.Own,
	}
	p.Ollim = verbs.Access
	for command, allow := range map[string]bool{
		"ollim pause": false, "ollim pauses 2h": false, "ollim help pause": true, "ollim help": true,
		"ollim session rm x": false, "ollim sessions rm x": false, "ollim session list": true, "ollim session list rm": true,
		"ollim session": true, "ollim session x": true, "ollim session --json list": true, "ollim session --json rm x": false,
		"ollim session --x list rm": false, "ollim session '' rm x": false, "ollim session RM x": false,
		"ollim session compact main keep x": true, "ollim update add the list is clear": true, "ollim update add clear": true,
		"ollim discord listen": false, "ollim routine list": false, "ollim": true, "ollim --version": true, "ollim -q help": true,
	} {
		bash(t, p, allow, command)
	}
	p.Ollim = nil
	bash(t, p, false, "ollim help")
	p.Ollim = verbs.Access
	p.Roots = []policy.Root{{Dir: t.TempDir()}}
	p.Protected = []string{p.Roots[0].Dir + "/sessions"} // before it exists
	bash(t, p, true, "ollim sessions list")
	bash(t, p, false, "ollim ping --file sessions")
	bash(t, p, false, "ollim ping --file sessions/x")
}

func TestBashFields(t *testing.T) {
	p := newFixture(t).policy(t, "Bash(ollim help)")
	for input, allow := range map[string]bool{
		`{"command":"ollim help"}`: true,
		`{"command":"ollim help","description":"d","timeout":5000,"run_in_background":false,"dangerouslyDisableSandbox":false}`: true,
		"  {\"command\":\"ollim\\u0020help\"}\n":                    true,
		`{"command":"ollim help","run_in_background":true}`:         false,
		`{"command":"ollim help","dangerouslyDisableSandbox":true}`: false,
		`{"command":"ollim help","command":"ollim help"}`:           false,
		`{"command":"ollim help","comm\u0061nd":"id"}`:              false,
		`{"command":"ollim help","Command":"id"}`:                   false,
		`{"command":"ollim help","x":1}`:                            false,
		`{"command":"ollim help","timeout":"5"}`:                    false,
		`{"command":["ollim help"]}`:                                false,
		`{"command":null}`:                                          false,
		`{}`:                                                        false,
		``:                                                          false,
		`null`:                                                      false,
		`"ollim help"`:                                              false,
		`[{"command":"ollim help"}]`:                                false,
		`{"command":"ollim help"}{}`:                                false,
		`{"command":"ollim help"} x`:                                false,
		`{"command":"ollim help"`:                                   false,
		`{"command":"ollim help",}`:                                 false,
		`{'command':'ollim help'}`:                                  false,
		`{"command":"ollim\u0000help"}`:                             false,
		`{"command":"ollim help\ud800"}`:                            false,
		`{"command":"ollim help\nid"}`:                              false,
		"{\"command\":\"ollim help\xff\"}":                          false,
		`{"command":"ollim help","description":{"a":1,"a":2}}`:      false,
		strings.Repeat(`{"command":`, 100) + `1` + strings.Repeat("}", 100): false,
		strings.Repeat(`[`, 100000):                                         false,
	} {
		expect(t, p, allow, "Bash", []byte(input))
	}
}
