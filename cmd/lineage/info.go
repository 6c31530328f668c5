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
	"github.com/lineage-store/lineage/lineage/records"
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

func processText(p lineage.Process) string {
	return fmt.Sprintf("process %d (%s)", p.PID, screen.Line(p.Command))
}

// addProcesses fills in who else uses the store.
func (s *session) addProcesses(ctx context.Context, r *records.Info) error {
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

func runInfo(ctx context.Context, s *session) error {
	stats, err := s.store.Stats(ctx)
	if err != nil {
		return err
	}
	head, err := s.store.View().Head(ctx)
	if err != nil {
		return err
	}
	r := records.Info{
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
	if err := s.addProcesses(ctx, &r); err != nil {
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
