package page

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/filters"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

const (
	// found is the number of displayed hits, titled that of conversations found by title, and maxQuery the maximum
	// length of a query.
	found    = 60
	titled   = 10
	maxQuery = 1000
)

// searchView is the result of a search, by conversation.
type searchView struct {
	Query  string
	Groups []*searchGroup
	Hits   int
	// Behind is the number of the last commits that the search does not see yet.
	Behind uint64
	// Problem states why a query is not valid.
	Problem string
}

// searchGroup has the hits in a conversation.
type searchGroup struct {
	*homeRow
	Hits []*searchHit
}

// searchHit is a found message.
type searchHit struct {
	Href, Role, Class string
	Time              time.Time
	Parts             []snippetPart
}

// snippetPart is a part of a snippet. Mark is set for a found word.
type snippetPart struct {
	Text string
	Mark bool
}

func (p *Page) search(w http.ResponseWriter, r *http.Request) error {
	v := &searchView{Query: strings.TrimSpace(r.URL.Query().Get("q"))}
	status := http.StatusOK
	err := p.find(r.Context(), v)
	if errors.Is(err, errRequest) || errors.Is(err, lineage.ErrInvalid) { // the query may be half typed
		status, v.Problem = http.StatusBadRequest, sentence(err)
		err = nil
	}
	if err != nil {
		return err
	}
	return p.show(w, r, status, "search", &pageData{Title: "Search", Query: v.Query, Body: v})
}

// activeSearch is a search in progress.
type activeSearch struct {
	*Page
	*searchView
	groups map[lineage.ThreadID]*searchGroup
}

// group returns the group of a conversation, adding it if necessary. The error is ErrNotFound for a deleted
// conversation.
func (f *activeSearch) group(ctx context.Context, id lineage.ThreadID) (*searchGroup, error) {
	if g := f.groups[id]; g != nil {
		return g, nil
	}
	t, err := f.o.Store.Thread(ctx, id)
	if err != nil {
		return nil, err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := f.rows(ctx, []lineage.ThreadInfo{info})
	if err == nil && len(rows) == 0 {
		err = lineage.ErrNotFound // deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	g := &searchGroup{homeRow: rows[0]}
	f.groups[id] = g
	f.Groups = append(f.Groups, g)
	return g, nil
}

// listed adds the first conversations that match a query.
func (f *activeSearch) listed(ctx context.Context, q lineage.ThreadQuery, most int) error {
	for t, err := range f.o.Store.Threads(ctx, q) {
		if err != nil {
			return err
		}
		if _, err := f.group(ctx, t.ID()); err != nil && !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
		if most--; most == 0 {
			break
		}
	}
	return nil
}

// named adds the conversations that a text names: by id, by the displayed end of the id, by source id, or by the
// start of the title.
func (f *activeSearch) named(ctx context.Context, text string, among *lineage.ThreadQuery) error {
	var ids []lineage.ThreadID
	if id, err := structure.ParseID[lineage.ThreadID](text); err == nil {
		ids = append(ids, id)
	}
	if t, err := f.o.Store.FindThread(ctx, text); err == nil {
		ids = append(ids, t.ID())
	} else if !errors.Is(err, lineage.ErrNotFound) && !errors.Is(err, lineage.ErrInvalid) {
		return err
	}
	if end, err := hex.DecodeString(text); err == nil && len(end) == backend.IDEnd {
		for t, err := range f.o.Store.View().ThreadsEnding(ctx, [backend.IDEnd]byte(end)) {
			if err != nil {
				return err
			}
			if ids = append(ids, t.ID); len(ids) > titled {
				break
			}
		}
	}
	for _, id := range ids {
		if _, err := f.group(ctx, id); err != nil && !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
	}
	var q lineage.ThreadQuery
	if among != nil {
		q = *among
	}
	q.TitlePrefix = text
	if q.Check() != nil {
		return nil // no title is like that
	}
	return f.listed(ctx, q, titled)
}

// find searches conversations by id and title, and then their texts. A query with filters only lists conversations.
func (p *Page) find(ctx context.Context, v *searchView) error {
	if len(v.Query) > maxQuery {
		return refuse("The query has %d bytes. It may have %d.", len(v.Query), maxQuery)
	}
	among, text, err := filters.Read(v.Query, time.UTC)
	if err != nil {
		return err
	}
	f := &activeSearch{p, v, make(map[lineage.ThreadID]*searchGroup)}
	if text == "" {
		if among == nil {
			return nil
		}
		return f.listed(ctx, *among, found)
	}
	if err := f.named(ctx, text, among); err != nil || p.o.Search == nil {
		return err
	}
	hits, err := p.o.Search(ctx, SearchQuery{Text: text, Among: among, Limit: found, Behind: func(commits uint64) { v.Behind = commits }})
	if err != nil {
		return err
	}
	for i := range hits {
		h := &hits[i]
		if h.Entry == nil || len(h.Threads) == 0 {
			continue
		}
		g, err := f.group(ctx, h.Threads[0])
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		target := &subject{ID: g.ID, In: h.Entry.Span.String()}
		g.Hits = append(g.Hits, &searchHit{Href: target.Href(h.Entry.Position), Role: h.Role, Class: render.RoleClass(h.Role), Time: h.Entry.CreatedAt, Parts: snippetOf(h.Snippet)})
		v.Hits++
	}
	return nil
}

// snippetOf splits a snippet at the marks of found words.
func snippetOf(snippet string) (parts []snippetPart) {
	snippet = transcript.Uncoloured(snippet)
	for i, text := range strings.Split(strings.NewReplacer("<mark>", "\x00", "</mark>", "\x00").Replace(strings.ReplaceAll(snippet, "\x00", "")), "\x00") {
		if text != "" {
			parts = append(parts, snippetPart{text, i%2 == 1})
		}
	}
	return parts
}
