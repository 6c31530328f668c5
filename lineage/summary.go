package lineage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Summarizer condenses a stretch of a history. Package summarize has one that
// asks a model and one that needs no network.
type Summarizer interface {
	// Summarize returns a text that stands for the passages, in order.
	Summarize(ctx context.Context, passages []Passage) (SummaryText, error)
}

// Passage is a message or a part of one, or an earlier summary, that is to be summarized.
type Passage struct {
	Role, Name string
	Text       string
	// Absent is set where there is no text at hand, for it was erased or is no
	// text: Text tells of that in brackets.
	Absent bool
	// Continues is set where the text goes on that the passage before it has begun: a long one is
	// divided.
	Continues bool
	// Summary is set for a summary of what came before.
	Summary bool
}

// SummaryText is what a Summarizer made.
type SummaryText struct {
	Text string
	// Model names what made it.
	Model string
}

// SummaryInfo is a summary: content that stands for a stretch of a history. It
// stays true when the history grows; it then is behind.
type SummaryInfo struct {
	ID      structure.SummaryID
	Context ContextID
	Content ContentID
	Text    string
	// Erased is set when the bytes of the text were removed on purpose. Such a
	// summary stands for nothing any more.
	Erased bool
	// From and To are the spans it covers: those after From up to To.
	From, To SpanRef
	// First and Last are the positions of that stretch in the history, from 1: Store.History reads
	// it, up to To, with a Window from First to Last.
	First, Last uint64
	// Level is 0 for a summary of messages, and one more than its parts for a
	// summary of summaries.
	Level     uint64
	Parts     []structure.SummaryID
	Model     string
	Embedding []float32
	// Similarity, where NearestSummaries found the summary, is the cosine of the angle between its embedding and the
	// vector, from -1 to 1.
	Similarity float64
	CreatedAt  time.Time
}

// SummarizeOptions say what is summarized.
type SummarizeOptions struct {
	// Parts are summaries to make one of, one level above the highest of them. They must follow
	// each other without a gap. Keep, Whole and Text are for messages only.
	Parts []structure.SummaryID
	// Keep leaves the last spans of the history out.
	Keep uint64
	// Whole summarizes from the start instead of from where the last summary of
	// messages ends.
	Whole bool
	// Range, when it has From or To, is the part of the history to summarize, by positions, whatever
	// was summarized before. Keep and Whole do not go with it.
	Range Window
	// MostAtOnce is how many bytes of text the summarizer gets at once. Default 1 MiB. Longer stretches are
	// divided: the summarizer summarizes each part, and then these summaries.
	MostAtOnce int
	// Embed, when not nil, turns the text of the summary into a vector to keep with it.
	Embed func(ctx context.Context, text string) ([]float32, error)
}

// Summaries yields the summaries made from the context, oldest first.
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

// FindSummaries yields the summaries whose text has all the words, in upper or lower case: of the contexts of
// threads that pass a query, and of those outside threads if it has no filter. It reads all summaries of these.
func (s *Store) FindSummaries(ctx context.Context, q ThreadQuery, words string) iter.Seq2[*SummaryInfo, error] {
	wanted := strings.Fields(strings.ToLower(words))
	return func(yield func(*SummaryInfo, error) bool) {
		if len(wanted) == 0 {
			return
		}
		for found, err := range s.Summaries(ctx, q) {
			if err == nil && (found.Erased || !hasWords(found.Text, wanted)) {
				continue
			}
			if !yield(found, err) || err != nil {
				return
			}
		}
	}
}

// MostNearest is how many summaries NearestSummaries returns at most.
const MostNearest = 1000

// NearestSummaries returns the summaries whose embeddings are nearest to a vector, the nearest first. It looks where
// FindSummaries does, at embeddings with as many numbers as the vector. The search is exact: it reads every embedding,
// which suits up to about 100,000 summaries.
func (s *Store) NearestSummaries(ctx context.Context, q ThreadQuery, vector []float32, limit int) ([]*SummaryInfo, error) {
	length := norm(vector)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) || limit < 1 || limit > MostNearest {
		return nil, fmt.Errorf("nearest summaries: %w: a vector of finite numbers that are not all 0, and a limit from 1 to %d", ErrInvalid, MostNearest)
	}
	var near []*SummaryInfo
	for found, err := range s.Summaries(ctx, q) {
		if err != nil {
			return nil, err
		}
		of := norm(found.Embedding)
		if found.Erased || len(found.Embedding) != len(vector) || of == 0 || math.IsNaN(of) || math.IsInf(of, 0) {
			continue
		}
		found.Similarity = dot(found.Embedding, vector) / of / length
		at, _ := slices.BinarySearchFunc(near, found, func(a, b *SummaryInfo) int { return cmp.Compare(b.Similarity, a.Similarity) })
		if at < limit {
			near = slices.Insert(near, at, found)
			near = near[:min(len(near), limit)]
		}
	}
	return near, nil
}

// Summaries yields the summaries of the contexts of threads that pass a query, and of those outside threads if it
// has no filter.
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

func hasWords(text string, wanted []string) bool {
	text = strings.ToLower(text)
	for _, word := range wanted {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// EffectiveSummaries returns the summaries that stand for parts of the context's history, in the
// order of where these begin: its own, and those of the contexts that it was forked from. What the history has after
// the Last of all of them is not summarized yet.
func (c *Context) EffectiveSummaries(ctx context.Context) ([]*SummaryInfo, error) {
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	return c.store.summariesOn(ctx, c.id, tip)
}

// DeleteSummary takes a summary out of the store. What it stood for stays.
func (c *Context) DeleteSummary(ctx context.Context, id structure.SummaryID) error {
	return c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		b.DeleteSummary(c.id, id)
		return nil
	})
}

func (s *Store) summaryInfo(ctx context.Context, from backend.Reader, r *structure.Summary, runs structure.RunLookup) (*SummaryInfo, error) {
	info := &SummaryInfo{
		ID: r.ID, Context: r.Context, Content: r.Content, From: r.From, To: r.To, Level: r.Level, Parts: r.Parts,
		Model: r.Model, Embedding: decodeVector(r.Embedding), CreatedAt: r.CreatedAt,
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
		info.Erased = true
		return info, nil
	}
	if err != nil {
		return nil, fmt.Errorf("summary %v: %w", r.ID, err)
	}
	info.Text = string(blocks[0].Body)
	return info, nil
}

// summariesOn returns the summaries, made from a context or those it descends
// from, that cover stretches of the history that ends at tip, by where they begin.
func (s *Store) summariesOn(ctx context.Context, id ContextID, tip SpanRef) ([]*SummaryInfo, error) {
	runs := s.runs(ctx)
	var found []*SummaryInfo
	seen := make(map[ContextID]bool)
	for !id.IsZero() && !seen[id] {
		seen[id] = true
		state, err := s.engine.Context(ctx, id)
		if isNotFound(err) {
			break // a parent that was deleted took its summaries along
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
