package openaiapi

import (
	"net/http"
	"sync"
)

// catalog is the list of models that GET /v1/models serves; nil: there is no such route.
type catalog struct {
	mu     sync.Mutex
	models []any
}

// List makes the service list these models from now on: ids, or whole objects with the fields that other services add.
func (s *Server) List(list ...any) {
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	s.catalog.models = []any{}
	for _, m := range list {
		if id, ok := m.(string); ok {
			m = obj{"id": id, "object": "model", "created": 1771459200, "owned_by": "system"}
		}
		s.catalog.models = append(s.catalog.models, m)
	}
}

func (c *catalog) get() []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.models
}

// models answers a request for the list.
func (a answer) models(c *catalog) {
	list := c.get()
	if list == nil {
		a.fail(Reply{Status: http.StatusNotFound, Message: "Invalid URL (GET /v1/models)"})
		return
	}
	a.JSON(http.StatusOK, obj{"object": "list", "data": list})
}
