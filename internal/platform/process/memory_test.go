package process

import (
	"os"
	"runtime"
	"testing"
	"testing/fstest"
)

func TestMemory(t *testing.T) {
	const total = "MemTotal:        4028560 kB\nMemFree:          124180 kB\nMemAvailable:    3014000 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no /proc":         {nil, 0},
		"no limit":         {map[string]string{"proc/meminfo": total}, 4028560 << 10},
		"unlimited group":  {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 4028560 << 10},
		"group":            {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n"}, 1 << 30},
		"group above":      {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "536870912\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n"}, 1 << 29},
		"container":        {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 1 << 28},
		"group of another": {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/b/memory.max": "268435456\n"}, 4028560 << 10},
		"more than there is": {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "9223372036854771712\n"},
			4028560 << 10},
		"version 1": {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "5:cpu,cpuacct:/x\n3:memory:/docker/1\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n"}, 1 << 29},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := Memory(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := Memory(os.DirFS("/")); runtime.GOOS == "linux" && got < 1<<26 {
		t.Errorf("this machine: %d", got)
	}
}
