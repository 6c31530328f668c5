package lineage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Revision is a revision of a document. Store.RevisionEntry reads it.
type Revision struct {
	Document string
	Number   uint64
	Content  ContentID
	// Span and Index say where it was first added.
	Span  SpanRef
	Index int
}

// Revisions returns the revisions of a document on the context's history: see Store.Revisions.
func (c *Context) Revisions(ctx context.Context, document string) ([]Revision, error) {
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	return c.store.Revisions(ctx, tip, document)
}

// Revisions returns the revisions of a document on the history that ends at tip, ordered by number. An
// empty name returns those of all documents, ordered by name. A revision that was added several
// times is returned once, as first added. No bodies are read.
func (s *Store) Revisions(ctx context.Context, tip SpanRef, document string) ([]Revision, error) {
	if tip.IsZero() {
		return nil, nil
	}
	type revision struct {
		document string
		number   uint64
		content  ContentID
	}
	var found []Revision
	seen := make(map[revision]bool)
	for step, err := range s.engine.Path(ctx, tip, Window{}, backend.PathOptions{Passing: true}) {
		if err != nil {
			return nil, err
		}
		for i := range step.Span.Usages {
			u := &step.Span.Usages[i]
			r := revision{u.Document, u.Revision, u.Content}
			if u.Kind != structure.DocumentUsage || document != "" && u.Document != document || seen[r] {
				continue
			}
			seen[r] = true
			found = append(found, Revision{u.Document, u.Revision, u.Content, step.Span.Ref, i})
		}
	}
	slices.SortStableFunc(found, func(a, b Revision) int {
		return cmp.Or(cmp.Compare(a.Document, b.Document), cmp.Compare(a.Number, b.Number))
	})
	return found, nil
}

// RevisionEntry reads a revision.
func (s *Store) RevisionEntry(ctx context.Context, r *Revision) (*Entry, error) {
	entries, err := s.Span(ctx, r.Span)
	if err != nil {
		return nil, err
	}
	e := entryAt(entries, r.Index)
	if e == nil {
		return nil, subjectError("document", r.Document, ErrNotFound, fmt.Sprintf("revision %d", r.Number))
	}
	return e, nil
}

// Revision returns a revision of a document on the context's history, the latest for the number 0. If there
// is none, the error is ErrNotFound.
func (c *Context) Revision(ctx context.Context, document string, number uint64) (*Entry, error) {
	revisions, err := c.Revisions(ctx, document)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(revisions) {
		if document != "" && (number == 0 || r.Number == number) {
			return c.store.RevisionEntry(ctx, &r)
		}
	}
	wanted := "revision"
	if number > 0 {
		wanted = fmt.Sprintf("revision %d", number)
	}
	return nil, subjectError("document", document, ErrNotFound, wanted)
}

// advance updates the index to the history up to tip. It reads only the new part if the indexed
// history was extended.
func (s *documentIndex) advance(ctx context.Context, store *Store, tip SpanRef) error {
	runs := store.runs(ctx)
	if on, err := structure.IsAncestor(s.tip, tip, runs); err != nil || !on || s.documents == nil {
		s.tip, s.length, s.documents = SpanRef{}, 0, make(map[string]*revisions)
		if err != nil && !isNotFound(err) { // the indexed history may have been collected
			return err
		}
	}
	if s.tip == tip {
		return nil
	}
	for step, err := range store.engine.Path(ctx, tip, Window{From: s.length + 1}, backend.PathOptions{Passing: true}) {
		if err != nil {
			s.documents = nil
			return err
		}
		for i := range step.Span.Usages {
			if u := &step.Span.Usages[i]; u.Kind == structure.DocumentUsage {
				s.put(u.Document, u.Revision, u.Content)
			}
		}
		s.length = step.Position
	}
	s.tip = tip
	return nil
}

// id returns the content id of an item without a Reader.
func (i *Item) id() ContentID {
	if i.Content.IsZero() {
		return content.Sum(i.Body)
	}
	return i.Content
}

func hasDocuments(items []Item) bool {
	return slices.ContainsFunc(items, func(i Item) bool { return i.Kind == Document })
}

