#!/usr/bin/env bash
# The webhook server as the units of contrib/systemd, under a real systemd in a container: a request starts it, a restart and a stop
# lose none under load, runs outlive both and a kill, and a wrong setting is not tried again. Not part of .ci/run: it takes a minute or
# two, and needs curl and what bench/container.sh says.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/container.sh

ada "ollim init --engine script:quick.yaml && ollim config set webhook.jobs 3 && ollim config set webhook.inbox 2000 && rm -f .ollim-bot/routines/*"
ada 'printf "turns:\n  - - text: done\n" >.ollim-bot/quick.yaml'
ada 'printf "turns:\n  - - touch: began\n    - delay: 15s\n    - tool: report_updates\n      input: {message: it went on}\n    - touch: ended\n    - text: done\n" >.ollim-bot/slow.yaml'
hook() { # ID LINE
  ada "printf -- '---\nid: $1\nfields: {properties: {n: {type: integer}}}\nrate-limit: 10000/s\nisolated: true\n$2\n---\nGo: {n}.\n' >.ollim-bot/webhooks/$1.md"
}
hook quick 'allow-ping: false'
hook slow 'engine: script:slow.yaml'
secret=a-secret-of-more-than-24-bytes
inside sh -c "umask 077 && mkdir -p /etc/ollim && echo webhook.default=$secret >/etc/ollim/secrets.env"
for unit in service socket; do
  inside tee "/etc/systemd/system/ollim-webhook@.$unit" <"contrib/systemd/ollim-webhook@.$unit" >/dev/null
done
inside mkdir -p /etc/systemd/system/ollim-webhook@.service.d
inside tee /etc/systemd/system/ollim-webhook@.service.d/test.conf >/dev/null <<'UNIT'
[Unit]
StartLimitBurst=200
[Service]
LoadCredential=ollim-secrets:/etc/ollim/secrets.env
UNIT
inside systemctl daemon-reload

show() { inside systemctl show --value -p "$1" ollim-webhook@ada.service; }
until_is() { # WANT COMMAND...
  local want=$1
  shift
  for _ in $(seq 300); do
    [ "$("$@" 2>/dev/null || true)" = "$want" ] && return
    sleep 0.1
  done
}
post() { # HOOK N OPTION...: the status of the answer
  local hook=$1 n=$2
  shift 2
  nsenter --target "$leader" --net -- curl -sS -o /dev/null -w '%{http_code}\n' --max-time 60 "$@" -H 'Content-Type: application/json' \
    -H "Authorization: Bearer $secret" -H "Idempotency-Key: $n" -d "{\"n\": $n}" "http://127.0.0.1:8420/hook/$hook" || true
}
work=$(mktemp -d)
trap 'kill "${senders[@]}" 2>/dev/null || true; rm -rf "$work"; kill -TERM "$nspawn" 2>/dev/null; wait "$nspawn" 2>/dev/null || true' EXIT
senders=() posted=0
load() { # NAME OPTION...: four senders post until settle; each line of $work/NAME.* is an answer
  local name=$1 i
  shift
  rm -f "$work/stop"
  for i in 1 2 3 4; do
    posted=$((posted + 10000))
    (for ((n = posted; ; n++)); do
      [ -e "$work/stop" ] && exit
      post quick "$n" "$@"
    done >"$work/$name.$i" 2>"$work/$name.$i.said") &
    senders+=($!)
  done
}
settle() { # NAME: the kinds of answers
  touch "$work/stop"
  wait "${senders[@]}" || true
  senders=()
  sort -u "$work/$1".[1-4] | xargs
}
accepted() { cat "$work"/*.[1-4] | grep -c '^202$'; }

inside systemctl enable --quiet --now ollim-webhook@ada.socket
check 'only the socket is there' 'active inactive' "$(inside systemctl is-active ollim-webhook@ada.socket ollim-webhook@ada.service | xargs)"
check 'a request starts the server, and is accepted' 202 "$(post quick 1)"
check 'it runs' 'active running' "$(show ActiveState) $(show SubState)"
check 'its status is shown' 'listening on 127.0.0.1:8420' "$(show StatusText)"
check 'a wrong secret is refused' 401 "$(secret=x post quick 1)"
exposure=$(inside systemd-analyze security --no-pager ollim-webhook@ada.service | awk '/Overall/ { print $(NF-2) }')
check "it is hardened: exposure $exposure" yes "$(awk "BEGIN { print ($exposure <= 2.5) ? \"yes\" : \"no\" }")"
run_of() { # JOB: the process of its run
  inside sh -c 'cd /proc && grep -lF "$1" $(grep -l ollim [0-9]*/comm | sed s/comm/cmdline/)' - "$(ada "ollim run list -n 0 $1" | grep -w running | cut -f1)" | cut -d/ -f1
}
runs() { ada "ollim run list -n 0 ${2-}" | grep -cw "$1" || true; } # OUTCOME [JOB]
until_is 1 runs ok
check 'its run ends well' 1 "$(runs ok)"

