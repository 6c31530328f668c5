package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
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
					return usagef("a new branch needs a name")
				}
				return a.openThreads(ctx, reading, func(ctx context.Context, in threads) error { return runBranchList(ctx, a, in) })
			}
			if err := newName(o.name); err != nil {
				return err
			}
			return a.openThreads(ctx, changing, func(ctx context.Context, in threads) error {
				b, err := in.createBranch(ctx, o)
				return a.printBranch(b, "now on branch", err)
			})
		}),
	}
	f := c.Flags()
	f.StringVar(&o.from, "from", "", "where it starts")
	f.BoolVar(&o.empty, "empty", false, "start with an empty history")
	f.BoolVarP(&o.switchTo, "switch", "s", false, "make it the active branch")
	o.overrides.bind(c)
	return c
}

func runBranchList(ctx context.Context, a *app, in threads) error {
	branches, err := in.listBranches(ctx, "")
	if err != nil {
		return err
	}
	list := a.list("", "BRANCH", "CONTEXT", "CHANGED", "MESSAGES", "SAYS LAST")
	for _, b := range branches {
		says := ""
		if b.Head != nil && !a.json {
			if says, err = in.says(ctx, b.Thread, *b.Head); err != nil {
				return err
			}
		}
		changed := b.UpdatedAt
		if changed.IsZero() {
			changed = b.CreatedAt // a database does not keep more
		}
		mark := markCell(b.Active)
		list.add(b, mark, screen.Cell{Text: b.Name, Style: mark.Style}, idCell(shortID(b.Context)), timeCell(changed), countCell(b.Length), plainCell(says))
	}
	return list.end("")
}

// listBranches implements threads.
func (s *session) listBranches(ctx context.Context, thread string) (list []*records.Branch, err error) {
	t, err := s.threadNamed(ctx, thread)
	if err != nil {
		return nil, err
	}
	branches, err := t.Branches(ctx)
	for _, b := range branches {
		list = append(list, records.OfBranch(b))
	}
	return list, err
}

// createBranch implements threads.
func (s *session) createBranch(ctx context.Context, o *branchOptions) (*records.Branch, error) {
	t, err := s.needThread()
	if err != nil {
		return nil, err
	}
	options := lineage.BranchOptions{Empty: o.empty, Switch: o.switchTo, Overrides: o.overrides.build()}
	if o.from != "" {
		found, err := s.refs.Find(ctx, o.from)
		if err != nil {
			return nil, err
		}
		options.From, options.At = found.Context, found.Span
		options.Empty = o.empty || found.Span.IsZero()
	}
	created, err := t.CreateBranch(ctx, o.name, options)
	if err != nil {
		return nil, err
	}
	return branchOf(ctx, t, created)
}

// branchOf returns the record of the branch of a thread that a context is.
func branchOf(ctx context.Context, t *lineage.Thread, c *lineage.Context) (*records.Branch, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	b, err := t.Branch(ctx, info.Branch)
	if err != nil {
		return nil, err
	}
	return records.OfBranch(b), nil
}

// printBranch prints a branch that a command created or changed, unless that failed. ofActive describes it if it is
// the active one.
func (a *app) printBranch(b *records.Branch, ofActive string, err error) error {
	if err != nil {
		return err
	}
	what := "branch"
	if b.Active {
		what = ofActive
	}
	return a.print(b, "%s %s, %s\n", what, screen.Line(b.Name), screen.Plural(b.Length, "message"))
}
