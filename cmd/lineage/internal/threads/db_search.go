package threads

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// Search implements Keeper. It searches the named thread, or all.
func (d *database) Search(ctx context.Context, o *SearchOptions) ([]*Hit, error) {
	if among, err := o.among(); err != nil || among != nil {
		return nil, errors.Join(err, app.Usagef("a search in a database is limited by --thread, --user and --role only"))
	}
	hits, err := FindHits(o.Limit, func(limit int) ([]chat.SearchResult, error) {
		options := chat.SearchOptions{Roles: o.Roles, Limit: limit}
		if d.NamedThread() != "" {
			return d.chats.SearchMessages(ctx, d.current, o.Query, options)
		}
		return sqlchat.SearchAll(ctx, d.db, o.User, o.Query, options)
	})
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		for i := range h.Threads {
			if i == maxHitThreads && !d.JSON {
				break
			}
			c, err := d.chats.Chat(ctx, h.Threads[i].ID)
			if err != nil {
				return nil, err
			}
			title := ""
			if c != nil {
				h.Threads[i].Title = c.Title
				if title, err = d.shownTitle(ctx, c); err != nil {
					return nil, err
				}
			}
			h.addIn(title, h.Threads[i].ID)
		}
	}
	return hits, nil
}
