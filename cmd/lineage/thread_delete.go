package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
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

// deletedRecord is something that was deleted.
type deletedRecord struct {
	// What is thread, branch, checkpoint, context, summary or content.
	What string `json:"what"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

func (*deletedRecord) recordType() string { return "deleted" }

func (a *app) deleted(what, id, name string) error {
	return a.print(&deletedRecord{What: what, ID: id, Name: name}, "deleted %s %s\n", what, cmp.Or(name, id))
}

// threadToDelete implements threads.
func (s *session) threadToDelete(ctx context.Context, name string) (*destruction, error) {
	t, err := s.refs.Thread(ctx, name)
	if err != nil {
		return nil, err
	}
	info, err := t.Info(ctx)
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
	return &destruction{
		what: deleteChatText(titleOf(info), refs.Short(t.ID()), int64(reach.Spans()), int64(r.Branches)),
		do: func(ctx context.Context) error {
			if err := t.Delete(ctx); err != nil {
				return err
			}
			if err := s.deleted("thread", t.ID().String(), titleOf(info)); err != nil || s.thread == nil || s.thread.ID() != t.ID() {
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
	s.note("now on thread %q (%s)", titleOf(info), refs.Short(t.ID()))
	return nil
}
