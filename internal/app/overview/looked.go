package overview

import (
	"encoding/json"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
)

// page is state/status.json. Two that look at once do no harm: one of their times stays.
type page struct {
	Looked time.Time `json:"looked"`
}

func path(h app.Home) string { return h.Dir.State("status.json") }

// looked returns when the owner saw the status last; zero if that is not known, or in the future.
func looked(h app.Home) time.Time {
	var p page
	data, err := store.Read(path(h))
	if err != nil || json.Unmarshal(data, &p) != nil || p.Looked.After(h.Disk.Now()) {
		return time.Time{}
	}
	return p.Looked
}

// Look records that the owner sees the status of an instant: of the one before it was collected, so that no failure falls between.
func Look(h app.Home, at time.Time) error {
	return store.WriteJSONAs(path(h), page{at.In(h.Config.Zone)}, store.Buffered)
}
