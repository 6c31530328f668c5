package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
)

func threadCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "thread",
		Aliases: []string{"threads"},
		Short:   "List, create and change threads",
		Long: `Lists, creates and changes threads. A thread is a conversation with its branches and checkpoints. Without a subcommand, threads
are listed.`,
		Example: `  lineage thread
  lineage thread create --title "Trip to Porto" --id porto`,
		Args: knownCommand,
		RunE: a.onThreads(reading, func(ctx context.Context, in threads, _ []string) error {
			return runThreadList(ctx, a, in, &threadListOptions{})
		}),
	}
	c.AddCommand(
		threadListCommand(a), threadCreateCommand(a), threadShowCommand(a), threadSetCommand(a), threadUseCommand(a), threadDeleteCommand(a),
	)
	return c
}

// threadRecord is a thread.
type threadRecord struct {
	ID string `json:"id"`
	// SourceID is the id that its creator chose.
	SourceID string `json:"source_id,omitempty"`
	User     string `json:"user,omitempty"`
	Title    string `json:"title,omitempty"`
	// Branch is the active branch, and Context its context; both are empty if there is none.
	Branch  string `json:"branch"`
	Context string `json:"context,omitempty"`
	// Branches and Messages are how many branches there are, and how many messages the
	// active one has.
	Branches int    `json:"branches"`
	Messages uint64 `json:"messages"`
	// Current is set for the thread that commands work on.
	Current   bool            `json:"current,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	// Next is set for the last thread of a page: the token for --after.
	Next string `json:"next,omitempty"`
}

func (*threadRecord) recordType() string { return "thread" }

func (s *session) threadRecord(ctx context.Context, t *lineage.Thread) (*threadRecord, error) {
	info, err := t.Info(ctx)
	if err != nil {
		return nil, err
	}
	r := &threadRecord{
		ID: info.ID.String(), SourceID: info.SourceID, User: info.UserID, Title: info.Title,
		Current:  s.thread != nil && s.thread.ID() == info.ID,
		Metadata: rawJSON(info.Metadata), CreatedAt: info.CreatedAt.UTC(), UpdatedAt: info.UpdatedAt.UTC(),
	}
	for _, err := range s.store.View().Branches(ctx, info.ID, "", "") {
		if err != nil {
			return nil, err
		}
		r.Branches++
	}
	if info.Active.IsZero() {
		return r, nil
	}
	r.Context = info.Active.String()
	active, err := t.Branch(ctx, "")
	r.Branch, r.Messages = active.Name, active.Length
	return r, err
}
