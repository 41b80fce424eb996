package installer

import (
	"fmt"
	"strings"
)

func clusterHead(o KubeOptions) string {
	return `# CronJobs for a cluster, made by: ollim schedule print kubernetes
# The claim has to let all nodes that run these write (ReadWriteMany), with a file system on which flock works.
` + when(o.Secret != "", `# The secret is made from your secrets.env: kubectl create secret generic `+o.Secret+` --from-file=ollim-secrets=secrets.env
`)
}

// text is the document; every value that is not ours is between quotes.
func (c cronJob) text() string { return c.head() + c.spec() + c.container() + c.volumes() }

func (c cronJob) head() string {
	return `---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: ` + quoteYAML(c.Name) + "\n" +
		when(c.Namespace != "", "  namespace: "+quoteYAML(c.Namespace)+"\n") + `  labels:
    app.kubernetes.io/name: ollim
  annotations:
` + when(c.ID != "", "    ollim/job: "+quoteYAML(c.ID)+"\n") + "    ollim/description: " + quoteYAML(c.About) + "\n"
}

func (c cronJob) spec() string {
	return fmt.Sprintf(`spec:
  schedule: %s
  timeZone: %s
  concurrencyPolicy: %s
  startingDeadlineSeconds: %d
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 0 # whether a run is tried again is not for the cluster to say
      template:
        metadata:
          labels:
            app.kubernetes.io/name: ollim
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          securityContext:
            runAsNonRoot: true
            runAsUser: 1000
            runAsGroup: 1000
            fsGroup: 1000
            fsGroupChangePolicy: OnRootMismatch
            seccompProfile:
              type: RuntimeDefault
`, quoteYAML(c.Schedule), quoteYAML(c.Zone), c.Concurrency, c.Deadline)
}

func (c cronJob) container() string {
	var command strings.Builder
	for _, word := range c.Command {
		command.WriteString("                - " + quoteCommand(word) + "\n")
	}
	return `          containers:
            - name: ollim
              image: ` + quoteYAML(c.Image) + `
              command:
` + command.String() + `              env:
                - name: HOME
                  value: /home/ollim
` + when(c.Secret != "", `                - name: CREDENTIALS_DIRECTORY
                  value: /run/credentials/ollim
`) + `              securityContext:
                allowPrivilegeEscalation: false
                capabilities:
                  drop: [ALL]
              volumeMounts:
                - name: data
                  mountPath: ` + quoteYAML(c.DataDir) + `
                  subPath: data
                - name: data
                  mountPath: /home/ollim
                  subPath: home
` + when(c.Secret != "", `                - name: secret
                  mountPath: /run/credentials/ollim
                  readOnly: true
`)
}

func (c cronJob) volumes() string {
	return `          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: ` + quoteYAML(c.Claim) + "\n" + when(c.Secret != "", `            - name: secret
              secret:
                secretName: `+quoteYAML(c.Secret)+`
                defaultMode: 0440
`)
}
