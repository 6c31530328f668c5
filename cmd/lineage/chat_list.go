package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

type chatListOptions struct {
	user  string
	limit int
}

func chatListCommand(a *app) *cobra.Command {
	o := &chatListOptions{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the chats, the one that changed last first",
		Example: `  lineage chat list
  lineage chat list --user ada --limit 20 --json`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) error { return runChatList(ctx, a, o) }),
	}
	c.Flags().StringVar(&o.user, "user", "", "only this user's")
	c.Flags().IntVarP(&o.limit, "limit", "n", 0, "at most so many")
	return c
}

func runChatList(ctx context.Context, a *app, o *chatListOptions) error {
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.listChats(ctx, o) })
	}
	return a.read(ctx, func(ctx context.Context, s *session) error { return listChats(ctx, s, o) })
}

func listChats(ctx context.Context, s *session, o *chatListOptions) error {
	chats, err := s.latestChats(ctx, o)
	if err != nil {
		return err
	}
	if len(chats) == 0 && !s.json {
		s.note("no chats; 'lineage chat create' makes one")
		return nil
	}
	table := screen.NewTable(s.out, "", "ID", "CHANGED", "MESSAGES", "BRANCHES", "TITLE")
	for _, c := range chats {
		thread, err := s.store.Thread(ctx, c.id)
		if err != nil {
			return err
		}
		r, err := s.chatRecord(ctx, thread)
		if err != nil {
			return err
		}
		if s.json {
			if err := s.emit(r); err != nil {
				return err
			}
			continue
		}
		mark := " "
		if r.Current {
			mark = "*"
		}
		title, err := s.titleOf(ctx, r)
		if err != nil {
			return err
		}
		table.Cells(
			screen.Cell{Text: mark, Style: screen.Green}, screen.Cell{Text: shortText(r.ID), Style: screen.Yellow},
			screen.Cell{Text: screen.Time(r.UpdatedAt), Style: screen.Dim},
			screen.Cell{Text: screen.Count(int64(r.Messages)), Right: true},
			screen.Cell{Text: screen.Count(int64(r.Branches)), Right: true},
			screen.Cell{Text: title},
		)
	}
	if s.json {
		return nil
	}
	return table.Print()
}

// changedChat is a chat and when it last changed.
type changedChat struct {
	id lineage.ThreadID
	at time.Time
}

// latestChats returns the chats to be listed, the one that changed last first. It looks at
// all chats, but only at when they changed.
func (s *session) latestChats(ctx context.Context, o *chatListOptions) ([]changedChat, error) {
	latest, err := s.latestChat(ctx)
	if err != nil {
		return nil, err
	}
	var chats []changedChat
	for t, err := range s.store.View().Threads(ctx, lineage.ThreadID{}) {
		if err != nil {
			return nil, err
		}
		if o.user != "" && t.UserID != o.user {
			continue
		}
		at, err := backend.UpdatedAt(ctx, s.store.View(), t)
		if err != nil {
			return nil, err
		}
		chats = append(chats, changedChat{t.ID, at})
	}
	// Times come from clocks, which may go back: the chat that changed last is known without.
	notLatest := func(c changedChat) int {
		if latest != nil && c.id == latest.ID() {
			return 0
		}
		return 1
	}
	slices.SortFunc(chats, func(a, b changedChat) int {
		return cmp.Or(notLatest(a)-notLatest(b), b.at.Compare(a.at), b.id.Compare(a.id))
	})
	if o.limit > 0 && len(chats) > o.limit {
		chats = chats[:o.limit]
	}
	return chats, nil
}

// titleOf returns a chat's title, or how it begins where it has none.
func (s *session) titleOf(ctx context.Context, r *chatRecord) (string, error) {
	if r.Title != "" || r.Messages == 0 {
		return titleOf(lineage.ThreadInfo{Title: r.Title, SourceID: r.SourceID}), nil
	}
	id, err := structure.ParseID[lineage.ContextID](r.Context)
	if err != nil {
		return "", err
	}
	active, err := s.store.Context(ctx, id)
	if err != nil {
		return "", err
	}
	tip, err := active.Tip(ctx)
	if err != nil {
		return "", err
	}
	first, err := s.store.At(ctx, tip, 1)
	if err != nil {
		return "", err
	}
	entries, err := s.store.Span(ctx, first)
	if err != nil {
		return "", err
	}
	begins, err := s.preview(ctx, entries[0])
	return screen.Cut(begins, 80), err
}

// shortText returns the end of an id, as refs.Short does.
func shortText(id string) string { return id[max(len(id)-8, 0):] }
