package serving

import (
	"log/slog"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/api"
)

// apiRoutes returns the routes of the API.
func apiRoutes(s *app.Session, logger *slog.Logger, from *pageIndexes) (routes []server.Route) {
	for _, r := range api.New(api.Options{Store: s.Store, Logger: logger}).Routes() {
		routes = append(routes, server.Route(r))
	}
	return routes
}
