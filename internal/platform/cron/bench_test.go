package cron_test

import (
	"testing"
	"time"
)

func BenchmarkNext(b *testing.B) {
	for _, name := range []string{"UTC", "America/New_York"} {
		zone := load(b, name)
		for _, expr := range []string{"*/5 * * * *", "0 9 * * 1-5", "30 4 1,15 * 5", "0 0 29 2 *", "0 0 1 1 *"} {
			b.Run(name+"/"+expr, func(b *testing.B) {
				s := parse(b, expr)
				at := time.Date(2026, 11, 21, 7, 33, 23, 0, time.UTC)
				b.ReportAllocs()
				for b.Loop() {
					if _, ok := s.Next(at, zone); !ok {
						b.Fatal("never")
					}
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		parse(b, "*/5 9-17 1,15 * mon-fri")
	}
}
