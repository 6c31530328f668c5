// Package maintenance has the commands about a whole store: creation, checks, space, copies.
package maintenance

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

func InfoCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "info",
		Aliases: []string{"inspect"},
		Short:   "Show what a store contains",
		Example: `  lineage info
  lineage info --json`,
		Args: cobra.NoArgs,
		RunE: a.On(app.Reading, func(ctx context.Context, s *app.OpenStore, _ []string) error { return runInfo(ctx, s) }),
	}
}

func processText(p lineage.Process) string {
	return fmt.Sprintf("process %d (%s)", p.PID, screen.Line(p.Command))
}

// addProcesses adds the other processes that use the store.
func addProcesses(ctx context.Context, s *app.OpenStore, r *records.Info) error {
	all, err := s.Store.Processes(ctx)
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

func runInfo(ctx context.Context, s *app.OpenStore) error {
	stats, err := s.Store.Stats(ctx)
	if err != nil {
		return err
	}
	head, err := s.Store.View().Head(ctx)
	if err != nil {
		return err
	}
	r := records.Info{
		Store: s.Name, LastCommit: head.Number, Threads: stats.Threads, Contexts: stats.Contexts, Branches: stats.Branches,
		Checkpoints: stats.Checkpoints, Messages: stats.Usages, Blocks: stats.Blocks, StoredBytes: stats.StoredBytes,
	}
	var title string
	if s.Thread != nil {
		branch, err := s.Thread.Branch(ctx, "")
		if err != nil {
			return err
		}
		info, err := s.Thread.Info(ctx)
		if err != nil {
			return err
		}
		r.Thread, r.Branch, title = s.Thread.ID().String(), branch.Name, ""
		if title, err = show.ShownTitle(ctx, s, info); err != nil {
			return err
		}
	}
	if err := addProcesses(ctx, s, &r); err != nil {
		return err
	}
	facts := [][2]string{
		{"store", r.Store}, {"threads", amount.Count(r.Threads)}, {"contexts", amount.Count(r.Contexts)}, {"branches", amount.Count(r.Branches)},
		{"checkpoints", amount.Count(r.Checkpoints)}, {"messages and records", amount.Count(r.Messages)}, {"commits", amount.Count(r.LastCommit)},
		{"on disk", amount.Bytes(r.StoredBytes)},
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
	return s.Facts(&r, facts...)
}
