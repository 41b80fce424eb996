#!/usr/bin/env bash
# The listener for Discord as the unit of contrib/systemd, under a real systemd in a container, with a Discord that can be silent.
# The unit counts as started once it is connected. It is restarted when Discord is silent. When it was killed, it answers what it was
# asked; when it is stopped, its turn ends first. A bad token is not tried again. Not part of .ci/run: it takes a minute, and needs
# what bench/container.sh says.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/container.sh

CGO_ENABLED=0 go build -o "$root/../discord" ./internal/testkit/discordapi/serve
coproc discord { nsenter --target "$leader" --net -- "$root/../discord"; }
discord() { # a line to the server, and its answer
  local answer
  echo "$*" >&"${discord[1]}"
  read -r answer <&"${discord[0]}"
  echo "$answer"
}
read -r url <&"${discord[0]}"

ada "ollim init --engine script:play.yaml && ollim config set discord.api $url"
ada 'printf "turns:\n  - - text: The beginning\n    - delay: 2s\n    - text: and the end.\n" >.ollim-bot/play.yaml'
inside mkdir -p /etc/ollim /etc/systemd/system/ollim-discord@ada.service.d
token() { inside sh -c "umask 077 && printf '$1' >/etc/ollim/discord-token"; }
token test-token.of-a.bot
inside tee /etc/systemd/system/ollim-discord@.service <contrib/systemd/ollim-discord@.service >/dev/null
# Shorter times, because this Discord wants a heartbeat each second.
inside tee /etc/systemd/system/ollim-discord@ada.service.d/test.conf >/dev/null <<'END'
[Service]
LoadCredential=discord-token:/etc/ollim/discord-token
RestartSec=1s
WatchdogSec=6s
END
show() { inside systemctl show --value -p "$1" ollim-discord@ada.service; }
until_is() { # PROPERTY VALUE
  for _ in $(seq 300); do
    [ "$(show "$1")" = "$2" ] && return
    sleep 0.1
  done
}
inside systemctl daemon-reload

inside systemctl start ollim-discord@ada.service
check 'it runs once it is connected' 'active running' "$(show ActiveState) $(show SubState)"
check 'its status is shown' connected "$(show StatusText)"
check 'it is hardened' yes "$(inside systemd-analyze security ollim-discord@ada.service | awk '/Overall/ { print ($(NF-2) <= 3.0) ? "yes" : $(NF-2) }')"
discord say one >/dev/null
check 'it answers' '["The beginning\n\nand the end."]' "$(discord wait 1 end.)"
sleep 13
check 'heartbeats feed the watchdog' '0 active' "$(show NRestarts) $(show ActiveState)"
resident=$(inside awk '/VmRSS/ { print $2 }' "/proc/$(show MainPID)/status")
check 'its memory is less than 25 MiB' yes "$([ "$resident" -lt $((25 << 10)) ] && echo yes || echo "$resident kB")"

discord silence >/dev/null
until_is NRestarts 1
check 'it is restarted when Discord is silent' 1 "$(show NRestarts)"
check 'because of the watchdog' yes "$(grep -q 'Watchdog timeout' <<<"$(inside journalctl -u ollim-discord@ada.service --no-pager)" && echo yes || echo no)"
discord say two >/dev/null
discord sound >/dev/null
discord wait 2 end. >/dev/null
until_is SubState running
check 'what was said meanwhile is answered' '["The beginning\n\nand the end." "The beginning\n\nand the end."]' "$(discord wait 2 end.)"

discord say three >/dev/null
discord wait 3 end. >/dev/null
inside systemctl kill --signal=KILL ollim-discord@ada.service
discord say four >/dev/null
discord wait 4 end. >/dev/null
check 'one that is killed is restarted and answers' 2 "$(show NRestarts)"

discord say five >/dev/null
for _ in $(seq 100); do
  [ -n "$(inside sh -c 'ls /home/ada/.ollim-bot/state/queue/*.json 2>/dev/null' || true)" ] && break
  sleep 0.05
done
inside systemctl stop ollim-discord@ada.service
check 'one that is stopped ends its turn' 'inactive success 0' "$(show ActiveState) $(show Result) $(show ExecMainStatus)"
said=$(discord wait 5 end.) # not in a pipe, which does not have the server's files
check 'and shows all of it' 5 "$(grep -o 'and the end' <<<"$said" | wc -l)"

token wrong
inside systemctl start ollim-discord@ada.service || true
sleep 3
check 'a bad token is not tried again' 'failed 78 0' "$(show ActiveState) $(show ExecMainStatus) $(show NRestarts)"
check 'nor shown' 0 "$(inside journalctl -u ollim-discord@ada.service --no-pager | grep -c -e test-token -e wrong || true)"
check 'all turns ended well' 5 "$(ada 'ollim run list -n 0' | grep -c ok)"
exit $failed