// extendRevised is extend for items with document revisions, whose numbers depend on the history.
func (c *Context) extendRevised(ctx context.Context, items []Item, expected *SpanRef) ([]SpanRef, error) {
	items, err := c.store.readDocuments(ctx, items)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		tip, err := c.Tip(ctx)
		if err != nil {
			return nil, err
		}
		if expected != nil {
			tip = *expected
		}
		revised, err := c.revised(ctx, tip, items)
		if err != nil {
			return nil, err
		}
		spans, err := c.extend(ctx, revised, &tip)
		if errors.Is(err, ErrTipMoved) && expected == nil && try < maxReviseTries {
			continue
		}
		return spans, err
	}
}

// readDocuments stores the bodies of documents that have a Reader, and returns items that refer to
// them.
func (s *Store) readDocuments(ctx context.Context, items []Item) ([]Item, error) {
	items = slices.Clone(items)
	for i := range items {
		item := &items[i]
		if item.Kind != Document || item.Reader == nil {
			continue
		}
		if !item.Content.IsZero() || item.Body != nil {
			return nil, errSeveralBodies
		}
		block, _, err := s.Put(ctx, item.Reader, BlockOptions{Type: cmp.Or(item.Type, content.TypeText), Origin: item.Origin.OfBlock()})
		if err != nil {
			return nil, err
		}
		item.Reader, item.Content = nil, block.ID
	}
	return items, nil
}

// maxReviseTries limits retries when others extend the context.
const maxReviseTries = 1000

// revised returns the items with missing revision numbers and parents of documents filled in. If a number is taken by
// other content, the error is ErrExists.
func (c *Context) revised(ctx context.Context, tip SpanRef, items []Item) ([]Item, error) {
	index := new(documentIndex)
	if !c.store.inTransaction() {
		index = c.store.documentCache.get(c.id)
	}
	index.mu.Lock()
	defer index.mu.Unlock()
	if err := index.advance(ctx, c.store, tip); err != nil {
		return nil, err
	}
	return index.revised(items)
}

// revisedAfter is revised for items added after a span that is not the tip of a context.
func (s *Store) revisedAfter(ctx context.Context, after SpanRef, items []Item) ([]Item, error) {
	if !hasDocuments(items) {
		return items, nil
	}
	items, err := s.readDocuments(ctx, items)
	if err != nil {
		return nil, err
	}
	index := new(documentIndex)
	if err := index.advance(ctx, s, after); err != nil {
		return nil, err
	}
	return index.revised(items)
}

// numbered returns the number for a copied revision: its own, or the next free one if that has
// other content. It adds the revision to the index.
func (s *documentIndex) numbered(document string, number uint64, id ContentID) uint64 {
	if r := s.documents[document]; r != nil {
		if known, taken := r.contents[number]; taken && known != id {
			number = r.latest + 1
		}
	}
	s.put(document, number, id)
	return number
}

// revised is Context.revised; it does not change the index.
func (s *documentIndex) revised(items []Item) ([]Item, error) {
	added := make(map[string]*revisions)
	items = slices.Clone(items)
	for i := range items {
		item := &items[i]
		if item.Kind != Document || item.Document == "" {
			continue
		}
		has, adds := s.documents[item.Document], added[item.Document]
		if has == nil {
			has = new(revisions)
		}
		if adds == nil {
			adds = &revisions{contents: make(map[uint64]ContentID)}
			added[item.Document] = adds
		}
		id := item.id()
		if item.Revision == 0 {
			item.Revision = max(has.latest, adds.latest) + 1
		}
		known, taken := has.contents[item.Revision]
		if !taken {
			known, taken = adds.contents[item.Revision]
		}
		if taken && known != id {
			return nil, subjectError("document", item.Document, ErrExists, fmt.Sprintf("revision %d has other content", item.Revision))
		}
		if item.Origin.ParentID.IsZero() {
			item.Origin.ParentID = before(item.Revision, has, adds)
		}
		adds.contents[item.Revision], adds.latest = id, max(adds.latest, item.Revision)
	}
	return items, nil
}

// before returns the content of the latest revision below a number, zero if there is none.
func before(number uint64, all ...*revisions) (id ContentID) {
	last := uint64(0)
	for _, r := range all {
		if r.latest < number && r.latest >= last && r.contents != nil {
			last, id = r.latest, r.contents[r.latest]
			continue
		}
		for n, content := range r.contents {
			if n < number && n >= last {
				last, id = n, content
			}
		}
	}
	return id
}
