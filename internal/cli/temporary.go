package cli

// temporary returns the directories whose files do not stay, besides TMPDIR. A schedule does not call a program there. The program that the
// tests of cmd/ollim build has another list, because it is in such a directory itself.
func temporary() []string { return []string{"/tmp", "/var/tmp", "/dev/shm", "/run/user"} }
