// Package erasure determines what an erasure makes unreadable, and what may still repeat the erased text.
package erasure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/internal/pages"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

// Plan is a planned erasure.
type Plan struct {
	// Erased has a record for each content to erase. Do sets Erased in them.
	Erased []*records.Erased
	// Stays are contents of the message that are not erased because other messages use them too.
	Stays []*records.Erased
	ids   []lineage.ContentID
}

// OfContent plans the erasure of a content from every history.
func OfContent(ctx context.Context, store *lineage.Store, id lineage.ContentID) (*Plan, error) {
	found, err := recordsOf(ctx, store, []lineage.ContentID{id})
	if err != nil {
		return nil, err
	}
	return &Plan{Erased: found, ids: []lineage.ContentID{id}}, nil
}

// OfMessage plans the erasure of a message: its text, and its other contents that no other message uses.
func OfMessage(ctx context.Context, store *lineage.Store, e *lineage.Entry) (*Plan, error) {
	ids := e.Contents()
	found, err := recordsOf(ctx, store, ids)
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	for i, r := range found {
		if ids[i] != e.Content && r.Uses > 1 {
			r.Stays = true
			p.Stays = append(p.Stays, r)
			continue
		}
		p.ids, p.Erased = append(p.ids, ids[i]), append(p.Erased, r)
	}
	return p, nil
}

