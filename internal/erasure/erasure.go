// Package erasure determines what an erasure makes unreadable, and what may still repeat the erased text.
package erasure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
	used := make(uses)
	var begins []prefix
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
			begins = append(begins, prefix{text, i})
		}
	}
	if err := addTitles(ctx, store, begins, found); err != nil {
		return nil, err
	}
	return found, used.addSummaries(ctx, store, found)
}

// use is a message that uses one of the contents.
type use struct {
	seq uint64
	// content is the index of the content that is used.
	content int
}

// uses are the messages that use the contents, by run.
type uses map[structure.RunID][]use

// add adds the messages that use a content, and returns their number.
func (u uses) add(ctx context.Context, store *lineage.Store, id lineage.ContentID, index int) (int, error) {
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
		u[e.Span.Run] = append(u[e.Span.Run], use{e.Span.Seq, index})
	}
	return len(counted), nil
}

// addSummaries adds to each record the summaries of messages that use its content.
func (u uses) addSummaries(ctx context.Context, store *lineage.Store, found []*records.Erased) error {
	for _, in := range u {
		slices.SortFunc(in, func(a, b use) int { return cmp.Compare(a.seq, b.seq) })
	}
	type repeat struct {
		summary lineage.ContentID
		content int
	}
	known, runs := make(map[repeat]bool), backend.Runs(ctx, store.View())
	for summary, err := range store.Summaries(ctx, lineage.ThreadQuery{}) {
		if err != nil {
			return err
		}
		if summary.Erased {
			continue
		}
		segments, err := structure.Segments(summary.To, structure.Window{From: summary.First}, runs)
		if err != nil {
			return err
		}
		for _, s := range segments {
			in := u[s.Run.ID]
			i, _ := slices.BinarySearchFunc(in, s.First, func(r use, seq uint64) int { return cmp.Compare(r.seq, seq) })
			for ; i < len(in) && in[i].seq <= s.Last; i++ {
				r := repeat{summary.Content, in[i].content}
				if !known[r] {
					known[r] = true
					found[r.content].Summaries = append(found[r.content].Summaries, summary.Content.String())
				}
			}
		}
	}
	return nil
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
func addTitles(ctx context.Context, store *lineage.Store, begins []prefix, found []*records.Erased) error {
	if len(begins) == 0 {
		return nil
	}
	byText := func(b prefix, text string) int { return strings.Compare(b.text, text) }
	slices.SortFunc(begins, func(a, b prefix) int { return byText(a, b.text) })
	for t, err := range store.View().Threads(ctx, lineage.ThreadID{}) {
		if err != nil {
			return err
		}
		title := strings.TrimSuffix(strings.Join(strings.Fields(t.Title), " "), "…")
		if title == "" {
			continue
		}
		i, _ := slices.BinarySearchFunc(begins, title, byText)
		for ; i < len(begins) && strings.HasPrefix(begins[i].text, title); i++ {
			r := found[begins[i].content]
			r.Titles = append(r.Titles, t.ID.String())
		}
	}
	return nil
}
