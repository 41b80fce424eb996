package cli

import (
	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/model"
)

func newModel(d *Deps) *cobra.Command {
	return group("model", "models", "Models: what is known of them", newModelList(d))
}

// models is what is known of models, the owner's own lines included.
func (h house) models() (model.Table, error) {
	t, err := model.Known().With(h.config.Models)
	if err != nil {
		return t, &config.Wrong{Reason: "models: " + err.Error()}
	}
	return t, nil
}
