package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
)

func chatCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "chat",
		Aliases: []string{"chats"},
		Short:   "List, make and change chats",
		Long: `A chat is a conversation with its branches and checkpoints. Without a subcommand, chats
are listed.`,
		Example: `  lineage chat
  lineage chat create --title "Trip to Porto" --id porto`,
		Args: knownCommand,
		RunE: a.does(func(ctx context.Context, _ []string) error { return runChatList(ctx, a, &chatListOptions{}) }),
	}
	for _, make := range []func(*app) *cobra.Command{
		chatListCommand, chatCreateCommand, chatShowCommand, chatSetCommand, chatUseCommand, chatDeleteCommand,
	} {
		c.AddCommand(make(a))
	}
	return c
}

// chatRecord is a chat.
type chatRecord struct {
	ID string `json:"id"`
	// SourceID is the id that its maker chose.
	SourceID string `json:"source_id,omitempty"`
	User     string `json:"user,omitempty"`
	Title    string `json:"title,omitempty"`
	// Branch is the active branch, and Context its context.
	Branch  string `json:"branch"`
	Context string `json:"context,omitempty"`
	// Branches and Messages are how many branches there are, and how many messages the
	// active one has.
	Branches int    `json:"branches"`
	Messages uint64 `json:"messages"`
	// Current is set for the chat that commands work on.
	Current   bool            `json:"current,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	// Next is set for the last chat of a page: the token for --after.
	Next string `json:"next,omitempty"`
}

func (*chatRecord) recordType() string { return "chat" }

func (s *session) chatRecord(ctx context.Context, t *lineage.Thread) (*chatRecord, error) {
	info, err := t.Info(ctx)
	if err != nil {
		return nil, err
	}
	r := &chatRecord{
		ID: info.ID.String(), SourceID: info.SourceID, User: info.UserID, Title: info.Title,
		Context: info.Active.String(), Current: s.thread != nil && s.thread.ID() == info.ID,
		Metadata: rawJSON(info.Metadata), CreatedAt: info.CreatedAt.UTC(), UpdatedAt: info.UpdatedAt.UTC(),
	}
	for b, err := range s.store.View().Branches(ctx, info.ID, "", "") {
		if err != nil {
			return nil, err
		}
		r.Branches++
		if b.Context == info.Active {
			r.Branch = b.Name
		}
	}
	active, err := s.store.Context(ctx, info.Active)
	if err != nil {
		return nil, err
	}
	r.Messages, err = active.Len(ctx)
	return r, err
}
