package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/summarize"
	"github.com/lineage-store/lineage/structure"
)

type summarizeOptions struct {
	keep      uint64
	whole     bool
	list      bool
	span      string
	parts     []string
	model     string
	url       string
	maxTokens int
}

func SummarizeCommand(a *app.App) *cobra.Command {
	o := &summarizeOptions{}
	c := &cobra.Command{
		Use:   "summarize [CONTEXT]",
		Short: "Summarize messages of a context",
		Long: `Summarizes the messages that a context gained since its last summary. The messages stay; 'lineage
resolve --budget' puts the summary in their place where the budget is small. Sentences are picked without a network,
unless --model names a model behind an OpenAI-compatible endpoint (--url or OPENAI_BASE_URL;
the key is read from OPENAI_API_KEY). The messages are sent there.

--range summarizes any part of the history, and --of makes one summary of several that follow each
other, one level above them. --list shows how many messages came after each summary. 'lineage
search' finds the texts of summaries too.`,
		Example: `  lineage summarize --keep 1
  lineage summarize && lineage summarize --list
  lineage summarize --range 1-2`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			if o.list {
				return a.OpenContext(ctx, app.Reading, app.Arg(args, 0), listSummaries)
			}
			return a.OpenContext(ctx, app.Changing, app.Arg(args, 0), func(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
				return runSummarize(ctx, s, found, o)
			})
		}),
	}
	f := c.Flags()
	f.Uint64Var(&o.keep, "keep", 0, "leave the last so many messages out")
	f.BoolVar(&o.whole, "whole", false, "summarize from the start, not from where the last summary ends")
	f.StringVar(&o.span, "range", "", "summarize the messages from one position to another, as in 3-8, 3- or -8")
	f.StringArrayVar(&o.parts, "of", nil, "summarize summaries: the id of one, several times")
	f.BoolVar(&o.list, "list", false, "list the summaries there are instead")
	f.StringVar(&o.model, "model", "", "the model that summarizes")
	f.StringVar(&o.url, "url", "", "the endpoint of the model, up to its version")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "the maximum length of the summary in tokens")
	return c
}

func (o *summarizeOptions) summarizer() (lineage.Summarizer, error) {
	if o.model == "" && o.url == "" {
		return summarize.Extractive{MaxTokens: o.maxTokens}, nil
	}
	client, err := summarize.New(summarize.Options{BaseURL: o.url, Model: o.model, MaxTokens: o.maxTokens})
	if errors.Is(err, summarize.ErrNotConfigured) {
		return nil, app.Hint(&app.UsageError{Err: err}, "give --url or set OPENAI_BASE_URL, or leave --model out to summarize without a network")
	}
	return client, err
}

func runSummarize(ctx context.Context, s *app.OpenStore, found *refs.Ref, o *summarizeOptions) error {
	summarizer, err := o.summarizer()
	if err != nil {
		return err
	}
	what := lineage.SummarizeOptions{Keep: o.keep, Whole: o.whole}
	if what.Range, err = parseRange(o.span); err != nil {
		return err
	}
	for _, text := range o.parts {
		id, err := structure.ParseID[structure.SummaryID](text)
		if err != nil {
			return app.Usagef("--of %q: not the id of a summary", text)
		}
		what.Parts = append(what.Parts, id)
	}
	if len(o.parts) > 0 && (o.span != "" || o.keep > 0 || o.whole) {
		return app.Usagef("--of summarizes summaries: it does not go with --range, --keep and --whole")
	}
	summary, err := found.Context.Summarize(ctx, summarizer, what)
	if errors.Is(err, lineage.ErrNotFound) {
		return app.Hint(err, "everything is summarized already; --whole summarizes it again")
	}
	if err != nil {
		return err
	}
	return printSummary(s, records.NewSummary(summary), "")
}

// parseRange parses FROM-TO. Either may be missing.
func parseRange(text string) (w lineage.Window, err error) {
	if text == "" {
		return w, nil
	}
	from, to, ok := strings.Cut(text, "-")
	first, okFrom := app.Ordinal(from)
	last, okTo := app.Ordinal(to)
	if !ok || !okFrom || !okTo || first+last == 0 {
		return w, app.Usagef("--range %q: must be FROM-TO, by positions from 1", text)
	}
	return lineage.Window{From: first, To: last}, nil
}

// printSummary prints a summary. For people, a note follows its head.
func printSummary(s *app.OpenStore, r *records.Summary, note string) error {
	head := fmt.Sprintf("messages %d-%d", r.First, r.Last)
	if r.Level > 0 {
		head = fmt.Sprintf("%s, level %d", head, r.Level)
	}
	if note != "" {
		head += ", " + note
	}
	return s.Print(r, "%s  %s\n%s", s.Out.Paint(screen.Purple+";1", head), s.Out.Paint(screen.Dim, screen.Line(r.Model)+"  "+screen.Time(r.CreatedAt)), s.Indented("    ", r.Text))
}

func listSummaries(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
	length, err := found.Context.Len(ctx)
	if err != nil {
		return err
	}
	count := 0
	for i, err := range found.Context.Summaries(ctx) {
		if err != nil {
			return err
		}
		count++
		behind := length - min(i.Last, length)
		note := ""
		if behind > 0 {
			note = amount.Plural(behind, "message") + " since"
		}
		r := records.NewSummary(i)
		r.Behind = &behind
		if err := printSummary(s, r, note); err != nil {
			return err
		}
	}
	if count == 0 {
		s.Note("no summaries of %s; 'lineage summarize' makes one", show.NameOf(found))
	}
	return nil
}
