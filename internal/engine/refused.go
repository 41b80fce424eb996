package engine

import "strings"

// RefusesModel reports whether a service that refuses a request with status 403 refuses the model and not the key: its message names the
// model, or the resource of the request, which is the model.
func RefusesModel(model, said string) bool {
	said = strings.ToLower(said)
	return strings.Contains(said, "specified resource") || strings.Contains(said, " model") ||
		model != "" && strings.Contains(said, strings.ToLower(model))
}
