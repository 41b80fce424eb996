#!/usr/bin/env bash
# A real systemd in a container: units are installed, edited, read again and removed without a fire that nobody asked for, and
# fire in their minute. Not part of .ci/run: it needs root, debootstrap and systemd-nspawn, a Debian mirror the first time, and
# up to three minutes. The tree of the container is kept for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
for need in debootstrap systemd-nspawn; do
  command -v "$need" >/dev/null || { echo "no $need: apt-get install debootstrap systemd-container" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "root only" >&2; exit 1; }

root="${XDG_CACHE_HOME:-$HOME/.cache}/ollim-test/bookworm"
if [ ! -e "$root/.complete" ]; then
  rm -rf "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase bookworm "$root" >/dev/null
  # Not by --include: its order of configuring does not suit them.
  chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends systemd-sysv dbus-user-session libpam-systemd >/dev/null
  touch "$root/.complete"
fi
CGO_ENABLED=0 go build -o "$root/usr/local/bin/ollim" ./cmd/ollim
id=$(date +%s)

systemd-nspawn --quiet --directory="$root" --volatile=overlay --machine="ollim$id" --register=no --keep-unit --private-network --boot >/dev/null 2>&1 </dev/null &
nspawn=$!
trap 'kill -TERM "$nspawn" 2>/dev/null; wait "$nspawn" 2>/dev/null || true' EXIT
leader=
for _ in $(seq 100); do
  leader=$(pgrep -P "$nspawn" || true)
  [ -n "$leader" ] && break
  sleep 0.1
done
inside() { nsenter --target "$leader" --all -- "$@"; }
for _ in $(seq 300); do
  case "$(inside systemctl is-system-running 2>/dev/null || true)" in running | degraded) break ;; esac
  sleep 0.2
done
inside useradd --create-home --shell /bin/sh ada
inside loginctl enable-linger ada
uid=$(inside id -u ada)
ada() { inside setpriv --reuid ada --regid ada --init-groups env -i HOME=/home/ada USER=ada PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR="/run/user/$uid" sh -c "cd && $1"; }
for _ in $(seq 100); do
  ada 'systemctl --user is-active default.target' >/dev/null 2>&1 && break
  sleep 0.2
done

failed=0
check() { # NAME WANT GOT
  if [ "$2" = "$3" ]; then echo "ok    $1"; else
    echo "FAIL  $1: want $2, got $3"
    failed=1
  fi
}
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
