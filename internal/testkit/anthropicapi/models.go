package anthropicapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
)

// catalog is the list of models that GET /v1/models serves; nil: there is no such route.
type catalog struct {
	mu     sync.Mutex
	models []listedModel
	fault  int // status of every answer; 0: none
}

// listedModel is a model as the API lists it.
type listedModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

// List makes the API list these models, in this order, from now on.
func (s *Server) List(ids ...string) {
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	s.catalog.fault, s.catalog.models = 0, []listedModel{}
	for _, id := range ids {
		s.catalog.models = append(s.catalog.models, listedModel{"model", id, "Claude " + id, "2026-02-19T00:00:00Z"})
	}
}

// FailList makes the API answer requests for the list with an error.
func (s *Server) FailList(status int) {
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	s.catalog.fault, s.catalog.models = status, []listedModel{}
}

func (c *catalog) get() ([]listedModel, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.models, c.fault
}

// defaultPage is how many models a page has if the request does not say.
const defaultPage = 20

// models answers a request for a page of the list.
func (a answer) models(header http.Header, query url.Values, c *catalog) {
	list, fault := c.get()
	switch {
	case list == nil:
		a.fail(Reply{Status: http.StatusNotFound})
		return
	case header.Get("Anthropic-Version") == "":
		a.refuse("anthropic-version: header is required")
		return
	case (Request{Header: header}).Key() == "":
		a.fail(noKey())
		return
	case fault != 0:
		a.fail(Reply{Status: fault})
		return
	}
	limit := defaultPage
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			a.refuse("limit: Input should be between 1 and 1000")
			return
		}
		limit = n
	}
	if after := query.Get("after_id"); after != "" {
		i := slices.IndexFunc(list, func(m listedModel) bool { return m.ID == after })
		list = list[i+1:]
	}
	page := struct {
		Data  []listedModel `json:"data"`
		More  bool          `json:"has_more"`
		First *string       `json:"first_id"`
		Last  *string       `json:"last_id"`
	}{Data: list[:min(limit, len(list))], More: len(list) > limit}
	if n := len(page.Data); n > 0 {
		page.First, page.Last = &page.Data[0].ID, &page.Data[n-1].ID
	}
	a.JSON(http.StatusOK, page)
}
