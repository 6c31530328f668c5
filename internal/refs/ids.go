package refs

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// minShort is the minimum length of a part of an id that is accepted instead of the whole. Short shows more.
const minShort = 4

// maxMatches is how many meanings of an ambiguous name are collected.
const maxMatches = 4

// shortLength is the length of the short form of an id.
const shortLength = 2 * backend.IDEnd

// Short returns the form of an id that is shown to people: its end, because ids created at the same time begin alike.
func Short[K any](id structure.ID[K]) string {
	return id.Short()
}

// ShortSpan returns the form of a span's address that is shown to people.
func ShortSpan(ref lineage.SpanRef) string {
	if ref.IsZero() {
		return "-"
	}
	return Short(ref.Run) + "/" + strconv.FormatUint(ref.Seq, 10)
}

// isShort reports whether text can stand for an id: its beginning, its end, or the beginning of its short form.
func isShort(text string) bool {
	if len(text) < minShort || len(text) > 36 {
		return false
	}
	for _, r := range text {
		if !strings.ContainsRune("0123456789abcdefABCDEF-", r) {
			return false
		}
	}
	return true
}

// matches reports whether text, in lower case, is the beginning or end of an id, or the beginning of its short form.
func matches[K any](id structure.ID[K], text string) bool {
	return strings.HasPrefix(Short(id), text) || matchesAny(id.String(), text)
}

// matchesAny is matches for ids of any form, which have no short form.
func matchesAny(id, text string) bool {
	return strings.HasPrefix(id, text) || strings.HasSuffix(id, text)
}

// shown returns an id for the list of matches of an ambiguous text: in its short form, or whole if text is the short
// form already, or a part of the id that the short form does not continue.
func shown[K any](id structure.ID[K], text string) string {
	text = strings.ToLower(text)
	if short := Short(id); short != text && (strings.HasPrefix(short, text) || !matchesAny(id.String(), text)) {
		return short
	}
	return id.String()
}

// fitting returns the elements that fit, but not many more than an error lists.
func fitting[T any](all iter.Seq2[T, error], fits func(T) bool) (found []T, err error) {
	for element, err := range all {
		if err != nil {
			return nil, err
		}
		if !fits(element) {
			continue
		}
		if found = append(found, element); len(found) > maxMatches {
			break
		}
	}
	return found, nil
}

// collect returns what convert returns for each element.
func collect[T, R any](all iter.Seq2[T, error], convert func(T) R) (list []R, err error) {
	for element, err := range all {
		if err != nil {
			return nil, err
		}
		list = append(list, convert(element))
	}
	return list, nil
}

// one returns the only match of text, or an error.
func one[T any](kind, text string, found []T, name func(T) Match) (*T, error) {
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	ambiguous := &AmbiguousError{Kind: kind, Text: text}
	for i, f := range found {
		if i == maxMatches {
			ambiguous.More = true
			break
		}
		ambiguous.Matches = append(ambiguous.Matches, name(f))
	}
	return nil, ambiguous
}

// contextByID returns the context whose id begins or ends with text, or nil. Contexts of the current thread take
// precedence.
func (r *Resolver) contextByID(ctx context.Context, text string) (*lineage.Context, error) {
	if id, err := structure.ParseID[lineage.ContextID](text); err == nil {
		return r.allowedContext(ctx, id)
	}
	if !isShort(text) {
		return nil, nil
	}
	scopes := []lineage.ThreadID{{}}
	if r.thread != nil {
		scopes = []lineage.ThreadID{r.thread.ID(), {}}
	}
	for _, scope := range scopes {
		found, err := fitting(r.contexts(ctx, scope), func(c backend.Context) bool { return matches(c.ID, strings.ToLower(text)) })
		if err != nil {
			return nil, err
		}
		c, err := one("context", text, found, func(c backend.Context) Match { return Match{ID: shown(c.ID, text)} })
		if err != nil {
			return nil, err
		}
		if c != nil {
			return r.store.Context(ctx, c.ID)
		}
	}
	return nil, nil
}

// spanByID returns the span that text is the address of, in full or shortened: the
// beginning or end of the run's id, a slash, the place in it.
func (r *Resolver) spanByID(ctx context.Context, text string) (lineage.SpanRef, bool, error) {
	text = WithoutThread(text)
	if ref, err := structure.ParseSpanRef(text); err == nil && !ref.IsZero() {
		_, err := r.store.Span(ctx, ref)
		if isNotFound(err) {
			return ref, false, nil
		}
		if err != nil {
			return ref, false, err
		}
		sees, err := r.Sees(ctx, ref)
		return ref, sees, err
	}
	short, place, found := strings.Cut(text, "/")
	seq, err := strconv.ParseUint(place, 10, 64)
	if !found || err != nil || seq == 0 || !isShort(short) {
		return lineage.SpanRef{}, false, nil
	}
	run, err := r.runByID(ctx, strings.ToLower(short), seq)
	if err != nil || run == nil {
		return lineage.SpanRef{}, false, err
	}
	ref := lineage.SpanRef{Run: *run, Seq: seq}
	sees, err := r.Sees(ctx, ref)
	return ref, sees, err
}

// WithoutThread returns the address of a span without the thread that chat stores prepend. Other ids are returned
// unchanged.
func WithoutThread(id string) string {
	thread, address, found := strings.Cut(id, "/")
	if !found {
		return id
	}
	if _, err := structure.ParseID[lineage.ThreadID](thread); err != nil {
		return id
	}
	if ref, err := structure.ParseSpanRef(address); err != nil || ref.IsZero() {
		return id
	}
	return address
}

// ShortAddress returns the form of a span's address that is shown to people. Other ids are returned unchanged.
func ShortAddress(id string) string {
	ref, err := structure.ParseSpanRef(id)
	if err != nil || ref.IsZero() {
		return id
	}
	return ShortSpan(ref)
}

// runByID returns the run that short stands for, among those that have a place seq. Runs of the current thread take
// precedence.
func (r *Resolver) runByID(ctx context.Context, short string, seq uint64) (*structure.RunID, error) {
	wanted := func(run structure.RunID) bool { return matches(run, short) }
	scopes := []iter.Seq2[backend.Extent, error]{r.extents(ctx, wanted)}
	if r.thread != nil {
		scopes = []iter.Seq2[backend.Extent, error]{r.threadExtents(ctx, wanted), r.extents(ctx, wanted)}
	}
	for _, extents := range scopes {
		found, err := fitting(extents, func(e backend.Extent) bool { return seq <= e.Last })
		if err != nil {
			return nil, err
		}
		e, err := one("message", fmt.Sprintf("%s/%d", short, seq), found, func(e backend.Extent) Match {
			return Match{ID: fmt.Sprintf("%s/%d", shown(e.Run.ID, short), seq)}
		})
		if err != nil {
			return nil, err
		}
		if e != nil {
			return &e.Run.ID, nil
		}
	}
	return nil, nil
}

// threadExtents yields the runs in the histories of the current thread's contexts that are wanted, each once.
func (r *Resolver) threadExtents(ctx context.Context, wanted func(structure.RunID) bool) iter.Seq2[backend.Extent, error] {
	return func(yield func(backend.Extent, error) bool) {
		reach := make(backend.Reach)
		if err := reach.FollowContexts(ctx, r.view, r.thread.ID()); err != nil {
			yield(backend.Extent{}, err)
			return
		}
		for _, e := range reach.Extents() {
			if !wanted(e.Run.ID) {
				continue
			}
			var err error
			if r.allows == nil {
				var last lineage.SpanRef
				last, err = r.view.Last(ctx, e.Run.ID)
				e.Last = last.Seq
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
