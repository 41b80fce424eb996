package api

import (
	"testing"
	"time"
)

func TestSnowflake(t *testing.T) {
	for id, want := range map[string]uint64{
		"1200000000000000001": 1200000000000000001, "7": 7, "": 0, "0": 0, "07": 0, "+7": 0, "-7": 0, "7\n": 0, "1_0": 0, "0x7": 0, "٧": 0,
		"99999999999999999999": 0,
	} {
		if got := Snowflake(id); got != want {
			t.Errorf("%q: %d", id, got)
		}
	}
	if got := Before("1", time.Minute); got != "0" {
		t.Errorf("before the first id: %s", got)
	}
}
