package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

type branchOptions struct {
	name, from string
	empty      bool
	switchTo   bool
	overrides  overrideFlags
}

func branchCommand(a *app) *cobra.Command {
	o := &branchOptions{}
	c := &cobra.Command{
		Use:   "branch [NAME]",
		Short: "List the branches of a thread, or create one",
		Long: `Lists the branches of the thread, or creates one at the tip of the active branch, or at any
position with --from. A name that reads as a position (main~1, main:2) is refused.`,
		Example: `  lineage branch
  lineage branch museums --from :2 --switch
  lineage branch blank --empty --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.name = arg(args, 0)
			if len(args) == 0 {
				if o.from != "" || o.empty || o.switchTo {
					return usagef("a branch to make needs a name")
				}
				return runBranchList(ctx, a)
			}
			return runBranchCreate(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.from, "from", "", "where it starts")
	f.BoolVar(&o.empty, "empty", false, "start with an empty history")
	f.BoolVarP(&o.switchTo, "switch", "s", false, "make it the active branch")
	o.overrides.bind(c)
	return c
}

// branchRecord is a branch.
type branchRecord struct {
	Name    string `json:"name"`
	Thread  string `json:"thread"`
	Context string `json:"context"`
	// Head is the message that it stands at.
	Head      *string   `json:"head"`
	Active    bool      `json:"active"`
	Length    uint64    `json:"length"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

func (*branchRecord) recordType() string { return "branch" }

func newBranchRecord(b lineage.BranchInfo) *branchRecord {
	return &branchRecord{
		Name: b.Name, Thread: b.Thread.String(), Context: b.Context.String(), Head: spanID(b.Head), Active: b.Active,
		Length: b.Length, CreatedAt: b.CreatedAt.UTC(), UpdatedAt: b.UpdatedAt.UTC(),
	}
}

func runBranchList(ctx context.Context, a *app) error {
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.listBranches(ctx) })
	}
	return a.open(ctx, reading, listBranches)
}

func listBranches(ctx context.Context, s *session) error {
	t, err := s.needThread()
	if err != nil {
		return err
	}
	branches, err := t.Branches(ctx)
	if err != nil {
		return err
	}
	table := screen.NewTable(s.out, "", "BRANCH", "CONTEXT", "CHANGED", "MESSAGES", "SAYS LAST")
	for _, b := range branches {
		if s.json {
			if err := s.emit(newBranchRecord(b)); err != nil {
				return err
			}
			continue
		}
		says := ""
		if !b.Head.IsZero() {
			entries, err := s.store.Span(ctx, b.Head)
			if err != nil {
				return err
			}
			if says, err = s.preview(ctx, entries[len(entries)-1]); err != nil {
				return err
			}
		}
		mark, style := " ", screen.Plain
		if b.Active {
			mark, style = "*", screen.Green
		}
		table.Cells(screen.Cell{Text: mark, Style: style}, screen.Cell{Text: b.Name, Style: style},
			screen.Cell{Text: refs.Short(b.Context), Style: screen.Yellow},
			screen.Cell{Text: screen.Time(b.UpdatedAt), Style: screen.Dim},
			screen.Cell{Text: screen.Count(int64(b.Length)), Right: true}, screen.Cell{Text: says})
	}
	if s.json {
		return nil
	}
	return table.Print()
}

func runBranchCreate(ctx context.Context, a *app, o *branchOptions) error {
	if err := newName(o.name); err != nil {
		return err
	}
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.createBranch(ctx, o) })
	}
	return a.open(ctx, changing, func(ctx context.Context, s *session) error {
		t, err := s.needThread()
		if err != nil {
			return err
		}
		options := lineage.BranchOptions{Empty: o.empty, Switch: o.switchTo}
		if options.Overrides, err = o.overrides.build(); err != nil {
			return err
		}
		if o.from != "" {
			found, err := s.refs.Find(ctx, o.from)
			if err != nil {
				return err
			}
			options.From, options.At = found.Context, found.Span
			options.Empty = o.empty || found.Span.IsZero()
		}
		if _, err := t.CreateBranch(ctx, o.name, options); err != nil {
			return err
		}
		b, err := t.Branch(ctx, o.name)
		if err != nil {
			return err
		}
		return s.branchMade(b)
	})
}

// branchMade tells about a branch that a command made or switched to.
func (s *session) branchMade(b lineage.BranchInfo) error {
	if s.json {
		return s.emit(newBranchRecord(b))
	}
	now := "branch"
	if b.Active {
		now = "now on branch"
	}
	s.printf("%s %s, %s\n", now, screen.Line(b.Name), screen.Plural(int64(b.Length), "message"))
	return nil
}
