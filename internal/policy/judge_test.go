package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

func TestJudgeAccepts(t *testing.T) {
	for _, text := range append(policy.DefaultBackground(), lines(`
		Read
		Glob
		Grep
		WebFetch
		WebSearch
		Task
		Agent(reviewer)
		Skill
		Skill(daily)
		Skill(daily *)
		Skill(tools:daily *)
		TodoWrite
		WebFetch(domain:example.com)
		WebFetch(domain:*.example.com)
		mcp__ollim
		mcp__ollim__*
		mcp__ollim__report*
		mcp__ollim__ping_user
		mcp__my-srv__get
		Write(./notes/**)
		Write(notes/**)
		Write(./**.md)
		Write(./*.md)
		Edit(./tasks/todo.txt)
		Read(./statement/**)
		Read(./state.md)
		Read(./*/x.md)
		Read(notes/state/x)
		Read(**)
		Bash(ollim tasks *)
		Bash(ollim routine list *)
		Bash(ollim routine show *)
		Bash(ollim help)
		Bash(ollim -q tasks *)
		Bash(ollim updates *)
		Bash(curl *)
		Bash(curl -fsS https://example.com/x)
		Bash(git log *)
		Bash(git -C repo log *)
		Bash(echo 'a; b')
		Bash(echo "a | b")
		Bash(python3 tools/x.py *)
		Bash(python3 -c 'print(1)')
		Bash(awk '{print $1}' notes.md)
		Bash(make test)
		Bash(npm run lint)
		Bash(./scripts/run.sh *)
		Bash(ls notes)
		Bash(git -C repo -C deeper log *)
		Bash(tar tf *)
		Bash(tar -C notes -xf *)`)...) {
		if err := policy.Judge(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		p, err := policy.Parse(text)
		if err != nil || p.String() != text {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
}

func TestJudgeRefuses(t *testing.T) {
	texts := lines(`
		Bash
		Bash()
		Bash( )
		Bash(*)
		Bash(**)
		Bash(* *)
		Bash(*:*)
		Bash(ollim help; rm -rf ~)
		Bash(ollim help && id)
		Bash(ollim help || id)
		Bash(ollim help | sh)
		Bash(ollim help & id)
		Bash(ollim help &)
		Bash(ollim help;)
		Bash(! ollim help)
		Bash((ollim help))
		Bash({ ollim help; })
		Bash(echo $(id))
		Bash(echo "$(id)")
		Bash(echo $((1+1)))
		Bash(echo $HOME)
		Bash(echo ${HOME})
		Bash(echo "$HOME")
		Bash(echo $'a')
		Bash(echo $"a")
		Bash(echo <(id))
		Bash(ollim help > x)
		Bash(ollim help >> x)
		Bash(ollim help < x)
		Bash(ollim help 2>&1)
		Bash(ollim help <<< x)
		Bash(X=1 ollim help)
		Bash(OLLIM_RUN= ollim help)
		Bash(X=1)
		Bash(echo ~)
		Bash(echo ~root)
		Bash(echo {a,b})
		Bash(echo [ab])
		Bash(echo a?)
		Bash(echo @(a))
		Bash(echo a\ b)
		Bash(echo =ls)
		Bash(echo # x)
		Bash(echo 'a)
		Bash(oll* help)
		Bash('ollim' help)
		Bash("ollim" help)
		Bash(o"l"lim help)
		Bash(./ollim help)
		Bash(/usr/bin/ollim help)
		Bash(ollim.sh help)
		Bash(OLLIM help)
		Bash(ollim:*)
		Bash(ollim tasks:*)
		Bash(env)
		Bash(env *)
		Bash(/usr/bin/env *)
		Bash(sudo ls)
		Bash(xargs ls)
		Bash(sh -c ls)
		Bash(sh x.sh)
		Bash(bash *)
		Bash(bash-5.2 x)
		Bash(/bin/dash x)
		Bash(busybox ls)
		Bash(nohup ls)
		Bash(timeout 5 ls)
		Bash(nice ls)
		Bash(time ls)
		Bash(exec ls)
		Bash(eval ls)
		Bash(command ls)
		Bash(. x)
		Bash(- ls)
		Bash(printf *)
		Bash(test -v *)
		Bash(if true)
		Bash(export X)
		Bash(declare X)
		Bash(let x)
		Bash(find . -exec rm *)
		Bash(find . -ok rm)
		Bash(find . -delete)
		Bash(git -c *)
		Bash(git *)
		Bash(git -C repo *)
		Bash(git -C *)
		Bash(git l*)
		Bash(git --no-pager *)
		Bash(git apply *)
		Bash(git diff --no-index *)
		Bash(tar xf *)
		Bash(unzip *)
		Bash(curl -O *)
		Bash(git -calias.x=y x)
		Bash(tar xf a --to-command=id)
		Bash(tar xf a --to-com=id)
		Bash(tar cIf id x)
		Bash(rsync -ave id *)
		Bash(scp -S id *)
		Bash(sort --compress-program=id *)
		Bash(sort --comp*)
		Bash(curl -K x *)
		Bash(curl -fsSKx *)
		Bash(wget -e x *)
		Bash(zip -T -TT id *)
		Bash(fd -x id)
		Bash(rg --pre id *)
		Bash(python3 *)
		Bash(python3.12 *)
		Bash(python3 -c *)
		Bash(python3 '' *)
		Bash(perl -e *)
		Bash(awk *)
		Bash(node x*)
		Bash(make *)
		Bash(npm run *)
		Bash(npx *)
		Bash(ollim *)
		Bash(ollim * list)
		Bash(ollim approve)
		Bash(ollim approve *)
		Bash(ollim appr*)
		Bash(ollim config get x)
		Bash(ollim configs *)
		Bash(ollim schedule list)
		Bash(ollim schedules *)
		Bash(ollim s*)
		Bash(ollim init *)
		Bash(ollim mcp serve)
		Bash(ollim routine *)
		Bash(ollim routine a*)
		Bash(ollim routine add *)
		Bash(ollim routines edit x)
		Bash(ollim routine --json *)
		Bash(ollim -q config *)
		Bash(ollim -*)
		Bash(ollim --data-dir x tasks)
		Bash(ollim tasks --config=x)
		Bash(ollim '' config)
		Bash(ollim -p config)
		Bash(ollim updates pop -- sh)
		Bash(cat state/x)
		Bash(cat ./state/x)
		Bash(cat STATE/x)
		Bash(cat ../x)
		Bash(cat notes/../x)
		Write
		Write()
		Write(*)
		Write(**)
		Write(./**)
		Write(./*)
		Write(**/*)
		Write(*/**)
		Write(**.*)
		Write(/**)
		Edit
		Edit(**)
		MultiEdit
		NotebookEdit
		NotebookEdit(**)
		Write(./../x)
		Write(../x)
		Write(notes/../../x)
		Write(/etc/passwd)
		Write(//etc/passwd)
		Write(~/x)
		Write(~root/x)
		Read(/etc/**)
		Read(//etc/**)
		Read(~/.ssh/**)
		Read(./..)
		Read(.)
		Read(./)
		Read(notes/)
		Read(notes//x)
		Read(notes/./x)
		Read(././x)
		Read(./state)
		Read(state/**)
		Read(./state/**)
		Read(./State/x)
		Read(sessions/*)
		Read(./gates/x)
		Read(./g*/x)
		Read(./config.yaml)
		Read(CONFIG.yaml)
		Read(./*.yaml)
		Read(./tool-policy.yaml)
		Read(./stat*/**)
		Grep(state/**)
		Glob(./s*s/**)
		Read(a**b)
		Read(***)
		Read(**.md**)
		Read({a,state}/x)
		Read([s]tate/x)
		Read(s?ate/x)
		Read(!x)
		Read(a\b)
		Read( notes/**)
		Read(notes/** )
		Read(x
		Read)
		Read(x)y
		read
		read(./x)
		BASH(ls)
		Foo
		Monitor
		PowerShell
		TodoWrite(x)
		WebSearch(x)
		WebFetch(example.com)
		WebFetch(domain:*)
		WebFetch(domain:)
		WebFetch(domain:Example.com)
		WebFetch(domain:a/b)
		WebFetch(domain:a.*.b)
		Task(*)
		Skill()
		Skill(a b)
		Skill(a * *)
		Skill(../x *)
		Skill(.x)
		mcp__*
		mcp__
		mcp__*__x
		mcp__ollim__
		mcp__ollim__a*b
		mcp__ollim__x(y)
		mcp__o.l__x
		*
		**
		()
		(x)
		Read Write
		Bash (ls)`)
	texts = append(texts, "", " ", "\n", "Bash(ollim help\nid)", "Bash(ollim help\r)", "Bash(ollim help\u2028id)", "Bash(ls\x00)", "Bash(ls\xff)",
		"Read(\u202e./x)", "Read(a\u00a0b)", "Bash(ls `id`)", "Bash(\tls)", "Bash(ls é)", "Read(./x\n)", "\nRead", "Read\n",
		"Read("+strings.Repeat("a", 5000)+")", "Read("+strings.Repeat("a/", 200)+"b)", "Bash("+strings.Repeat("$(", 1000)+")")
	for _, text := range texts {
		if p, err := policy.Parse(text); policy.Judge(text) == nil && (err != nil || p.Unsealed() == "") {
			t.Errorf("%q: accepted", text)
		}
	}
}

func TestJudgeUnknownTool(t *testing.T) {
	for text, want := range map[string]string{
		"Nope": "unknown tool", "CronCreate": "CronCreate cannot be used: use a routine: ollim routine add", "SendMessage(x)": "SendMessage cannot be used: use a message to the owner: ollim ping", "Monitor": "Monitor cannot be used: use a routine with a gate", "Nope(x)": "unknown tool", "read(x.md)": "unknown tool",
		"WebSearch(x)": "WebSearch takes no scope",
	} {
		if err := policy.Judge(text); err == nil || !strings.Contains(err.Error(), ": "+want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What only Judge refuses may stand in the main conversation's defaults; all of them must parse.
func TestDefaults(t *testing.T) {
	for _, text := range append(policy.DefaultMain(), policy.OfSkill("daily")) {
		if _, err := policy.Parse(text); err != nil {
			t.Error(err)
		}
	}
	want := []string{"Bash", "Edit", "Glob", "Grep", "Read", "Skill", "Task", "WebFetch", "WebSearch", "Write"}
	h := newFixture(t)
	if got := h.policy(t, policy.DefaultMain()...).BuiltIns(); !slices.Equal(got, want) {
		t.Errorf("main: %v", got)
	}
	want = []string{"Bash", "Glob", "Grep", "Read"}
	if got := h.policy(t, policy.DefaultBackground()...).BuiltIns(); !slices.Equal(got, want) {
		t.Errorf("background: %v", got)
	}
	if got := (policy.Policy{Allow: make([]policy.Pattern, 1)}).BuiltIns(); len(got) > 0 {
		t.Errorf("zero pattern: %v", got)
	}
}

func TestJudgeOfDirs(t *testing.T) {
	ro, rw := policy.Root{Dir: "/home/me/lib"}, policy.Root{Dir: "/home/me/src", Writable: true}
	for text, ok := range map[string]bool{
		"Read(/home/me/lib/**)": true, "Read(/home/me/lib/a/*.go)": true, "Write(/home/me/src/**)": true, "Read(/home/me/src/x)": true,
		"Write(/home/me/lib/**)": false, "Read(/home/me/library/**)": false, "Read(/home/me/**)": false, "Read(/home/me/l*/**)": false,
		"Read(/home/me/lib/../x)": false, "Read(/**)": false, "Edit(/home/me/lib/x)": false,
	} {
		if err := policy.Judge(text, ro, rw); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got, err := policy.OfDir(rw); err != nil || !slices.Contains(got, "Write(/home/me/src/**)") || len(got) != 5 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := policy.OfDir(ro); err != nil || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	for _, dir := range []string{"/a*b", "rel", "/a(b", "/a\nb", "/"} {
		if got, err := policy.OfDir(policy.Root{Dir: dir, Writable: true}); err == nil {
			t.Errorf("%s: %v", dir, got)
		}
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	for _, text := range []string{"Bash(a\nb)", strings.Repeat("x", 9000), "Read(\x1b[2J)", "Bash(" + strings.Repeat("é", 2000) + ")"} {
		err := policy.Judge(text)
		if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 600 || errors.Unwrap(err) == nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
