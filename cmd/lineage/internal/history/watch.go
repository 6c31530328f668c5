package history

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type watchOptions struct {
	from     uint64
	follow   bool
	interval time.Duration
}

func WatchCommand(a *app.App) *cobra.Command {
	o := &watchOptions{}
	c := &cobra.Command{
		Use:   "watch",
		Short: "Print changes of a store as they happen",
		Long: `Prints the changes of every commit, in order, with the start of the messages that it added. It starts with the next commit, or at the one
given by --from, and runs until it is interrupted, or with --follow=false up to the last
commit there is. To continue later, give --from the number of its last commit plus one.

Other processes can use the store meanwhile. Commits of one that keeps others out are printed when it
closes the store.`,
		Example: `  lineage watch --from 1 --follow=false
  lineage watch --from 1 --follow=false --json`,
		Args: cobra.NoArgs,
		RunE: a.Does(func(ctx context.Context, _ []string) error { return runWatch(ctx, a, o) }),
	}
	f := c.Flags()
	f.Uint64Var(&o.from, "from", 0, "the first commit to print; 0 is the next there will be")
	f.BoolVar(&o.follow, "follow", true, "wait for more")
	f.DurationVar(&o.interval, "interval", 500*time.Millisecond, "how often to look for changes, where another process has the store for itself")
	return c
}

func runWatch(ctx context.Context, a *app.App, o *watchOptions) error {
	if o.interval <= 0 {
		return app.Usagef("--interval: must be more than 0")
	}
	after := lineage.Cursor{Number: max(o.from, 1) - 1}
	print := o.from > 0
	watch := func(ctx context.Context, s *app.OpenStore) error {
		last, err := printChanges(ctx, s, after, print)
		if err == nil {
			after, print = last, true
		}
		return err
	}
	if !o.follow {
		return a.Open(ctx, app.Reading|app.NoThread, watch)
	}
	return a.Follow(ctx, o.interval, watch)
}

// printChanges prints the commits after a cursor if print is set, and returns the last one.
func printChanges(ctx context.Context, s *app.OpenStore, after lineage.Cursor, print bool) (last lineage.Cursor, err error) {
	if last, err = s.Store.View().Head(ctx); err != nil || !print {
		return last, err
	}
	last = after
	for c, err := range s.Store.Changes(ctx, after) {
		if err != nil {
			return last, err
		}
		last = c.Commit
		for i := range c.Events {
			if err := printEvent(s.App, &c, &c.Events[i]); err != nil {
				return last, err
			}
			if err := printAdded(ctx, s, &c.Events[i]); err != nil {
				return last, err
			}
		}
	}
	return last, nil
}

func printEvent(a *app.App, c *lineage.Change, e *lineage.Event) error {
	r := records.NewEvent(c, e)
	line := r.Kind
	if r.Name != "" {
		line += " " + screen.Line(r.Name)
	}
	content := ""
	if r.ContentID != "" {
		content = e.Content.Short()
	}
	for _, id := range [][2]string{
		{"thread", r.Thread}, {"context", r.Context}, {"parent", r.Parent}, {"from", r.From}, {"at", r.Span}, {"content", content},
	} {
		if id[1] != "" {
			line += "  " + a.Out.Paint(screen.Dim, id[0]) + " " + show.ShortID(id[1])
		}
	}
	return a.Print(r, "%s  %s  %s\n", a.Out.Paint(screen.Yellow, amount.Count(r.Commit)), a.Out.Paint(screen.Dim, c.Time.Local().Format("15:04:05")), line)
}

// maxMessages limits the messages of a commit that are shown to people.
const maxMessages = 20

// printAdded prints the start of the messages by which a context was extended, except those deleted since.
func printAdded(ctx context.Context, s *app.OpenStore, e *lineage.Event) error {
	if s.JSON || e.Kind != lineage.ContextExtended {
		return nil
	}
	before, err := s.Store.Position(ctx, e.From)
	if err != nil {
		return ignoreNotFound(err)
	}
	for entry, err := range s.Store.History(ctx, e.Span, lineage.Window{From: before + 1, To: before + maxMessages}) {
		if err != nil {
			return ignoreNotFound(err)
		}
		line, err := show.Line(ctx, s, entry)
		if err != nil {
			return err
		}
		role := cmp.Or(entry.Role, entry.Kind.String())
		s.Printf("    %s  %s\n", s.Out.Paint(screen.OfRole(role), screen.Line(role)), screen.Cut(line, 200))
	}
	return nil
}

// ignoreNotFound returns nil for the error that something was deleted in the meantime.
func ignoreNotFound(err error) error {
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	return err
}
