package threads

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// database is an open SQL database as a Keeper.
type database struct {
	*app.App
	db    *sqladapter.DB
	chats chat.Store
	// current is the id of the current thread, empty if there is none.
	current string
	refs    *refs.Chats
}

// openDatabase runs a command on the named database.
func openDatabase(ctx context.Context, a *app.App, mode app.OpenMode, run func(context.Context, *database) error) error {
	schema := sqladapter.AdoptTables
	switch {
	case mode.Has(app.Begins):
		schema = sqladapter.CreateTables
	case mode.Has(app.Reading):
		schema = sqladapter.KeepTables
	}
	err := app.OnDB(ctx, a.DSN(), schema, func(db *sqladapter.DB) error {
		d := &database{App: a, db: db, chats: sqlchat.On(db)}
		if name := a.NamedThread(); name != "" {
			c, err := refs.NewChats(d.chats, "").Chat(ctx, name)
			if err != nil {
				return err
			}
			d.current = c.ID
		} else {
			for c, err := range d.chats.ListChats(ctx, chat.ListOptions{Limit: 1}) {
				if err != nil {
					return err
				}
				d.current = c.ID
			}
		}
		d.refs = refs.NewChats(d.chats, d.current)
		return run(ctx, d)
	})
	var failed *app.DatabaseError
	switch isFile := strings.HasPrefix(a.DSN(), "sqlite:"); {
	case errors.As(err, &failed) && failed.Err == fs.ErrNotExist: // of onDB; a socket of a server may be missing too
		return app.Hint(err, "'lineage thread create --id ID' makes one, and so does 'lineage append'")
	case errors.Is(err, sqladapter.ErrNoTables) && !isFile:
		return app.Hint(err, "'lineage thread create' and 'lineage append' create them; a store on a PostgreSQL server is named by 'postgres://…?store=NAME'")
	case errors.Is(err, sqladapter.ErrNoTables):
		return app.Hint(err, "'lineage thread create' and 'lineage append' create them")
	}
	return err
}

// shownTitle returns the title under which a thread is shown.
func (d *database) shownTitle(ctx context.Context, c *chat.Chat) (string, error) {
	title, err := chat.ShownTitle(ctx, d.chats, c)
	return cmp.Or(screen.Line(title), transcript.Untitled), err
}
