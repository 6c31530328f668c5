package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/structure"
)

const (
	// found is how many hits a search shows, and maxQuery how long a query may be.
	found    = 60
	maxQuery = 1000
)

// searchView is what a search found, by conversation.
type searchView struct {
	Query  string
	Groups []*searchGroup
	Hits   int
	Took   time.Duration
}

// searchGroup is the hits in a conversation.
type searchGroup struct {
	*homeRow
	Hits []*searchHit
}

// searchHit is a message that was found.
type searchHit struct {
	Href, Role, Class string
	Time              time.Time
	Parts             []snippetPart
}

// snippetPart is a part of a snippet. Mark is set for a word that was searched for.
type snippetPart struct {
	Text string
	Mark bool
}

func (p *Page) search(w http.ResponseWriter, r *http.Request) error {
	v := &searchView{Query: strings.TrimSpace(r.URL.Query().Get("q"))}
	if len(v.Query) > maxQuery {
		return fmt.Errorf("query of %d bytes: %w: at most %d", len(v.Query), errRequest, maxQuery)
	}
	start := p.o.now()
	if err := p.find(r.Context(), v); err != nil {
		return err
	}
	v.Took = p.o.now().Sub(start).Round(time.Millisecond)
	return p.show(w, r, http.StatusOK, "search", &view{Title: "Search", Query: v.Query, Body: v})
}

// find searches conversations by id or title, and then their texts.
func (p *Page) find(ctx context.Context, v *searchView) error {
	query, text, err := readQuery(v.Query)
	if err != nil {
		return err
	}
	groups := make(map[lineage.ThreadID]*searchGroup)
	group := func(id lineage.ThreadID) (*searchGroup, error) {
		if g := groups[id]; g != nil {
			return g, nil
		}
		t, err := p.o.Store.Thread(ctx, id)
		if err != nil {
			return nil, err
		}
		info, err := t.Info(ctx)
		if err != nil {
			return nil, err
		}
		row, err := p.row(ctx, t, &info)
		if err != nil {
			return nil, err
		}
		groups[id] = &searchGroup{homeRow: row}
		v.Groups = append(v.Groups, groups[id])
		return groups[id], nil
	}
	if id, err := structure.ParseID[lineage.ThreadID](text); err == nil {
		if _, err := group(id); err != nil && !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
	}
	if text == "" || p.o.Search == nil {
		return nil
	}
	hits, err := p.o.Search(ctx, text, query, found)
	if err != nil {
		return err
	}
	for i := range hits {
		h := &hits[i]
		if h.Entry == nil || len(h.Threads) == 0 {
			continue
		}
		g, err := group(h.Threads[0])
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		there := &place{ID: g.ID, In: h.Entry.Span.String()}
		g.Hits = append(g.Hits, &searchHit{Href: there.Href(h.Entry.Position), Role: h.Entry.Role, Class: render.RoleClass(h.Entry.Role), Time: h.Entry.CreatedAt, Parts: snippetOf(h.Snippet)})
		v.Hits++
	}
	return nil
}

// readQuery divides a query into filters, such as agent:codex or after:2026-10-01, and the text. Without filters, the
// query is nil.
func readQuery(query string) (among *lineage.ThreadQuery, text string, err error) {
	var words []string
	among = &lineage.ThreadQuery{}
	given := false
	for word := range strings.FieldsSeq(query) {
		key, value, isFilter := strings.Cut(word, ":")
		if value == "" {
			isFilter = false
		}
		switch {
		case isFilter && (key == "agent" || key == "project"):
			is, err := json.Marshal(value)
			if err != nil {
				return nil, "", err
			}
			if key == "project" {
				key = archive.KeyProject
			} else {
				key = archive.KeyAgent
			}
			among.Metadata = append(among.Metadata, lineage.MetadataIs{Key: key, Value: is})
		case isFilter && key == "user":
			among.User = &value
		case isFilter && (key == "after" || key == "before"):
			at, err := day(value)
			if err != nil {
				return nil, "", err
			}
			if key == "after" {
				among.From = at
			} else {
				among.To = at
			}
		default:
			words = append(words, word)
			continue
		}
		given = true
	}
	if !given {
		among = nil
	}
	return among, strings.Join(words, " "), nil
}

// day reads a day, a month or a year.
func day(text string) (time.Time, error) {
	for _, form := range []string{time.DateOnly, "2006-01", "2006"} {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.40q: %w: it is a date such as 2026-01-31", text, errRequest)
}

// snippetOf divides a snippet at the marks of words.
func snippetOf(snippet string) (parts []snippetPart) {
	for i, text := range strings.Split(strings.NewReplacer("<mark>", "\x00", "</mark>", "\x00").Replace(strings.ReplaceAll(snippet, "\x00", "")), "\x00") {
		if text != "" {
			parts = append(parts, snippetPart{text, i%2 == 1})
		}
	}
	return parts
}
