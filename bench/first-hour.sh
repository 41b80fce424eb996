#!/usr/bin/env bash
# The first hour of a user, on a bare Debian with the package and the claude command, under a real systemd and cron in a container:
# install, init, a routine that reads a repository, its schedule, its fire by cron, its update in chat, three faults that doctor finds
# and whose remedies are carried out as it prints them, an upgrade, removal. The model is a server of Anthropic's API beside it. It
# takes three minutes, and needs what bench/container.sh says and OLLIM_TEST_CLAUDE, as .ci/run sets it.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OLLIM_TEST_CLAUDE:?the path of the claude command: npm install @anthropic-ai/claude-code}"
suffix=-cron packages='cron git'
prepare() {
  dist=$root/../first-hour
  rm -rf "$dist"
  .ci/package "$dist" "$(go env GOHOSTARCH)"
  CGO_ENABLED=0 go build -o "$dist/api" ./internal/testkit/anthropicapi/serve
  rm -f "$root/usr/local/bin/ollim"
  cp -L "$OLLIM_TEST_CLAUDE" "$root/usr/local/bin/claude"
}
. bench/container.sh

inside tee /root/ollim.deb <"$(echo "$dist"/*.deb)" >/dev/null
coproc api { nsenter --target "$leader" --net -- "$dist/api"; }
read -r url <&"${api[0]}"
rule() { echo "$1" >&"${api[1]}"; }
rule '{"has": ["Say that it works"], "text": "It works."}'
rule '{"has": ["what did I miss", "REPORT: mend the pump"], "text": "The pump was mended."}'
rule '{"has": ["REPORT: mend the pump"], "text": "Done."}'
rule '{"has": ["mend the pump"], "tool": "mcp__ollim__report_updates", "input": {"message": "REPORT: mend the pump"}}'
rule '{"has": ["Look at the log of the repository"], "tool": "Bash", "input": {"command": "git -C /home/ada/work log --oneline"}}'

running() { inside sh -c 'for exe in /proc/[0-9]*/exe; do readlink "$exe"; done' | grep ollim || true; }

before=$(inside sh -c 'systemctl list-unit-files --no-legend | sort')
inside dpkg -i /root/ollim.deb >/dev/null
check 'nothing runs after installing' '' "$(running)"
check 'and nothing is enabled' '' "$(inside systemctl list-unit-files --no-legend 'ollim*' | awk '$2 == "enabled"')"
check 'the units are there' 3 "$(inside systemctl list-unit-files --no-legend 'ollim*' | wc -l)"
check 'the manual is there' 'ollim(7)' "$(ada 'ollim help ollim' | head -n 1)"

ada 'git init -q work && cd work && git -c user.name=Ada -c user.email=ada@example.org commit -q --allow-empty -m "mend the pump"'
ada "ollim init </dev/null && ollim config set env ANTHROPIC_BASE_URL=$url ANTHROPIC_API_KEY=test CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1"
check 'init has found claude' claude-code "$(ada 'ollim config get engine')"
ada 'ollim routine add log --cron "* * * * *" --background --update-main-session always --allowed-tools "Bash(git -C /home/ada/work log *)" "Look at the log of the repository and report." >/dev/null'
check 'the files are right' 0 "$(ada 'ollim check' >/dev/null && echo 0 || echo $?)"
ada 'ollim schedule install crontab'
check 'the crontab calls the package' 2 "$(ada 'crontab -l' | grep -c ' /usr/bin/ollim --data-dir ')"
fired() { # ROUTINE: waits for the end of its first run, and prints the outcome
  for _ in $(seq 900); do
    outcome=$(ada "ollim run list --json $1" | sed -n 's/.*"outcome":"\([a-z]*\)".*/\1/p' | tail -n 1)
    [ -n "$outcome" ] && break
    sleep 0.2
  done
  echo "$outcome"
}
check 'cron has fired it' ok "$(fired log)"
check 'its update is in chat' 'The pump was mended.' "$(ada 'ollim chat "what did I miss?"' | tail -n 1)"

# The shell finds what claude needs in a directory that cron does not search. doctor sets status, and faults to the lines that are not PASS.
doctor() {
  said=$(ada 'PATH=$PATH:$HOME/node/bin ollim doctor') && status=0 || status=$?
  faults=$(grep -v '^PASS' <<<"$said" || true)
}
ada 'ollim config set delivery.command sh -c "cat >>\$HOME/mail"; mkdir -p -m 700 .config/ollim; (umask 077; echo engine.ANTHROPIC_API_KEY=test >.config/ollim/secrets.env)'
doctor
check 'doctor finds nothing' '0 ' "$status $faults"

ada 'chmod 644 .config/ollim/secrets.env; crontab -l | sed "s,/usr/bin/ollim,/home/ada/bin/ollim," | crontab -'
ada 'mkdir -p node/bin && ln -s /bin/sh node/bin/node && echo "#!/usr/bin/env node" | cat - >node/bin/claude && echo "exec /usr/local/bin/claude \"\$@\"" >>node/bin/claude && chmod +x node/bin/claude'
ada 'ollim config set claude-code.command /home/ada/node/bin/claude'
named=
for _ in 1 2 3; do # what the secrets hide is found once they can be read
  doctor
  [ "$status" = 1 ] || break
  while IFS=$'\t' read -r result what finding remedy; do
    echo "      $result $what: $finding; $remedy"
    named+="$result $what, "
    ada "$(sed 's/^install it, then: //; s/; its environment is .*//' <<<"$remedy")" </dev/null
  done <<<"$faults"
done
check 'doctor names each fault once' 'FAIL secrets, FAIL entries, FAIL engine under cron, ' "$named"
check 'after its remedies it finds nothing' '0 ' "$status $faults"
ada 'ollim routine add again --cron "* * * * *" --background --isolated "Say that it works." >/dev/null'
check 'and cron fires again' ok "$(fired again)"
ada 'ollim schedule remove crontab'

# A server that runs is restarted by an upgrade, and stopped by removal.
ada 'ollim webhook add ci --signature github --field branch=/workflow_run/head_branch "A build of {branch} has ended." >/dev/null'
inside systemctl enable --quiet --now ollim-webhook@ada.socket ollim-webhook@ada.service
pid=$(inside systemctl show --value -p MainPID ollim-webhook@ada.service)
check 'the unit of the webhook server works' active "$(inside systemctl is-active ollim-webhook@ada.service)"
inside dpkg -i /root/ollim.deb >/dev/null
check 'an upgrade restarts it' yes "$([ "$(inside systemctl show --value -p MainPID ollim-webhook@ada.service)" != "$pid" ] && echo yes)"
check 'and it is active' active "$(inside systemctl is-active ollim-webhook@ada.service)"
inside dpkg --purge ollim >/dev/null 2>&1
check 'removal stops it' '' "$(running)"
check 'no unit is left' "$before" "$(inside sh -c 'systemctl list-unit-files --no-legend | sort')"
check 'nor a link to one' '' "$(inside find /etc/systemd -name 'ollim*')"
check 'the data directory is' yes "$(ada 'test -s .ollim-bot/config.yaml && echo yes')"
exit "$failed"
