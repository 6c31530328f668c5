package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

func infoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "info",
		Aliases: []string{"inspect"},
		Short:   "Show what a store contains",
		Example: `  lineage info
  lineage info --json`,
		Args: cobra.NoArgs,
		RunE: a.on(reading, func(ctx context.Context, s *session, _ []string) error { return runInfo(ctx, s) }),
	}
}

// infoRecord is what a store is and holds.
type infoRecord struct {
	Store string `json:"store"`
	// LastCommit is the number of the last commit; 0 in an empty store.
	LastCommit  uint64 `json:"last_commit"`
	Threads     uint64 `json:"threads"`
	Contexts    uint64 `json:"contexts"`
	Branches    uint64 `json:"branches"`
	Checkpoints uint64 `json:"checkpoints"`
	Messages    uint64 `json:"messages"`
	Blocks      uint64 `json:"blocks"`
	StoredBytes uint64 `json:"stored_bytes"`
	// Thread is the id of the thread that commands work on.
	Thread string `json:"thread,omitempty"`
	// Branch is its active branch.
	Branch string `json:"branch,omitempty"`
	// Owner is the process that has the store open, if it is another one, and Guests are the others
	// that use the store through that process.
	Owner  *lineage.Process  `json:"owner,omitempty"`
	Guests []lineage.Process `json:"guests,omitempty"`
}

func processText(p lineage.Process) string {
	return fmt.Sprintf("process %d (%s)", p.PID, screen.Line(p.Command))
}

// processes fills in who else uses the store.
func (r *infoRecord) processes(ctx context.Context, s *session) error {
	all, err := s.store.Processes(ctx)
	if err != nil {
		return err
	}
	if !all.Owns && all.Owner.PID != 0 {
		r.Owner = &all.Owner
	}
	for _, guest := range all.Guests {
		if guest.PID != os.Getpid() {
			r.Guests = append(r.Guests, guest)
		}
	}
	return nil
}

func (*infoRecord) recordType() string { return "info" }

func runInfo(ctx context.Context, s *session) error {
	stats, err := s.store.Stats(ctx)
	if err != nil {
		return err
	}
	head, err := s.store.View().Head(ctx)
	if err != nil {
		return err
	}
	r := infoRecord{
		Store: s.name, LastCommit: head.Number, Threads: stats.Threads, Contexts: stats.Contexts, Branches: stats.Branches,
		Checkpoints: stats.Checkpoints, Messages: stats.Usages, Blocks: stats.Blocks, StoredBytes: stats.StoredBytes,
	}
	var title string
	if s.thread != nil {
		branch, err := s.thread.Branch(ctx, "")
		if err != nil {
			return err
		}
		info, err := s.thread.Info(ctx)
		if err != nil {
			return err
		}
		r.Thread, r.Branch, title = s.thread.ID().String(), branch.Name, ""
		if title, err = s.shownTitle(ctx, info); err != nil {
			return err
		}
	}
	if err := r.processes(ctx, s); err != nil {
		return err
	}
	facts := [][2]string{
		{"store", r.Store}, {"threads", screen.Count(r.Threads)}, {"contexts", screen.Count(r.Contexts)}, {"branches", screen.Count(r.Branches)},
		{"checkpoints", screen.Count(r.Checkpoints)}, {"messages", screen.Count(r.Messages)}, {"commits", screen.Count(r.LastCommit)},
		{"on disk", screen.Bytes(r.StoredBytes)},
	}
	if r.Thread != "" {
		facts = append(facts, [2]string{"current thread", title + ", on branch " + r.Branch})
	}
	if r.Owner != nil {
		facts = append(facts, [2]string{"open in", processText(*r.Owner)})
	}
	for _, guest := range r.Guests {
		facts = append(facts, [2]string{"used by", processText(guest)})
	}
	return s.facts(&r, facts...)
}

// shownTitle returns the title under which a thread is shown.
func (s *session) shownTitle(ctx context.Context, info lineage.ThreadInfo) (string, error) {
	title, err := s.store.ShownTitle(ctx, info)
	return cmp.Or(screen.Line(title), untitled), err
}

// shownTitle returns the title under which a thread is shown.
func (d *database) shownTitle(ctx context.Context, c *chat.Chat) (string, error) {
	title, err := chat.ShownTitle(ctx, d.chats, c)
	return cmp.Or(screen.Line(title), untitled), err
}

const untitled = "(untitled)"
