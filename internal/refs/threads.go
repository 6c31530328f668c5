package refs

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// maxThreads bounds how many names of threads are looked at for suggestions.
const maxThreads = 20_000

// Thread returns the thread that a name stands for: the id that its creator chose, its id
// or the short form of that, its title, or the beginning or end of its id. For a beginning
// it looks at all threads.
func (r *Resolver) Thread(ctx context.Context, text string) (*lineage.Thread, error) {
	t, err := r.threadNamed(ctx, text)
	if t != nil || err != nil {
		return t, err
	}
	names, err := r.threadNames(ctx)
	if err != nil {
		return nil, err
	}
	return nil, Unknown("thread", text, names)
}

// threadNamed is Thread, with nil for a name that stands for none.
func (r *Resolver) threadNamed(ctx context.Context, text string) (*lineage.Thread, error) {
	if text == "" {
		return nil, nil
	}
	t, err := orNone(r.store.FindThread(ctx, text))
	if t != nil && err == nil {
		t, err = r.allowedThread(ctx, t.ID())
	}
	if t != nil || err != nil {
		return t, err
	}
	if id, err := structure.ParseID[lineage.ThreadID](text); err == nil {
		return r.allowedThread(ctx, id)
	}
	for _, find := range []func(context.Context, string) ([]*structure.Thread, error){r.threadsEnding, r.threadsTitled, r.threadsLike, r.threadsShown} {
		found, err := find(ctx, text)
		if err != nil {
			return nil, err
		}
		t, err := one("thread", text, found, func(t *structure.Thread) Match { return Match{ID: shown(t.ID, text), Title: t.Title} })
		if err != nil {
			return nil, err
		}
		if t != nil {
			return r.store.Thread(ctx, (*t).ID)
		}
	}
	return nil, nil
}

// threadsEnding returns threads whose ids end with text, if that has all of the short form
// of an id. It looks at no other thread.
func (r *Resolver) threadsEnding(ctx context.Context, text string) ([]*structure.Thread, error) {
	text = strings.ToLower(text)
	if !isShort(text) || len(text) < shortLength {
		return nil, nil
	}
	var end [backend.IDEnd]byte
	if _, err := hex.Decode(end[:], []byte(text[len(text)-shortLength:])); err != nil {
		return nil, nil // it has a hyphen there
	}
	return fitting(r.view.ThreadsEnding(ctx, end), func(t *structure.Thread) bool {
		return strings.HasSuffix(t.ID.String(), text) && r.mayRead(t)
	})
}

// threadsTitled returns threads that have text as their title, in upper or lower case.
func (r *Resolver) threadsTitled(ctx context.Context, text string) ([]*structure.Thread, error) {
	title := backend.FoldCase(text)
	listed, err := fitting(r.view.ListThreads(ctx, backend.ThreadQuery{TitlePrefix: text}), func(l backend.ThreadListing) bool {
		return backend.FoldCase(l.Title) == title && r.mayRead(l.Thread)
	})
	var found []*structure.Thread
	for _, l := range listed {
		found = append(found, l.Thread)
	}
	return found, err
}

// threadsLike returns threads whose ids text abbreviates otherwise than by their short form.
// It looks at all threads.
func (r *Resolver) threadsLike(ctx context.Context, text string) ([]*structure.Thread, error) {
	text = strings.ToLower(text)
	if !isShort(text) {
		return nil, nil
	}
	return fitting(r.threads(ctx), func(t *structure.Thread) bool { return matches(t.ID, text) })
}

// threadsShown returns threads that are shown under a title: mostly by their first words. It looks at
// all threads, and at the first messages of those that have no title.
func (r *Resolver) threadsShown(ctx context.Context, text string) (found []*structure.Thread, err error) {
	for t, err := range r.threads(ctx) {
		if err != nil {
			return nil, err
		}
		title, err := r.store.ShownTitle(ctx, lineage.ThreadInfo{Title: t.Title, SourceID: t.SourceID, Active: t.Active})
		if err != nil {
			return nil, err
		}
		if !isTitle(title, text) {
			continue
		}
		listed := *t
		listed.Title = title
		if found = append(found, &listed); len(found) > maxMatches {
			break
		}
	}
	return found, nil
}

// isTitle reports whether text is a title as it is shown, in upper or lower case, also where its end
// is cut off.
func isTitle(title, text string) bool {
	title, text = backend.FoldCase(plain.Line(title)), backend.FoldCase(plain.Line(text))
	start, cut := strings.CutSuffix(text, "…")
	return text != "" && (title == text || cut && start != "" && strings.HasPrefix(title, start))
}

func (r *Resolver) threadNames(ctx context.Context) ([]string, error) {
	var names []string
	for t, err := range r.threads(ctx) {
		if err != nil {
			return nil, err
		}
		names = append(names, t.SourceID, t.Title, Short(t.ID))
		if len(names) >= 3*maxThreads {
			break
		}
	}
	return names, nil
}
