package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

type editOptions struct {
	message, text string
	file          string
	in            string
	replay        string
	branch        string
}

func editCommand(a *app) *cobra.Command {
	o := &editOptions{}
	c := &cobra.Command{
		Use:   "edit MESSAGE [TEXT]",
		Short: "Fork a history with one message changed",
		Long: `Creates a fork in which a message is replaced; the original does not change. The new
text is recorded as derived from the old one. The fork ends with the new message, or
continues with the messages after it: --replay user repeats those of the user, --replay all
repeats all. Prints the new context's id.`,
		Example: `  lineage edit :1 "Plan a week in Lisbon." --replay user
  lineage edit cheap~1 "By bus?" --branch by-bus --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.message = args[0]
			if len(args) == 2 && o.file != "" || len(args) < 2 && o.file == "" {
				return usagef("give the new text, or --file, and not both")
			}
			o.text = arg(args, 1)
			if err := newName(o.branch); err != nil {
				return err
			}
			return runEdit(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.file, "file", "f", "", "read the new text from this file; - is standard input")
	f.StringVar(&o.in, "in", "", "the context whose history it is changed in, if the message does not tell")
	f.StringVar(&o.replay, "replay", "", "messages to repeat after it: all, or those of a role")
	f.StringVarP(&o.branch, "branch", "b", "", "also make a branch of it under this name")
	return c
}

func runEdit(ctx context.Context, a *app, o *editOptions) error {
	body := []byte(o.text)
	if o.file != "" {
		in, err := a.input(ctx, o.file)
		if err != nil {
			return err
		}
		defer in.Close()
		if body, err = readAll(o.file, in, maxInput); err != nil {
			return err
		}
	}
	return a.open(ctx, changing, func(ctx context.Context, s *session) error {
		found, err := s.refs.Find(ctx, o.message)
		if err != nil {
			return err
		}
		old, err := s.refs.Entry(ctx, found)
		if err != nil {
			return err
		}
		in, err := s.holder(ctx, found, o.in)
		if err != nil {
			return err
		}
		edited := old.Item()
		edited.Content, edited.Body, edited.CreatedAt = lineage.ContentID{}, body, time.Time{}
		options := lineage.EditOptions{Index: found.Index, Replay: replayed(o.replay), Metadata: []byte(editMark)}
		var home *lineage.Thread
		if o.branch != "" {
			if home, err = s.branchHome(ctx, found, in); err != nil {
				return err
			}
			options.Thread = home.ID()
		}
		fork, err := in.Edit(ctx, found.Span, edited, options)
		if err != nil {
			return err
		}
		if home != nil {
			if err := home.NameBranch(ctx, o.branch, fork); err != nil {
				return errors.Join(err, fork.Delete(ctx))
			}
		}
		s.note("a fork in which message %d reads differently", old.Position)
		return s.created(ctx, fork)
	})
}

// branchHome returns the thread for a branch that forks a context: that of the context or, if it has
// none, that of what was found.
func (s *session) branchHome(ctx context.Context, found *refs.Ref, of *lineage.Context) (*lineage.Thread, error) {
	info, err := of.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.Thread.IsZero() {
		return s.home(found)
	}
	return s.store.Thread(ctx, info.Thread)
}

// editMark is the metadata of a context that an edit created.
const editMark = `{"made_by":"edit"}`

// replayed returns the messages to repeat after an edit, nil for none.
func replayed(what string) func(*lineage.Entry) bool {
	switch what {
	case "":
		return nil
	case "all":
		return func(*lineage.Entry) bool { return true }
	}
	return func(e *lineage.Entry) bool { return e.Kind == lineage.Message && e.Role == what }
}

// holder returns a context that has a position on its history: the one named, the one
// that the position was found by, or one of its thread's.
func (s *session) holder(ctx context.Context, found *refs.Ref, name string) (*lineage.Context, error) {
	if name != "" {
		in, err := s.refs.Context(ctx, name)
		if err != nil {
			return nil, err
		}
		return in.Context, nil
	}
	active, err := s.contextOf(ctx, found)
	if err != nil {
		return nil, err
	}
	if found.Context != nil {
		return found.Context, nil
	}
	others, _, err := pageOf(active.Thread.Contexts(ctx), 0)
	if err != nil {
		return nil, err
	}
	runs := backend.Runs(ctx, s.store.View())
	for _, c := range append([]*lineage.Context{active.Context}, others...) {
		tip, err := c.Tip(ctx)
		if err != nil {
			return nil, err
		}
		on, err := structure.IsAncestor(found.Span, tip, runs)
		if err != nil {
			return nil, err
		}
		if on {
			return c, nil
		}
	}
	return active.Context, nil
}
