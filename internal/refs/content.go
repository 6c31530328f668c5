package refs

import (
	"context"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Content returns the content with a name: a content id, the beginning of one, or the main content of the message
// that it names. For a shortened id, the histories of the store are searched.
func (r *Resolver) Content(ctx context.Context, text string) (lineage.ContentID, error) {
	id, e, err := r.ContentOrEntry(ctx, text)
	if e != nil {
		id = e.Content
	}
	return id, err
}

// ContentOrEntry returns the content id or the entry that a name stands for.
func (r *Resolver) ContentOrEntry(ctx context.Context, text string) (lineage.ContentID, *lineage.Entry, error) {
	if id, err := content.ParseID(text); err == nil {
		return id, nil, nil
	}
	found, err := r.Find(ctx, text)
	if err == nil {
		e, err := r.Entry(ctx, found)
		return lineage.ContentID{}, e, err
	}
	if !isNotFound(err) || !isShortContent(text) {
		return lineage.ContentID{}, nil, err
	}
	id, searchErr := r.contentByID(ctx, strings.ToLower(text))
	if searchErr != nil {
		return lineage.ContentID{}, nil, searchErr
	}
	if id.IsZero() {
		return lineage.ContentID{}, nil, &UnknownError{Kind: "content", Text: text}
	}
	return id, nil, nil
}

// Entry returns the entry that a name stands for.
func (r *Resolver) Entry(ctx context.Context, found *Ref) (*lineage.Entry, error) {
	if found.Span.IsZero() {
		return nil, &UnknownError{Kind: "message", Text: found.Text}
	}
	entries, err := r.store.Span(ctx, found.Span)
	if err != nil {
		return nil, err
	}
	for i := len(entries) - 1; i >= 0; i-- { // the index may be that of a piece
		if e := entries[i]; e.Index <= found.Index && found.Index < e.Index+max(len(e.Pieces), 1) {
			return e, nil
		}
	}
	return nil, &UnknownError{Kind: "message", Text: found.Text}
}

func isShortContent(text string) bool {
	return len(text) >= minShort && len(text) < 64 && strings.Trim(strings.ToLower(text), "0123456789abcdef") == ""
}

func (r *Resolver) contentByID(ctx context.Context, prefix string) (lineage.ContentID, error) {
	found, err := r.contentsLike(ctx, prefix)
	if err != nil {
		return lineage.ContentID{}, err
	}
	id, err := one("content", prefix, found, func(id lineage.ContentID) Match { return Match{ID: id.String()} })
	if id == nil {
		return lineage.ContentID{}, err
	}
	return *id, nil
}

// contentsLike returns contents whose ids begin with prefix, but not many more than an error lists.
func (r *Resolver) contentsLike(ctx context.Context, prefix string) (found []lineage.ContentID, err error) {
	read := make(map[structure.RunID]uint64) // up to where runs were read
	see := func(e backend.Extent) (more bool, err error) {
		found, err = r.contentsOf(ctx, e, read[e.Run.ID], prefix, found)
		read[e.Run.ID] = max(read[e.Run.ID], e.Last)
		return len(found) <= maxMatches, err
	}
	if r.allows == nil {
		for e, err := range r.extents(ctx, func(structure.RunID) bool { return true }) {
			if err != nil {
				return nil, err
			}
			if more, err := see(e); !more || err != nil {
				return found, err
			}
		}
		return found, nil
	}
	return backend.AtOnce(ctx, r.view, func(s backend.Snapshot) ([]lineage.ContentID, error) {
		clear(read) // of a state that has expired
		found = nil
		for some, err := range r.parts(ctx, s) {
			if err != nil {
				return nil, err
			}
			for _, e := range some.Extents() {
				if more, err := see(e); !more || err != nil {
					return found, err
				}
			}
		}
		return found, nil
	})
}

// contentsOf adds the contents of a run after the first spans whose ids begin with prefix to found.
func (r *Resolver) contentsOf(ctx context.Context, e backend.Extent, first uint64, prefix string, found []lineage.ContentID) ([]lineage.ContentID, error) {
	if e.Last <= first {
		return found, nil
	}
	last := lineage.SpanRef{Run: e.Run.ID, Seq: e.Last}
	for step, err := range r.view.Path(ctx, last, lineage.Window{Last: last.Seq - first}, backend.PathOptions{}) {
		if err != nil {
			return nil, err
		}
		for _, u := range step.Span.Usages {
			if strings.HasPrefix(u.Content.String(), prefix) && !slices.Contains(found, u.Content) {
				found = append(found, u.Content)
			}
		}
	}
	return found, nil
}
