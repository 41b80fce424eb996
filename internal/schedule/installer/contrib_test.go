package installer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/state/job"
)

// What contrib shows is what is installed, for three routines of Ada's.
func TestContrib(t *testing.T) {
	jobs := []job.Job{
		routine(t, "daily-market", "0 9 * * 1-5", described("Morning market talk")),
		routine(t, "pay-day", "30 8 1,15 * 5", described("On the 1st, the 15th and Fridays: what came in")),
		routine(t, "tokyo-close", "30 15 * * 1-5", described("When Tokyo closes"), in("Asia/Tokyo")),
	}
	block, left, err := Crontab(host(t), jobs)
	if err != nil || len(left) != 1 {
		t.Fatal(ids(left), err)
	}
	units, err := Systemd(host(t), jobs)
	if err != nil {
		t.Fatal(err)
	}
	contrib(t, "crontab", []File{{Name: "ollim.crontab", Text: block}})
	contrib(t, "systemd", units, hardening, listener, doorServer, webhookService, webhookSocket)
}

// hardening is the example of a drop-in, which nothing installs.
const hardening = "hardening.conf"

// listener is the example of a unit for the listener, which nothing installs.
const listener = "ollim-discord@.service"

// doorServer is the example of a unit for the server of a door, which nothing installs.
const doorServer = "ollim-door@.service"

// The examples of units for the webhook server, which nothing installs.
const (
	webhookService = "ollim-webhook@.service"
	webhookSocket  = "ollim-webhook@.socket"
)

// contrib compares a directory with what it should have besides what was written by hand, and with -update makes it so.
func contrib(t *testing.T, folder string, files []File, byHand ...string) {
	t.Helper()
	wanted := map[string]bool{}
	for _, f := range files {
		wanted[f.Name] = true
		golden(t, filepath.Join("..", "..", "..", "..", "contrib", folder, f.Name), f.Text)
	}
	entries, err := os.ReadDir(filepath.Join("..", "..", "..", "contrib", folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !wanted[e.Name()] && !slices.Contains(byHand, e.Name()) {
			t.Errorf("contrib/%s/%s is nothing that is installed", folder, e.Name())
		}
	}
}
