package threads

import (
	"context"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// Search implements Keeper. It searches the named thread, or all.
func (d *database) Search(ctx context.Context, o *SearchOptions) ([]*Hit, error) {
	among, text, err := o.read()
	if err != nil {
		return nil, err
	}
	if among != nil {
		return nil, app.Usagef("a search in a database is limited by --thread, --user and --role only")
	}
	hits, err := FindHits(o.Limit, func(limit int) ([]chat.SearchResult, error) {
		options := chat.SearchOptions{Roles: o.Roles, Limit: limit}
		if d.NamedThread() != "" {
			return d.chats.SearchMessages(ctx, d.current, text, options)
		}
		return sqlchat.SearchAll(ctx, d.db, o.User, text, options)
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
