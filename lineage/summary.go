package lineage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/vector"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Summarizer summarizes a part of a history. Package summarize has one that asks a model and one
// that works offline.
type Summarizer interface {
	// Summarize returns a text that replaces the passages, which are in order.
	Summarize(ctx context.Context, passages []Passage) (SummaryText, error)
}

// Passage is input of a Summarizer: a message, a part of a long one, or an earlier summary.
type Passage struct {
	Role, Name string
	Text       string
	// Absent is set if the text is erased or the content is not text. Text is then a note in brackets.
	Absent bool
	// Continues is set if the passage continues the one before it: long texts are split.
	Continues bool
	// Summary is set if the passage is a summary.
	Summary bool
}

// SummaryText is the result of a Summarizer.
type SummaryText struct {
	Text string
	// Model names the model or program that wrote the text.
	Model string
}

// SummaryInfo is a summary: content that replaces a range of a history. It remains valid when the
// history grows.
type SummaryInfo struct {
	ID      structure.SummaryID
	Context ContextID
	Content ContentID
	Text    string
	// Erased is set if the text was erased. An erased summary is not used any more, and has no
	// Embedding.
	Erased bool
	// From and To are the covered range: the spans after From, up to and including To.
	From, To SpanRef
	// First and Last are the positions of the range, from 1: Store.History(To) with a Window from
	// First to Last reads it.
	First, Last uint64
	// Level is 0 for a summary of messages. For a summary of summaries it is one higher than the highest of them.
	Level     uint64
	Parts     []structure.SummaryID
	Model     string
	Embedding []float32
	CreatedAt time.Time
}

// SummarizeOptions configure Summarize.
type SummarizeOptions struct {
	// Parts are summaries to summarize, one level above the highest of them. Their ranges must be
	// adjacent and in order. Keep, Whole and Range do not apply.
	Parts []structure.SummaryID
	// Keep excludes the last spans of the history.
	Keep uint64
	// Whole begins at the start of the history instead of after the last summary of messages.
	Whole bool
	// Range, when it has From or To, is the range of positions to summarize, including those
	// summarized before. It cannot be combined with Keep or Whole.
	Range Window
	// MostAtOnce limits the bytes of text per call of the summarizer. Default 1 MiB. Longer ranges
	// are split: each part is summarized, and then the summaries.
	MostAtOnce int
	// Embed, when not nil, returns an embedding of the summary to store with it.
	Embed func(ctx context.Context, text string) ([]float32, error)
}

// Summaries yields the context's own summaries, oldest first.
func (c *Context) Summaries(ctx context.Context) iter.Seq2[*SummaryInfo, error] {
	return func(yield func(*SummaryInfo, error) bool) {
		runs := c.store.runs(ctx)
		for r, err := range c.store.engine.Summaries(ctx, c.id) {
			var info *SummaryInfo
			if err == nil {
				info, err = c.store.summaryInfo(ctx, c.store.engine, r, runs)
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// Summaries yields the summaries of threads that match a query and, if the query has no filter, of
// contexts outside threads.
func (s *Store) Summaries(ctx context.Context, q ThreadQuery) iter.Seq2[*SummaryInfo, error] {
	return func(yield func(*SummaryInfo, error) bool) {
		in := func(contexts iter.Seq2[*Context, error]) bool {
			for c, err := range contexts {
				if err != nil {
					return yield(nil, err)
				}
				for found, err := range c.Summaries(ctx) {
					if !yield(found, err) || err != nil {
						return false
					}
				}
			}
			return true
		}
		for t, err := range s.Threads(ctx, q) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !in(t.Contexts(ctx)) {
				return
			}
		}
		if q.User == nil && q.SourcePrefix+q.TitlePrefix == "" && len(q.Metadata) == 0 && q.From.IsZero() && q.To.IsZero() {
			in(s.Contexts(ctx))
		}
	}
}

// EffectiveSummaries returns the summaries of parts of the context's history, ordered by start: its own and those of
// its ancestors. What follows the greatest Last is not summarized yet.
func (c *Context) EffectiveSummaries(ctx context.Context) ([]*SummaryInfo, error) {
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	return c.store.summariesOn(ctx, c.id, tip)
}

// DeleteSummary deletes a summary. The messages stay.
func (c *Context) DeleteSummary(ctx context.Context, id structure.SummaryID) error {
	return c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		b.DeleteSummary(c.id, id)
		return nil
	})
}

func (s *Store) summaryInfo(ctx context.Context, from backend.Reader, r *structure.Summary, runs structure.RunLookup) (*SummaryInfo, error) {
	info := &SummaryInfo{
		ID: r.ID, Context: r.Context, Content: r.Content, From: r.From, To: r.To, Level: r.Level, Parts: r.Parts,
		Model: r.Model, Embedding: vector.Decode(nil, r.Embedding), CreatedAt: r.CreatedAt,
	}
	before, err := structure.Position(r.From, runs)
	if err != nil {
		return nil, err
	}
	info.First = before + 1
	if info.Last, err = structure.Position(r.To, runs); err != nil {
		return nil, err
	}
	blocks, err := from.Blocks(ctx, []ContentID{r.Content})
	if errors.Is(err, ErrErased) {
		info.Erased, info.Embedding = true, nil // it may have been erased after r was read
		return info, nil
	}
	if err != nil {
		return nil, fmt.Errorf("summary %v: %w", r.ID, err)
	}
	info.Text = string(blocks[0].Body)
	return info, nil
}

// summariesOn returns the summaries of a context and its ancestors whose range is on the history
// that ends at tip, ordered by start.
func (s *Store) summariesOn(ctx context.Context, id ContextID, tip SpanRef) ([]*SummaryInfo, error) {
	runs := s.runs(ctx)
	var found []*SummaryInfo
	seen := make(map[ContextID]bool)
	for !id.IsZero() && !seen[id] {
		seen[id] = true
		state, err := s.engine.Context(ctx, id)
		if isNotFound(err) {
			break // the parent was deleted with its summaries
		}
		if err != nil {
			return nil, err
		}
		for r, err := range s.engine.Summaries(ctx, id) {
			if err != nil {
				return nil, err
			}
			on, err := structure.IsAncestor(r.To, tip, runs)
			if err != nil {
				return nil, err
			}
			if !on {
				continue
			}
			info, err := s.summaryInfo(ctx, s.engine, r, runs)
			if err != nil {
				return nil, err
			}
			if !info.Erased {
				found = append(found, info)
			}
		}
		id = state.Parent
	}
	slices.SortStableFunc(found, func(a, b *SummaryInfo) int { return cmp.Compare(a.First, b.First) })
	return found, nil
}

// summarySource is the prefix of the source id of messages that withSummaries adds.
const summarySource = "lineage:summary/"

// widest returns summaries that do not overlap, in order. Among those that start first it prefers
// the longest, then the newest.
func widest(summaries []*SummaryInfo) (chain []*SummaryInfo) {
	next := uint64(1)
	for {
		var best *SummaryInfo
		for _, s := range summaries {
			if s.First >= next && (best == nil || s.First < best.First || s.First == best.First && s.Last >= best.Last) {
				best = s
			}
		}
		if best == nil {
			return chain
		}
		chain, next = append(chain, best), best.Last+1
	}
}
