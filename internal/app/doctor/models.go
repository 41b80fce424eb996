package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

// models asks the services for the lists of their models, and looks for models that are used and are not listed, are about to be retired,
// or have no price or another one. What keeps an engine from its service is a finding of the check "engine".
func (e *examination) models(ctx context.Context) string {
	uses, err := e.home.ModelUses()
	if err != nil || len(uses) == 0 || e.App.CheckSecrets() != nil {
		return ""
	}
	lists, err := e.home.AskModels(ctx, uses, false)
	var missing *app.Hinted
	if provider.Unavailable(err) && !errors.As(err, &missing) {
		e.warn("check the network and the key; then: ollim model check", "%v", err)
	}
	ids := map[string]bool{}
	for _, u := range uses {
		ids[u.Model.ID] = true
	}
	for _, f := range e.home.ModelFaults(uses, lists, false) {
		e.warn(f.Remedy, "%s, used by %s, %s", f.Model, strings.Join(f.UsedBy, ", "), f.Text)
	}
	return fmt.Sprintf("%s in use", plaintext.Count(len(ids), "model"))
}
