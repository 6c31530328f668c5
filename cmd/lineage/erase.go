package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

type eraseOptions struct {
	name string
	yes  bool
}

func eraseCommand(a *app) *cobra.Command {
	o := &eraseOptions{}
	c := &cobra.Command{
		Use:   "erase CONTENT",
		Short: "Remove a content's bytes from every history",
		Long: `Removes the bytes of a content from everything that reads the store, for good. Histories that
use it still read, with a marker in its place. The content is named by its id, the beginning of one, or a
message that holds it. Without --yes it only tells how often it is used. Other content stays that says the same: an
edited message, a result that quotes it. Summaries of a stretch that it is in are named, to be erased too.`,
		Example: `  lineage erase :2
  lineage erase :2 --yes`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.name = args[0]
			return a.change(ctx, func(ctx context.Context, s *session) error { return runErase(ctx, s, o) })
		}),
	}
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do it")
	return c
}

// erasedRecord tells what erase did or would do.
type erasedRecord struct {
	ContentID string `json:"content_id"`
	// Uses is how many messages, documents and files hold it.
	Uses int `json:"uses"`
	// Summaries are the contents of summaries of what holds it: they may say the same.
	Summaries []string `json:"summaries"`
	// Erased is false where --yes was not given.
	Erased bool `json:"erased"`
}

func (*erasedRecord) recordType() string { return "erased" }

func runErase(ctx context.Context, s *session, o *eraseOptions) error {
	id, err := s.refs.Content(ctx, o.name)
	if err != nil {
		return err
	}
	has, err := s.store.Has(ctx, id)
	if err != nil {
		return err
	}
	if !has {
		return refs.Unknown("content", o.name, nil)
	}
	r := erasedRecord{ContentID: id.String(), Erased: o.yes, Summaries: []string{}}
	var holding []*lineage.Entry
	for e, err := range s.store.Where(ctx, id) {
		if err != nil {
			return err
		}
		r.Uses++
		holding = append(holding, e)
	}
	if err := s.eachSummary(ctx, func(summary *lineage.SummaryInfo) error {
		covers, err := s.covers(ctx, summary, holding)
		if content := summary.Content.String(); err == nil && covers && !slices.Contains(r.Summaries, content) {
			r.Summaries = append(r.Summaries, content)
		}
		return err
	}); err != nil {
		return err
	}
	if o.yes {
		if err := s.store.Erase(ctx, id); err != nil {
			return err
		}
	}
	switch {
	case s.json:
		return s.emit(&r)
	case o.yes:
		s.printf("erased %s, used %d times\n", id, r.Uses)
	default:
		s.printf("would erase %s, used %d times; --yes does it\n", id, r.Uses)
	}
	for _, summary := range r.Summaries {
		s.warn("a summary of what holds it may say the same: 'lineage erase %s' erases that", summary)
	}
	return nil
}

// eachSummary visits the summaries of all chats whose text is still there.
func (s *session) eachSummary(ctx context.Context, visit func(*lineage.SummaryInfo) error) error {
	for thread, err := range s.store.Threads(ctx) {
		if err != nil {
			return err
		}
		for c, err := range thread.Contexts(ctx) {
			if err != nil {
				return err
			}
			for summary, err := range c.Summaries(ctx) {
				if err != nil {
					return err
				}
				if summary.Erased {
					continue
				}
				if err := visit(summary); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// covers reports whether one of the entries is in the stretch that a summary is of.
func (s *session) covers(ctx context.Context, summary *lineage.SummaryInfo, entries []*lineage.Entry) (bool, error) {
	for _, e := range entries {
		if e.Position < summary.First || e.Position > summary.Last {
			continue
		}
		at, err := s.store.At(ctx, summary.To, e.Position)
		if err != nil || at == e.Span {
			return err == nil, err
		}
	}
	return false, nil
}
