package sources

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
)

// importDB imports the threads of a SQL database. If the database cannot be opened, no store
// is created.
func importDB(ctx context.Context, a *app.App, mode app.OpenMode, o *importOptions) error {
	if o.format != "" || o.prefix != "" || len(o.limits) > 0 {
		return app.Usagef("--format, --prefix and --limit are for archives, not for databases")
	}
	return app.OnDB(ctx, o.path, sqladapter.AdoptTables, func(db *sqladapter.DB) error {
		return a.Open(ctx, mode, func(ctx context.Context, s *app.OpenStore) error { return importChats(ctx, s, db, o) })
	})
}

// importChats imports the threads of an open database.
func importChats(ctx context.Context, s *app.OpenStore, db *sqladapter.DB, o *importOptions) error {
	before, err := s.Store.Stats(ctx)
	if err != nil {
		return err
	}
	r := records.Imported{Formats: []string{"database"}, Skipped: []records.SkippedItem{}, Repaired: []records.SkippedItem{}, Ignored: []string{}}
	line := s.Progress("importing", func(n int64) string { return amount.Plural(n, "message") })
	report, err := importing.Run(ctx, db, s.Store, importing.Options{
		UserID:   o.user,
		Progress: func(r importing.Report) { line.Show(int64(r.Messages), 0) },
		Problem: func(chatID string, err error) {
			if len(r.Skipped) < maxSkipped {
				r.Skipped = append(r.Skipped, records.SkippedItem{Position: fmt.Sprintf("thread %q", chatID), Reason: err.Error()})
			}
		},
	})
	line.Done()
	if err != nil {
		return app.Hint(err, importAgain)
	}
	after, err := s.Store.Stats(ctx)
	if err != nil {
		return err
	}
	r.Conversations, r.Messages, r.NewMessages = int64(report.Chats), int64(report.Messages), int64(report.New)
	r.NewConversations, r.NewBytes = grown(before.Threads, after.Threads), grown(before.UniqueBytes, after.UniqueBytes)
	r.SkippedCount = int64(report.Problems)
	const whole = true
	return printImported(s.App, &r, whole)
}

// maxSkipped limits the listed items that were left out.
const maxSkipped = 1000

func grown(before, after uint64) int64 { return int64(after - min(before, after)) }
