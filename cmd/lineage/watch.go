package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/records"
)

type watchOptions struct {
	from     uint64
	follow   bool
	interval time.Duration
}

func watchCommand(a *app) *cobra.Command {
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
		RunE: a.does(func(ctx context.Context, _ []string) error { return runWatch(ctx, a, o) }),
	}
	f := c.Flags()
	f.Uint64Var(&o.from, "from", 0, "the first commit to print; 0 is the next there will be")
	f.BoolVar(&o.follow, "follow", true, "wait for more")
	f.DurationVar(&o.interval, "interval", 500*time.Millisecond, "how often to look for changes, where another process has the store for itself")
	return c
}

func runWatch(ctx context.Context, a *app, o *watchOptions) error {
	if o.interval <= 0 {
		return usagef("--interval: must be more than 0")
	}
	after := lineage.Cursor{Number: max(o.from, 1) - 1}
	print := o.from > 0
	look := func(ctx context.Context, s *session) error {
		last, err := s.printChanges(ctx, after, print)
		if err == nil {
			after, print = last, true
		}
		return err
	}
	if !o.follow {
		return a.open(ctx, reading|noThread, look)
	}
	return a.follow(ctx, o.interval, look)
}

// follow does something at once and whenever the store has changed, until it fails or
// is interrupted.
func (a *app) follow(ctx context.Context, interval time.Duration, do func(context.Context, *session) error) error {
	began := false
	err := a.open(ctx, reading|noThread, func(ctx context.Context, s *session) error {
		began = true
		return derived.Follow(ctx, s.store, func(ctx context.Context) (lineage.Cursor, error) {
			head, err := s.store.View().Head(ctx) // what changes from here on is seen the next time
			if err == nil {
				err = do(ctx, s)
			}
			return head, errors.Join(err, a.flush())
		})
	})
	if began || !errors.Is(err, lineage.ErrLocked) {
		return err
	}
	return a.poll(ctx, interval, do)
}

// poll is follow for a store that another process may keep others out of. It opens the store only
// when its files have changed, for a moment, and waits while another process has it open.
func (a *app) poll(ctx context.Context, interval time.Duration, do func(context.Context, *session) error) error {
	dir, err := a.findStore(false)
	if err != nil {
		return err
	}
	for seen := ""; ; {
		// What changes meanwhile is seen the next time.
		if state := journalState(dir); state != seen {
			err := a.open(ctx, reading|noThread, do)
			if err == nil {
				seen = state
			} else if !errors.Is(err, lineage.ErrLocked) {
				return err
			}
			if err := a.flush(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(interval):
		}
	}
}

// journalState returns a text that differs when a journal has changed.
func journalState(dir string) string {
	entries, err := os.ReadDir(filepath.Join(dir, "journal"))
	if err != nil {
		return "?" + err.Error()
	}
	state := ""
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			state += e.Name() + info.ModTime().String() + screen.Count(info.Size())
		}
	}
	return state
}

// printChanges prints the commits after a cursor, if they are to be printed, and returns the
// last.
func (s *session) printChanges(ctx context.Context, after lineage.Cursor, print bool) (last lineage.Cursor, err error) {
	if last, err = s.store.View().Head(ctx); err != nil || !print {
		return last, err
	}
	last = after
	for c, err := range s.store.Changes(ctx, after) {
		if err != nil {
			return last, err
		}
		last = c.Commit
		for i := range c.Events {
			if err := s.printEvent(&c, &c.Events[i]); err != nil {
				return last, err
			}
			if err := s.printAdded(ctx, &c.Events[i]); err != nil {
				return last, err
			}
		}
	}
	return last, nil
}

func (a *app) printEvent(c *lineage.Change, e *lineage.Event) error {
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
			line += "  " + a.out.Paint(screen.Dim, id[0]) + " " + shortID(id[1])
		}
	}
	return a.print(r, "%s  %s  %s\n", a.out.Paint(screen.Yellow, screen.Count(r.Commit)), a.out.Paint(screen.Dim, c.Time.Local().Format("15:04:05")), line)
}

// maxMessages limits how many messages of a commit are shown to a person.
const maxMessages = 20

// printAdded prints the start of the messages that a context was extended by, without those deleted since.
func (s *session) printAdded(ctx context.Context, e *lineage.Event) error {
	if s.json || e.Kind != lineage.ContextExtended {
		return nil
	}
	before, err := s.store.Position(ctx, e.From)
	if err != nil {
		return ignoreNotFound(err)
	}
	for entry, err := range s.store.History(ctx, e.Span, lineage.Window{From: before + 1, To: before + maxMessages}) {
		if err != nil {
			return ignoreNotFound(err)
		}
		begins, err := s.line(ctx, entry)
		if err != nil {
			return err
		}
		role := cmp.Or(entry.Role, entry.Kind.String())
		s.printf("    %s  %s\n", s.out.Paint(screen.OfRole(role), screen.Line(role)), screen.Cut(begins, 200))
	}
	return nil
}

// ignoreNotFound returns nil for the error that something was deleted meanwhile.
func ignoreNotFound(err error) error {
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	return err
}