pid=$(show MainPID)
check 'an event whose run takes long is accepted' 202 "$(post slow 1)"
until_is 1 runs running slow
run=$(run_of slow)
inside touch "/proc/$run/root/tmp/own"
had=$(inside sh -c "cd /proc/$run/root && ls tmp run/credentials/ollim-webhook@ada.service")
load restart
inside systemctl restart ollim-webhook@ada.service
inside systemctl restart ollim-webhook@ada.service
left=$(inside sh -c "cd /proc/$run/root && ls tmp run/credentials/ollim-webhook@ada.service")
for _ in 1 2 3 4 5; do
  sleep 0.5
  inside systemctl restart ollim-webhook@ada.service
done
answers=$(settle restart)
check 'under load, restarts lose no request' 202 "$answers"
check 'it was restarted' yes "$([ "$(show MainPID)" != "$pid" ] && echo yes)"
check 'and ended well' 'success 0' "$(show Result) $(show NRestarts)"
check 'a run that goes on keeps its temporary files and credentials' "$had" "$left"
until_is 1 runs ok slow
check 'the run went on' 1 "$(runs ok slow)"

check 'another is accepted' 202 "$(post slow 2)"
until_is 1 runs running slow
run=$(run_of slow)
load kill --retry 20 --retry-all-errors --retry-delay 1
for _ in 1 2 3 4 5; do
  sleep 2
  inside systemctl kill --kill-who=main --signal=KILL ollim-webhook@ada.service
done
sleep 2
answers=$(settle kill)
check 'under load, kills lose nothing that is sent again' 202 "$answers"
check 'each kill was a restart' 5 "$(show NRestarts)"
until_is 2 runs ok slow
check 'the run went on' 2 "$(runs ok slow)"

load stop
sleep 2
inside systemctl stop ollim-webhook@ada.service
answers=$(settle stop)
check 'under load, a stop loses no request: the next starts it again' 202 "$answers"
load last
sleep 2
inside systemctl stop ollim-webhook@ada.socket ollim-webhook@ada.service
touch "$work/stop"
check 'one that is stopped ends well' 'inactive success 0' "$(show ActiveState) $(show Result) $(show ExecMainStatus)"
answers=$(settle last)
check 'requests were accepted, told that it closes, or not answered' '' "$(tr ' ' '\n' <<<"$answers" | grep -v -e 000 -e 202 -e 503 || true)"

inside systemctl start ollim-webhook@ada.socket ollim-webhook@ada.service
waiting() { ada 'ls .ollim-bot/state/inbox/*/[0-9]*.json 2>/dev/null' | wc -l; }
until_is 0 waiting
until_is 0 runs running
want=$(($(accepted) + 3))
check "each of $want accepted events was run once, and well" "$want $want" "$(runs ok) $(ada 'ls .ollim-bot/state/runs' | wc -l)"
resident=$(inside awk '/VmRSS/ { print $2 }' "/proc/$(show MainPID)/status")
check "its memory is less than 30 MiB" yes "$([ "$resident" -lt $((30 << 10)) ] && echo yes || echo "$resident kB")"

ada 'ollim config set webhook.max-body 2MiB && sed -i s/2MiB/2QiB/ .ollim-bot/config.yaml'
inside systemctl stop ollim-webhook@ada.socket ollim-webhook@ada.service
inside systemctl start ollim-webhook@ada.service || true
until_is failed show ActiveState
check 'a wrong setting is not tried again' 'failed 78 0' "$(show ActiveState) $(show ExecMainStatus) $(show NRestarts)"
check 'no secret is in the log' 0 "$(inside journalctl -u ollim-webhook@ada.service --no-pager | grep -c "$secret" || true)"
exit $failed
