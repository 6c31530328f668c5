package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/records"
)

func threadDeleteCommand(a *app) *cobra.Command {
	yes := false
	c := &cobra.Command{
		Use:   "delete THREAD",
		Short: "Delete a thread with its branches, contexts and checkpoints",
		Long: `Deletes a thread with its branches, contexts and checkpoints. What other threads share with
it stays theirs. It shows what it would delete and asks first, unless --yes is given. It cannot be undone: the
records that lead to the messages are removed at once, although the bytes that nothing else uses stay on
disk until 'lineage gc'. 'lineage bundle create' beforehand keeps a copy of the thread.`,
		Example: `  lineage thread delete lisbon --yes`,
		Args:    cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			return destroy(ctx, a, yes, changing, a.openThreads, func(ctx context.Context, in threads) (*destruction, error) {
				return in.threadToDelete(ctx, args[0])
			})
		}),
	}
	yesFlag(c, &yes)
	return c
}

// deletion returns the destruction of what a record names, which is printed when it is deleted.
func (a *app) deletion(question string, r *records.Deleted, do func(context.Context) error) *destruction {
	return &destruction{question, func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		return a.deleted(r)
	}}
}

func (a *app) deleted(r *records.Deleted) error {
	return a.print(r, "deleted %s %s\n", r.What, cmp.Or(r.Name, r.ID))
}

// threadToDelete implements threads.
func (s *session) threadToDelete(ctx context.Context, name string) (*destruction, error) {
	t, err := s.refs.Thread(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := s.threadRecord(ctx, t)
	if err != nil {
		return nil, err
	}
	reach, err := s.reachOf(ctx, t)
	if err != nil {
		return nil, err
	}
	title, err := s.titleOf(ctx, r)
	if err != nil {
		return nil, err
	}
	return &destruction{
		what: deleteChatText(title, refs.Short(t.ID()), int64(reach.Spans()), int64(r.Branches)),
		do: func(ctx context.Context) error {
			if err := t.Delete(ctx); err != nil {
				return err
			}
			err := s.deleted(&records.Deleted{What: "thread", ID: r.ID, Name: title})
			if err != nil || !r.Current {
				return err
			}
			return s.noteCurrent(ctx)
		},
	}, nil
}

func deleteChatText(title, id string, messages, branches int64) string {
	return fmt.Sprintf("delete thread %q (%s) with %s and %s", title, id, screen.Plural(messages, "message"), screen.Plural(branches, "branch"))
}

// noteCurrent reports the new current thread after the current one was deleted.
func (s *session) noteCurrent(ctx context.Context) error {
	t, err := s.latestThread(ctx)
	if err != nil || t == nil {
		return err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	title, err := s.shownTitle(ctx, info)
	if err != nil {
		return err
	}
	s.note("now on thread %q (%s)", title, refs.Short(t.ID()))
	return nil
}
