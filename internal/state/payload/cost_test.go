package payload

import (
	"runtime"
	"strings"
	"testing"
)

// What a payload costs is in proportion to its size, also if it is made to cost more.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		name, schema, payload string
		most                  uint64 // bytes allocated for each byte of the payload
	}{
		{"many lists that are dropped", just("{from: /a/b}"), `{"v": [` + strings.Repeat("[],", 1<<18) + `1]}`, 20},
		{"many keys that are dropped", just("{from: /a/b}"), `{"v": 1` + strings.Repeat(`,"a": 0`, 1<<16) + `}`, 100},
		{"many keys where a field is", just("{from: /a/b}"), `{"a": {"c": 1` + strings.Repeat(`,"a": 0`, 1<<16) + `}}`, 100},
		{"a long string and many schemas", just("{anyOf: [" + strings.Repeat("{pattern: '^b'},", 900) + "{type: integer}]}"), `{"v": "` + strings.Repeat("x", 4<<20) + `"}`, 400},
	} {
		fields := must(t, c.schema)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = fields.Select([]byte(c.payload))
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / uint64(len(c.payload)); each > c.most {
			t.Errorf("%s: %d bytes for each byte, want at most %d", c.name, each, c.most)
		}
	}
}
