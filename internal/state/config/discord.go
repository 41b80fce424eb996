package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// messenger configures the messenger. The token is a secret, not a setting.
type messenger struct {
	API        string   // scheme and host in place of Discord's own; "" is Discord's
	Owner      string   // user id; "" is the owner of the application
	Allow      []string // ids of guild channels and of users that have channel sessions
	Transcribe []string // argv of the command that turns a voice note into text
}

// checkAPI rejects an address that a token must not be sent to.
func checkAPI(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is not scheme and host: write them like https://discord.com", s)
	}
	ip := net.ParseIP(u.Hostname())
	switch {
	case u.Scheme == "https", u.Scheme == "http" && (u.Hostname() == "localhost" || ip.IsLoopback()):
		return nil
	}
	return fmt.Errorf("%q would get the token unencrypted: want https, or http on this machine", s)
}

func checkSnowflake(s string) error {
	if len(s) < 17 || len(s) > 20 || strings.Trim(s, "0123456789") != "" {
		return fmt.Errorf("%q is not an id: copy it in Discord (Settings, Advanced, Developer Mode)", s)
	}
	return nil
}
