package api

import (
	"context"
	"net/http"
)

// document returns the OpenAPI document of a table.
func document(routes []route) []byte { return nil }

func (a *API) openAPIDocument(_ context.Context, c *call, _ *struct{}) error {
	return c.sendJSON(http.StatusOK, a.openAPI)
}
