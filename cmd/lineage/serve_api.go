package main

import (
	"log/slog"

	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/api"
)

// api returns the routes of the API.
func (s *session) api(logger *slog.Logger, from *pageIndexes) (routes []server.Route) {
	for _, r := range api.New(api.Options{Store: s.store, Logger: logger}).Routes() {
		routes = append(routes, server.Route(r))
	}
	return routes
}
