#!/usr/bin/env bash
# A real systemd in a container: units are installed, edited, read again and removed without a fire that nobody asked for, and
# fire in their minute. Not part of .ci/run: it takes up to three minutes, and needs what bench/container.sh says.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/container.sh
started() { ada "systemctl --user show --value -p ExecMainStartTimestampMonotonic $1.service"; }
at() { # MINUTES from now: the fields of that minute
  inside date -d "$1 minutes" '+%-M %-H * * *'
}
routine() { ada "printf -- '---\nid: $1\ncron: \"$2\"\n---\nDo.\n' >.ollim-bot/routines/$1.md"; }
next_minute() { sleep $((62 - $(date +%-S))); } # 2 s into it

ada 'ollim init --engine script:play.yaml && printf "turns:\n  - - text: done\n" >.ollim-bot/play.yaml && rm -f .ollim-bot/routines/*'
routine daily "$(at 300)"
routine gone "$(at 300)"

# The control: a timer with the same edits that is only written and read again. It has to fire, or this shows nothing.
ada 'mkdir -p .config/systemd/user'
control() {
  ada "cd .config/systemd/user && printf '[Service]\nType=oneshot\nExecStart=/bin/true\n' >control.service && printf '[Timer]\nOnCalendar=$1\nPersistent=true\nAccuracySec=1s\n' >control.timer"
}
control '*-*-* 00:00:01'
ada 'systemctl --user daemon-reload && systemctl --user start control.timer'

ada 'ollim schedule install systemd'
check 'installed timers run' 'active active active' "$(ada 'systemctl --user is-active ollim-tick.timer ollim-job-daily.timer ollim-job-gone.timer' | xargs)"
ada 'ollim schedule diff systemd' && same=yes || same=no
check 'what is installed is what would be' yes "$same"
ada 'systemctl --user stop ollim-job-daily.timer; systemctl --user disable --quiet ollim-job-gone.timer'
check 'diff tells of timers that were stopped or disabled' 'ollim-job-daily.timer start ollim-job-gone.timer start' "$(ada 'ollim schedule diff systemd || true' | xargs)"
ada 'ollim schedule install systemd'
check 'an install starts them' 'active active' "$(ada 'systemctl --user is-active ollim-job-daily.timer ollim-job-gone.timer' | xargs)"
check 'an install fires nothing' '0 0' "$(started ollim-job-daily) $(started ollim-job-gone)"

next_minute
past=$(at 0) # of which systemd thinks, if it is only told, that it was missed
control "*-*-* $(inside date +%H:%M):00"
ada 'systemctl --user daemon-reload'
sleep 1
check 'the control has fired: the trap is there' yes "$([ "$(started control)" != 0 ] && echo yes || echo no)"
routine daily "$past"
ada 'rm .ollim-bot/routines/gone.md'
routine fresh "$past"
ada 'ollim schedule install systemd'
sleep 1
check 'an edit fires nothing' '0 0' "$(started ollim-job-daily) $(started ollim-job-fresh)"
ada 'systemctl --user daemon-reload; systemctl --user daemon-reload; ollim schedule install systemd'
sleep 1
check 'nor does a reload' '0 0' "$(started ollim-job-daily) $(started ollim-job-fresh)"
check 'what is gone is gone' 'inactive not-found' "$(ada 'systemctl --user is-active ollim-job-gone.timer; systemctl --user show --value -p LoadState ollim-job-gone.timer' | xargs)"

ada 'rm .ollim-bot/routines/fresh.md'
routine back "$past"
ada 'ollim schedule install systemd && rm .ollim-bot/routines/back.md && ollim schedule install systemd'
routine back "$past"
ada 'ollim schedule install systemd'
sleep 1
check 'one that comes back fires nothing' 0 "$(started ollim-job-back)"

before=$(ada 'ollim run list -n 0 daily' | wc -l)
routine daily "$(at 1)"
ada 'ollim schedule install systemd'
next_minute
sleep 3
check 'its minute fires it, by its own timer' yes "$([ "$(started ollim-job-daily)" != 0 ] && echo yes || echo no)"
check 'once' 1 "$(($(ada 'ollim run list -n 0 daily' | wc -l) - before))"
check 'it ended well' 0 "$(ada 'systemctl --user show --value -p ExecMainStatus ollim-job-daily.service')"

runs() { ada 'ls .ollim-bot/state/runs | wc -l'; } # of which ollim run list shows the last only
before=$(runs)
ada 'ollim schedule remove systemd'
sleep 1
check 'a removal fires nothing' "$before" "$(runs)"
check 'no timer is left' '' "$(ada 'systemctl --user list-timers --all --no-legend "ollim-*" && ls .config/systemd/user .local/share/systemd/timers || echo failed' | grep -e ollim -e failed || true)"
check 'what is not ours stays' control.timer "$(ada 'ls .config/systemd/user | grep timer$')"
exit $failed