// Do erases the contents. If each is not nil, it is called after each of them.
func (p *Plan) Do(ctx context.Context, store *lineage.Store, each func(*records.Erased) error) error {
	for i, r := range p.Erased {
		if err := store.Erase(ctx, p.ids[i]); err != nil {
			return err
		}
		r.Erased = true
		if each == nil {
			continue
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

// recordsOf returns, for each of the contents, what erasing it would do. It reads the threads and summaries only
// once.
func recordsOf(ctx context.Context, store *lineage.Store, ids []lineage.ContentID) ([]*records.Erased, error) {
	has, err := store.View().Has(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := make([]*records.Erased, len(ids))
	used := make(affectedMessages)
	var prefixes []prefix
	for i, id := range ids {
		if !has[i] {
			return nil, fmt.Errorf("content %s: %w", id, lineage.ErrNotFound)
		}
		found[i] = &records.Erased{ContentID: id.String(), Summaries: []string{}, Titles: []string{}}
		if found[i].Uses, err = used.add(ctx, store, id, i); err != nil {
			return nil, err
		}
		text, err := begin(ctx, store, id)
		if err != nil {
			return nil, err
		}
		if text != "" {
			prefixes = append(prefixes, prefix{text, i})
		}
	}
	if err := addTitles(ctx, store, prefixes, found); err != nil {
		return nil, err
	}
	return found, used.addSummaries(ctx, store, found)
}

// affectedMessage is a message that uses one of the contents.
type affectedMessage struct {
	seq uint64
	// content is the index of the content that is used.
	content int
}

// affectedMessages are the messages that use the contents, by run.
type affectedMessages map[structure.RunID][]affectedMessage

// add adds the messages that use a content, and returns their number.
func (u affectedMessages) add(ctx context.Context, store *lineage.Store, id lineage.ContentID, index int) (int, error) {
	type message struct {
		span  lineage.SpanRef
		index int
	}
	counted := make(map[message]bool) // a message with the content in two pieces is found twice
	for e, err := range store.Where(ctx, id) {
		if err != nil {
			return 0, err
		}
		m := message{e.Span, e.Index}
		if counted[m] {
			continue
		}
		counted[m] = true
		u[e.Span.Run] = append(u[e.Span.Run], affectedMessage{e.Span.Seq, index})
	}
	return len(counted), nil
}

// summariesAtOnce is the number of summaries whose ranges are looked up at once. Tests make it smaller.
var summariesAtOnce = 512

// addSummaries adds to each record the summaries of messages that use its content, in the order of their contexts.
func (u affectedMessages) addSummaries(ctx context.Context, store *lineage.Store, found []*records.Erased) error {
	if len(u) == 0 {
		return nil
	}
	for _, in := range u {
		slices.SortFunc(in, func(a, b affectedMessage) int { return cmp.Compare(a.seq, b.seq) })
	}
	repeats, err := backend.AtOnce(ctx, store.View(), func(s backend.Snapshot) ([]repeat, error) { return u.repeats(ctx, s) })
	for _, r := range repeats {
		found[r.content].Summaries = append(found[r.content].Summaries, r.summary.String())
	}
	return err
}

// repeat is a summary that may repeat one of the contents.
type repeat struct {
	summary lineage.ContentID
	content int
}

// repeats returns the summaries that are not erased, each once for each content.
func (u affectedMessages) repeats(ctx context.Context, s backend.Snapshot) ([]repeat, error) {
	var all, some []repeat
	known := make(map[repeat]bool)
	for page, err := range pages.Of(s.Summaries(ctx, lineage.ContextID{}), summariesAtOnce) {
		if err != nil {
			return nil, err
		}
		if some, err = u.covered(ctx, s, page, some[:0]); err != nil {
			return nil, err
		}
		some = slices.DeleteFunc(some, func(r repeat) bool {
			before := known[r]
			known[r] = true
			return before
		})
		ids := make([]lineage.ContentID, len(some))
		for i, r := range some {
			ids[i] = r.summary
		}
		has, err := s.Has(ctx, ids)
		if err != nil {
			return nil, err
		}
		for i, r := range some {
			if has[i] {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// covered appends a repeat for each use in the ranges of summaries.
func (u affectedMessages) covered(ctx context.Context, s backend.Snapshot, summaries []*structure.Summary, all []repeat) ([]repeat, error) {
	ranges, err := rangesOf(ctx, s, summaries)
	if err != nil {
		return nil, err
	}
	for i, segments := range ranges {
		for _, in := range segments {
			affected := u[in.Run.ID]
			n, _ := slices.BinarySearchFunc(affected, in.First, func(r affectedMessage, seq uint64) int { return cmp.Compare(r.seq, seq) })
			for ; n < len(affected) && affected[n].seq <= in.Last; n++ {
				all = append(all, repeat{summaries[i].Content, affected[n].content})
			}
		}
	}
	return all, nil
}

// rangesOf returns the segments of the ranges of summaries.
func rangesOf(ctx context.Context, s backend.Snapshot, summaries []*structure.Summary) ([][]structure.Segment, error) {
	known, err := runsOf(ctx, s, summaries)
	if err != nil {
		return nil, err
	}
	lookup := func(id structure.RunID) (structure.RunInfo, error) {
		if run, ok := known[id]; ok {
			return run, nil
		}
		return s.Run(ctx, id)
	}
	ranges := make([][]structure.Segment, len(summaries))
	for i, summary := range summaries {
		before, err := structure.Position(summary.From, lookup)
		if err == nil {
			ranges[i], err = structure.Segments(summary.To, structure.Window{From: before + 1}, lookup)
		}
		if err != nil {
			return nil, err
		}
	}
	return ranges, nil
}

// runsOf returns the runs that the ranges of summaries are in. It reads the last ones of all ranges at once, then those before
// these, and so on.
func runsOf(ctx context.Context, s backend.Snapshot, summaries []*structure.Summary) (map[structure.RunID]structure.RunInfo, error) {
	known := make(map[structure.RunID]structure.RunInfo)
	next, wanted := make([]structure.RunID, len(summaries)), make(map[structure.RunID]bool)
	for i, summary := range summaries {
		next[i] = summary.To.Run
		for _, at := range []structure.SpanRef{summary.From, summary.To} {
			if !at.IsZero() {
				wanted[at.Run] = true
			}
		}
	}
	for len(wanted) > 0 {
		runs, err := backend.RunsByID(ctx, s, slices.Collect(maps.Keys(wanted)))
		if err != nil {
			return nil, err
		}
		maps.Copy(known, runs)
		clear(wanted)
		for i, summary := range summaries {
			before := known[summary.From.Run].Position(summary.From.Seq)
			for run, ok := known[next[i]]; ok; run, ok = known[next[i]] {
				if run.Parent.IsZero() || run.Depth <= before {
					next[i] = structure.RunID{} // the range begins in it
				} else if next[i] = run.Parent.Run; known[next[i]].Depth >= run.Depth {
					next[i] = structure.RunID{} // damaged: Segments reports it
				}
			}
			if next[i] != (structure.RunID{}) {
				wanted[next[i]] = true
			}
		}
	}
	return known, nil
}

// maxTitle is how much of a content is compared with the titles of threads.
const maxTitle = 64 << 10

// prefix is the start of a content, with each run of white space replaced by a space.
type prefix struct {
	text    string
	content int
}

// begin returns the start of a content, empty if it is erased.
func begin(ctx context.Context, store *lineage.Store, id lineage.ContentID) (string, error) {
	body, err := store.Body(ctx, id)
	if errors.Is(err, lineage.ErrErased) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(body, maxTitle))
	return strings.Join(strings.Fields(string(text)), " "), err
}

// addTitles adds to each record the threads whose title is the start of its content: threads that were named after
// their first message, for example.
func addTitles(ctx context.Context, store *lineage.Store, prefixes []prefix, found []*records.Erased) error {
	if len(prefixes) == 0 {
		return nil
	}
	byText := func(b prefix, text string) int { return strings.Compare(b.text, text) }
	slices.SortFunc(prefixes, func(a, b prefix) int { return byText(a, b.text) })
	for t, err := range store.View().Threads(ctx, lineage.ThreadID{}) {
		if err != nil {
			return err
		}
		title := strings.TrimSuffix(strings.Join(strings.Fields(t.Title), " "), "…")
		if title == "" {
			continue
		}
		i, _ := slices.BinarySearchFunc(prefixes, title, byText)
		for ; i < len(prefixes) && strings.HasPrefix(prefixes[i].text, title); i++ {
			r := found[prefixes[i].content]
			r.Titles = append(r.Titles, t.ID.String())
		}
	}
	return nil
}
