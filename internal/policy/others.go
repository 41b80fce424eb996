package policy

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// decideTask decides a delegation, by the name of the subagent.
func decideTask(in fields, patterns []Pattern) (Pattern, error) {
	name := in.text("subagent_type")
	return pick(patterns, quote(name), func(p Pattern) bool { return !p.scoped || match(p.name, name) })
}

// decideSkill decides a skill, by its name and whether it has arguments. Arguments become part of the skill's text, so they
// may not look like one of its commands.
func decideSkill(in fields, patterns []Pattern) (Pattern, error) {
	_, newer := in["skill"]
	_, older := in["command"]
	if newer == older {
		return Pattern{}, errors.New("it needs the name of one skill")
	}
	name, args := in.text("skill")+in.text("command"), in.text("args")
	if older {
		name, args = strings.TrimPrefix(name, "/"), strings.TrimSpace(args)
	}
	if !isSkill(name) {
		return Pattern{}, fmt.Errorf("%s is not the name of a skill", quote(name))
	}
	if strings.Contains(args, "!`") {
		return Pattern{}, errors.New("no !` in the arguments")
	}
	return pick(patterns, quote(name), func(p Pattern) bool { return !p.scoped || match(p.name, name) && (args == "" || p.args) })
}

// decideFetch decides a web address, by its host.
func decideFetch(in fields, patterns []Pattern) (Pattern, error) {
	host, err := PublicHost(in.text("url"))
	if err != nil {
		return Pattern{}, fmt.Errorf("%s: %w", quote(in.text("url")), err)
	}
	return pick(patterns, quote(host), func(p Pattern) bool { return !p.scoped || match(p.name, host) })
}

// PublicHost is the host of a web address, in lower case. The address must be written as every reader of addresses understands it,
// and must not plainly be this machine or its network: its host is a name with a dot.
func PublicHost(address string) (string, error) {
	if err := plaintext.Check(address, longestPath); err != nil {
		return "", err
	}
	rest, ok := strings.CutPrefix(address, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(address, "http://")
	}
	authority := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool { return !strings.ContainsRune("/?#", r) }))]
	if !ok || strings.ContainsAny(address, "\\ ") || strings.ContainsAny(authority, "@%") {
		return "", errors.New("want http://HOST/… or https://HOST/…")
	}
	u, err := url.Parse(address)
	if err != nil || u.Host != authority {
		return "", errors.New("not a web address")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case !isHost(host), strings.Trim(last, "0123456789") == "", strings.HasPrefix(last, "0x"):
		return "", errors.New("the host must be a name, not an address") // 127.1 and 0x7f.1 are addresses to some
	case last == host, slices.Contains([]string{"localhost", "local", "internal", "localdomain", "lan", "home", "arpa"}, last):
		return "", errors.New("only public hosts")
	}
	return host, nil
}
