package process

import (
	"fmt"
	"io/fs"
	slash "path"
	"strconv"
	"strings"
)

// Memory returns how many bytes this process and its children may use: the machine's memory, or less if a control group has a limit. 0
// means that it is not known. root is the root directory.
func Memory(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	_, rest, _ := strings.Cut(string(text), "MemTotal:")
	var kb int64
	if _, err := fmt.Sscanf(rest, "%d kB", &kb); err != nil {
		return 0
	}
	memory := kb << 10
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) != 3 {
			continue
		}
		top, file := "sys/fs/cgroup", "memory.max"
		switch fields[1] {
		case "":
		case "memory": // version 1
			top, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// In a container the path may be one that only the host has; then just the top is there.
		for group := slash.Join("/", fields[2]); ; group = slash.Dir(group) {
			limit, _ := fs.ReadFile(root, slash.Join(top, group, file))
			if n, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil { // it may be "max"
				memory = min(memory, n)
			}
			if group == "/" {
				break
			}
		}
	}
	return memory
}
