package installer

import (
	"os"
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/platform/paths"
)

// TestClusters: the last installation in each place is known, until it is removed.
func TestClusters(t *testing.T) {
	c := Clusters{Home: paths.Dir(t.TempDir())}
	first := InCluster{KubeOptions: KubeOptions{Image: "i", Claim: "data", Memory: "1Gi"}}
	again := InCluster{KubeOptions: KubeOptions{Image: "other", Claim: "data"}, TickOnly: true}
	home := InCluster{KubeOptions: KubeOptions{Image: "i", Claim: "data", Namespace: "home"}}
	has := func(want ...InCluster) {
		t.Helper()
		if got, err := c.List(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	has()
	for _, done := range []InCluster{first, home, again, again} {
		if err := c.Note(t.Context(), done); err != nil {
			t.Fatal(err)
		}
	}
	has(again, home)
	for _, place := range []KubeOptions{first.KubeOptions, {Claim: "unknown"}} {
		if err := c.Forget(t.Context(), place); err != nil {
			t.Fatal(err)
		}
	}
	has(home)
	if err := c.Forget(t.Context(), home.Place()); err != nil {
		t.Fatal(err)
	}
	has()
	if _, err := os.Stat(c.Home.Clusters()); !os.IsNotExist(err) {
		t.Errorf("the empty record is left: %v", err)
	}
	if err := os.WriteFile(c.Home.Clusters(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.List(); err == nil {
		t.Error("an invalid record is no error")
	}
}
