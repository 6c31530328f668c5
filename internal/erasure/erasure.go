// Package erasure finds what an erasure makes unreadable, and what may still repeat it.
package erasure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// Plan is what an erasure does.
type Plan struct {
	// Erased is a record for each content. Do sets Erased in them.
	Erased []*records.Erased
	// Stays are contents of the message that other messages have, too: they are not erased.
	Stays []*records.Erased
	ids   []lineage.ContentID
}

// OfContent plans to erase a content from every history.
func OfContent(ctx context.Context, store *lineage.Store, id lineage.ContentID) (*Plan, error) {
	p := &Plan{}
	r, err := record(ctx, store, id)
	if err != nil {
		return nil, err
	}
	p.ids, p.Erased = []lineage.ContentID{id}, []*records.Erased{r}
	return p, nil
}

// OfMessage plans to erase the text of a message, and those of its other contents that no other message has.
func OfMessage(ctx context.Context, store *lineage.Store, e *lineage.Entry) (*Plan, error) {
	p := &Plan{}
	for _, id := range e.Contents() {
		r, err := record(ctx, store, id)
		if err != nil {
			return nil, err
		}
		if id != e.Content && r.Uses > 1 {
			p.Stays = append(p.Stays, r)
			continue
		}
		p.ids, p.Erased = append(p.ids, id), append(p.Erased, r)
	}
	return p, nil
}

// Do erases the contents, and calls each, if it is not nil, after every one of them.
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

// record returns what erasing a content would do.
func record(ctx context.Context, store *lineage.Store, id lineage.ContentID) (*records.Erased, error) {
	has, err := store.View().Has(ctx, []lineage.ContentID{id})
	if err != nil {
		return nil, err
	}
	if !has[0] {
		return nil, fmt.Errorf("content %s: %w", id, lineage.ErrNotFound)
	}
	r := &records.Erased{ContentID: id.String(), Summaries: []string{}, Titles: []string{}}
	var holding []*lineage.Entry
	for e, err := range store.Where(ctx, id) {
		if err != nil {
			return nil, err
		}
		r.Uses++
		holding = append(holding, e)
	}
	if r.Titles, err = titlesOf(ctx, store, id); err != nil {
		return nil, err
	}
	for summary, err := range store.Summaries(ctx, lineage.ThreadQuery{}) {
		if err != nil {
			return nil, err
		}
		id := summary.Content.String()
		if summary.Erased || slices.Contains(r.Summaries, id) {
			continue
		}
		covers, err := covers(ctx, store, summary, holding)
		if err != nil {
			return nil, err
		}
		if covers {
			r.Summaries = append(r.Summaries, id)
		}
	}
	return r, nil
}

// maxTitle bounds how much of a content is compared with titles of threads.
const maxTitle = 64 << 10

// titlesOf returns the threads whose title is the start of a content, such as threads that were named
// after their first message.
func titlesOf(ctx context.Context, store *lineage.Store, id lineage.ContentID) ([]string, error) {
	titles := []string{}
	body, err := store.Body(ctx, id)
	if errors.Is(err, lineage.ErrErased) {
		return titles, nil
	}
	if err != nil {
		return nil, err
	}
	begins, err := io.ReadAll(io.LimitReader(body, maxTitle))
	if err != nil {
		return nil, err
	}
	text := strings.Join(strings.Fields(string(begins)), " ")
	for t, err := range store.View().Threads(ctx, lineage.ThreadID{}) {
		if err != nil {
			return nil, err
		}
		title := strings.TrimSuffix(strings.Join(strings.Fields(t.Title), " "), "…")
		if title != "" && strings.HasPrefix(text, title) {
			titles = append(titles, t.ID.String())
		}
	}
	return titles, nil
}

// covers reports whether a summary covers one of the entries.
func covers(ctx context.Context, store *lineage.Store, summary *lineage.SummaryInfo, entries []*lineage.Entry) (bool, error) {
	for _, e := range entries {
		if e.Position < summary.First || e.Position > summary.Last {
			continue
		}
		at, err := store.At(ctx, summary.To, e.Position)
		if err != nil || at == e.Span {
			return err == nil, err
		}
	}
	return false, nil
}
