package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/summarize"
)

type summarizeOptions struct {
	context   string
	keep      uint64
	whole     bool
	list      bool
	model     string
	url       string
	maxTokens int
}

func summarizeCommand(a *app) *cobra.Command {
	o := &summarizeOptions{}
	c := &cobra.Command{
		Use:   "summarize [CONTEXT]",
		Short: "Make a summary that can stand for messages",
		Long: `Makes a summary of what a context has gained since its last one. The messages stay; 'lineage
resolve --budget' puts the summary in their place where room is scarce. Sentences are picked without a network,
unless --model names a model behind an OpenAI-compatible endpoint (--url or OPENAI_BASE_URL;
the key is read from OPENAI_API_KEY). What is summarized is sent there.`,
		Example: `  lineage summarize --keep 1
  lineage summarize && lineage summarize --list`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.context = arg(args, 0)
			if o.list {
				return a.read(ctx, func(ctx context.Context, s *session) error { return listSummaries(ctx, s, o.context) })
			}
			return a.change(ctx, func(ctx context.Context, s *session) error { return runSummarize(ctx, s, o) })
		}),
	}
	f := c.Flags()
	f.Uint64Var(&o.keep, "keep", 0, "leave the last so many messages out")
	f.BoolVar(&o.whole, "whole", false, "summarize from the start, not from where the last summary ends")
	f.BoolVar(&o.list, "list", false, "list the summaries there are instead")
	f.StringVar(&o.model, "model", "", "the model that summarizes")
	f.StringVar(&o.url, "url", "", "the endpoint it is behind, up to its version")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "how long the summary may be")
	return c
}

// summaryRecord is a summary.
type summaryRecord struct {
	ID      string `json:"id"`
	Context string `json:"context"`
	// ContentID is its text's.
	ContentID string `json:"content_id"`
	// First and Last are the positions of what it stands for.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Level is 0 for a summary of messages, more for one of summaries.
	Level     uint64    `json:"level"`
	Model     string    `json:"model,omitempty"`
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"created_at"`
}

func (*summaryRecord) recordType() string { return "summary" }

func newSummaryRecord(i *lineage.SummaryInfo) *summaryRecord {
	return &summaryRecord{
		ID: i.ID.String(), Context: i.Context.String(), ContentID: i.Content.String(), First: i.First, Last: i.Last,
		Level: i.Level, Model: i.Model, Text: i.Text, CreatedAt: i.CreatedAt.UTC(),
	}
}

func (o *summarizeOptions) summarizer(s *session) (lineage.Summarizer, error) {
	if o.model == "" && o.url == "" {
		return summarize.Extractive{MaxTokens: o.maxTokens}, nil
	}
	client, err := summarize.New(summarize.Options{BaseURL: o.url, Model: o.model, MaxTokens: o.maxTokens})
	if errors.Is(err, summarize.ErrNotConfigured) {
		return nil, hint(&usageError{err}, "give --url or set OPENAI_BASE_URL, or leave --model out to summarize without a network")
	}
	return client, err
}

func runSummarize(ctx context.Context, s *session, o *summarizeOptions) error {
	found, err := s.context(ctx, o.context)
	if err != nil {
		return err
	}
	by, err := o.summarizer(s)
	if err != nil {
		return err
	}
	made, err := found.Context.Summarize(ctx, by, lineage.SummarizeOptions{Keep: o.keep, Whole: o.whole})
	if errors.Is(err, lineage.ErrNotFound) {
		return hint(err, "everything is summarized already; --whole summarizes it anew")
	}
	if err != nil {
		return err
	}
	if s.json {
		return s.emit(newSummaryRecord(made))
	}
	s.printSummary(made)
	return nil
}

func (s *session) printSummary(i *lineage.SummaryInfo) {
	head := fmt.Sprintf("messages %d-%d", i.First, i.Last)
	s.printf("%s  %s\n", s.out.Paint(screen.Purple+";1", head), s.out.Paint(screen.Dim, screen.Line(i.Model)+"  "+screen.Time(i.CreatedAt)))
	for _, line := range screen.Wrap(screen.Clean(i.Text), max(s.out.Width-4, 0)) {
		s.printf("    %s\n", line)
	}
}

func listSummaries(ctx context.Context, s *session, name string) error {
	found, err := s.context(ctx, name)
	if err != nil {
		return err
	}
	count := 0
	for i, err := range found.Context.Summaries(ctx) {
		if err != nil {
			return err
		}
		count++
		if s.json {
			if err := s.emit(newSummaryRecord(i)); err != nil {
				return err
			}
			continue
		}
		s.printSummary(i)
	}
	if count == 0 {
		s.note("no summaries of %s; 'lineage summarize' makes one", nameOf(found))
	}
	return nil
}
