// Package databases has the commands that project a store to a SQL database and compare them.
package databases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/project"
)

type projectOptions struct {
	dsn       string
	chatsOnly bool
	follow    bool
	interval  time.Duration
}

func ProjectCommand(a *app.App) *cobra.Command {
	o := &projectOptions{}
	c := &cobra.Command{
		Use:   "project DATABASE",
		Short: "Write the threads of a store to a SQL database",
		Long: `Writes the threads of a store to the documented tables of a database: a SQLite file
(sqlite:FILE), Postgres (postgres://…) or SQL Server (sqlserver://…). A database that was filled before gets
what is new. It can be stopped at any point and continues from there; running it twice changes nothing.

A thread that the database cannot hold, such as one with an id that is too long for its keys, is left out, together
with what only it has, and comes when the database can hold it. So are the values of a user, an application or the store.
The others are written. As long as any are left out they are listed, and the exit code is 7.

With --follow it keeps the database up to date until it is interrupted. As with 'lineage watch', other
processes can change the store meanwhile. Changes of one that keeps others out are written when it closes the store.`,
		Example: `  lineage project sqlite:chats.db
  lineage project sqlite:only-chats.db --chats-only --json`,
		Args: cobra.ExactArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.dsn = args[0]
			if err := app.NeedDSN(o.dsn); err != nil {
				return err
			}
			return runProject(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.BoolVar(&o.chatsOnly, "chats-only", false, "leave out the tables of content and structure")
	f.BoolVar(&o.follow, "follow", false, "keep writing new messages, until interrupted")
	f.DurationVar(&o.interval, "interval", 500*time.Millisecond, "how often to look for changes, with --follow, where another process has the store for itself")
	return c
}

func runProject(ctx context.Context, a *app.App, o *projectOptions) (err error) {
	if o.interval <= 0 {
		return app.Usagef("--interval: must be more than 0")
	}
	var db *sqladapter.DB
	defer func() {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	runs, leftOut := 0, []records.SkippedItem(nil)
	project := func(ctx context.Context, s *app.OpenStore) error {
		if db == nil { // if the store cannot be opened, no file is created
			opened, err := app.OpenDB(ctx, o.dsn, sqladapter.CreateTables)
			if err != nil {
				return err
			}
			db, a.Keeps = opened, true
		}
		r, err := projectOnce(ctx, s, o, db)
		if err != nil {
			return err
		}
		if runs++; runs > 1 && r.From == r.To {
			return nil // for example after a collection, which changes only files
		}
		err = tellProjected(s.App, r, runs == 1 || !slices.Equal(leftOut, r.Skipped))
		leftOut = r.Skipped
		if err == nil && !o.follow && r.SkippedCount > 0 {
			err = fmt.Errorf("%s left out: %w", amount.Plural(r.SkippedCount, "thread"), app.ErrPartial)
		}
		return err
	}
	if !o.follow {
		return a.Open(ctx, app.Reading|app.NoThread, project)
	}
	return a.Follow(ctx, o.interval, project)
}

func projectOnce(ctx context.Context, s *app.OpenStore, o *projectOptions, db *sqladapter.DB) (*records.Projected, error) {
	line := s.Progress("projecting", func(n int64) string { return amount.Plural(n, "thread") })
	report, err := (&project.Projector{Store: s.Store, DB: db, ChatsOnly: o.chatsOnly, Progress: func(r project.Report) {
		line.Show(int64(r.Threads), int64(r.Total))
	}}).Run(ctx)
	line.Done()
	skipped := []records.SkippedItem{}
	for i := range report.LeftOut {
		skipped = append(skipped, records.SkippedItem{Position: report.LeftOut[i].String(), Reason: report.LeftOut[i].Reason})
	}
	return &records.Projected{
		Database: app.Redact(o.dsn), From: report.From.Number, To: report.To.Number, Threads: report.Threads,
		Added: report.Added, Changed: report.Changed, Removed: report.Removed,
		Skipped: skipped, SkippedCount: int64(report.LeftOutCount),
	}, app.DatabaseHint(err)
}

// tellProjected prints the result of a projection, with what is left out if list is set.
func tellProjected(a *app.App, r *records.Projected, list bool) error {
	but := ""
	if r.SkippedCount > 0 {
		noun := "thread"
		if slices.ContainsFunc(r.Skipped, func(i records.SkippedItem) bool { return strings.HasPrefix(i.Position, "values ") }) {
			noun = "item"
		}
		but = " but " + amount.Plural(r.SkippedCount, noun)
	}
	var err error
	if r.From == r.To {
		err = a.Print(r, "%s has everything%s up to commit %d already\n", r.Database, but, r.To)
	} else {
		err = a.Print(r, "%s is at commit %d: %s added, %d changed, %d removed in %s\n", r.Database, r.To,
			amount.Plural(r.Added, "message"), r.Changed, r.Removed, amount.Plural(r.Threads, "thread"))
	}
	if list && !a.JSON {
		show.Items(a, "skipped", r.Skipped, r.SkippedCount)
	}
	return err
}
