package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/schedule/installer"
)

func newSchedulePrint(d *Deps) *cobra.Command {
	return newScheduleUnits(d, "print", "Print the entries that install would install",
		"Print prints the entries that install would install. For kubernetes and launchd, which install does not support, it "+
			"prints files to apply, or to put into ~/Library/LaunchAgents; kubernetes needs --image and --claim. If there "+
			"are several files, each begins with a line ==> NAME <==.",
		[]string{forCrontab, forSystemd, forKubernetes, forLaunchd}, programs, runSchedulePrint)
}

func runSchedulePrint(_ context.Context, d *Deps, o unitOptions) error {
	_, host, jobs, err := d.entries(o)
	if err != nil {
		return err
	}
	var text string
	var files []installer.File
	var left []installer.Left
	switch o.target {
	case forCrontab:
		text, left, err = installer.Crontab(host, jobs)
	case forKubernetes:
		text, left, err = installer.Kubernetes(host, jobs, o.kube)
	case forLaunchd:
		files, left, err = installer.Launchd(host, jobs)
	default:
		files, err = installer.Systemd(host, jobs)
	}
	if err != nil {
		return o.fault(err)
	}
	d.tellLeft(left)
	for i, f := range files {
		between := "\n"
		if i == 0 {
			between = ""
		}
		if _, err := fmt.Fprintf(d.Out, "%s==> %s <==\n%s", between, f.Name, f.Text); err != nil {
			return err
		}
	}
	_, err = io.WriteString(d.Out, text)
	return err
}
