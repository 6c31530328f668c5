package serving

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server"
)

// printLink prints or opens a link to a running server of the store.
func printLink(ctx context.Context, a *app.App, open bool) error {
	return a.Open(ctx, app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore) error {
		dir, err := server.RuntimeDir()
		if err != nil {
			return err
		}
		all, err := server.Find(dir, s.Store.ID())
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return app.Hint(fmt.Errorf("server of %s: %w", s.Name, lineage.ErrNotFound), "'lineage serve' starts one")
		}
		last := &all[len(all)-1]
		link, err := last.Link(ctx)
		if err != nil {
			return err
		}
		if open {
			if err := openBrowser(dir, link); err != nil {
				s.Warn("the browser was not opened: %v", err)
			}
		}
		r := &records.Serving{Store: s.Name, URL: last.URL, Link: link, ReadOnly: last.ReadOnly}
		return s.Print(r, "%s\n", screen.Line(link))
	})
}
