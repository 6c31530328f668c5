package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/sqladapter"
)

type projectOptions struct {
	dsn       string
	chatsOnly bool
}

func projectCommand(a *app) *cobra.Command {
	o := &projectOptions{}
	c := &cobra.Command{
		Use:   "project DATABASE",
		Short: "Bring a store's history into a SQL database",
		Long: `Brings the history of a store into the documented tables of a database: a SQLite file
(sqlite:FILE), Postgres (postgres://…) or SQL Server (sqlserver://…). A database that was filled before gets
what is new. It can be stopped at any point and goes on from there; running it twice changes nothing.`,
		Example: `  lineage project sqlite:chats.db
  lineage project sqlite:only-chats.db --chats-only --json`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.dsn = args[0]
			if !isDSN(o.dsn) {
				return hint(usagef("%s: not a database", o.dsn), "write sqlite:FILE, postgres://… or sqlserver://…")
			}
			return a.open(ctx, openMode{readOnly: true, noChat: true}, func(ctx context.Context, s *session) error {
				return runProject(ctx, s, o)
			})
		}),
	}
	c.Flags().BoolVar(&o.chatsOnly, "chats-only", false, "leave out the tables of content and structure")
	return c
}

// projectedRecord tells what project did.
type projectedRecord struct {
	Database string `json:"database"`
	// From and To are the commits that the database had and has.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Threads is how many chats were looked at.
	Threads int `json:"threads"`
	// Added, Changed and Removed count messages.
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

func (*projectedRecord) recordType() string { return "projected" }

// databaseHint adds what to do about a database that cannot be used so.
func databaseHint(err error) error {
	switch {
	case errors.Is(err, sqladapter.ErrOtherStore), errors.Is(err, sqladapter.ErrNotEmpty), errors.Is(err, sqladapter.ErrForeign):
		return hint(err, "give a database of its own for each store")
	case errors.Is(err, sqladapter.ErrNotProjected), errors.Is(err, sqladapter.ErrBehind):
		return hint(err, "'lineage project' brings it up to date")
	}
	return err
}

func runProject(ctx context.Context, s *session, o *projectOptions) (err error) {
	db, err := openDB(ctx, o.dsn)
	if err != nil {
		return databaseHint(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	line := s.progress("projecting", func(n int64) string { return screen.Plural(n, "chat") })
	report, err := (&sqladapter.Projector{Store: s.store, DB: db, ChatsOnly: o.chatsOnly, Progress: func(r sqladapter.ProjectReport) {
		line.Show(int64(r.Threads), int64(r.Total))
	}}).Run(ctx)
	line.Done()
	if err != nil {
		return databaseHint(err)
	}
	r := projectedRecord{
		Database: redact(o.dsn), From: report.From, To: report.To, Threads: report.Threads,
		Added: report.Added, Changed: report.Changed, Removed: report.Removed,
	}
	if s.json {
		return s.emit(&r)
	}
	if r.From == r.To {
		s.printf("%s has everything up to commit %d already\n", r.Database, r.To)
		return nil
	}
	s.printf("%s is at commit %d: %s added, %d changed, %d removed in %s\n", r.Database, r.To,
		screen.Plural(int64(r.Added), "message"), r.Changed, r.Removed, screen.Plural(int64(r.Threads), "chat"))
	return nil
}
