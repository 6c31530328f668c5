package refs

import (
	"context"
	"encoding/hex"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/internal/pages"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// maxThreads is how many names of threads are considered for suggestions.
const maxThreads = 20_000

// Thread returns the thread that a name stands for: the id that its creator chose, its id
// or the short form of that, its title, or the beginning or end of its id. For a beginning
// it looks at all threads.
func (r *Resolver) Thread(ctx context.Context, text string) (*lineage.Thread, error) {
	t, err := r.threadNamed(ctx, text)
	if t != nil || err != nil {
		return t, err
	}
	names, err := r.threadNames(ctx, true)
	if err != nil {
		return nil, err
	}
	return nil, Unknown("thread", text, names)
}

// threadNamed is like Thread, but returns nil for an unknown name.
func (r *Resolver) threadNamed(ctx context.Context, text string) (*lineage.Thread, error) {
	if text == "" {
		return nil, nil
	}
	t, err := orNone(r.find(ctx, text))
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

// threadsEnding returns threads whose ids end with text, if that has at least the length of the short form of an id.
// It reads no other threads.
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

// threadsTitled returns threads with the title text, ignoring case.
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

// threadsLike returns threads whose ids match text in other ways than by the short form. It reads all threads.
func (r *Resolver) threadsLike(ctx context.Context, text string) ([]*structure.Thread, error) {
	text = strings.ToLower(text)
	if !isShort(text) {
		return nil, nil
	}
	return fitting(r.threads(ctx), func(t *structure.Thread) bool { return matches(t.ID, text) })
}

// threadsShown returns threads that are listed under a title; most untitled ones are listed under their first words.
// It reads all threads, and the first messages of those without a title.
func (r *Resolver) threadsShown(ctx context.Context, text string) (found []*structure.Thread, err error) {
	for t, err := range r.threadsWithTitles(ctx) {
		if err != nil {
			return nil, err
		}
		if !isTitle(t.Title, text) {
			continue
		}
		if found = append(found, t); len(found) > maxMatches {
			break
		}
	}
	return found, nil
}

// threadsWithTitles yields the threads that the resolver may use, each with the title under which it is listed.
func (r *Resolver) threadsWithTitles(ctx context.Context) iter.Seq2[*structure.Thread, error] {
	return func(yield func(*structure.Thread, error) bool) {
		for page, err := range pages.Of(r.threads(ctx), threadsAtOnce) {
			var titles []string
			if err == nil {
				infos := make([]lineage.ThreadInfo, len(page))
				for i, t := range page {
					infos[i] = lineage.ThreadInfo{ID: t.ID, Title: t.Title, SourceID: t.SourceID, Active: t.Active}
				}
				titles, err = r.store.ShownTitles(ctx, infos)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i, t := range page {
				listed := *t
				listed.Title = titles[i]
				if !yield(&listed, nil) {
					return
				}
			}
		}
	}
}

// isTitle reports whether text is a title as it is displayed, ignoring case, possibly with its end cut off.
func isTitle(title, text string) bool {
	title, text = backend.FoldCase(plain.Line(title)), backend.FoldCase(plain.Line(text))
	start, cut := strings.CutSuffix(text, "…")
	return text != "" && (title == text || cut && start != "" && strings.HasPrefix(title, start))
}

// threadNames returns names of threads, with the titles under which they are listed if shown is set.
func (r *Resolver) threadNames(ctx context.Context, shown bool) ([]string, error) {
	threads := r.threads(ctx)
	if shown {
		threads = r.threadsWithTitles(ctx)
	}
	var names []string
	for t, err := range threads {
		if err != nil {
			return nil, err
		}
		names = append(names, t.SourceID, plain.Line(t.Title), Short(t.ID))
		if len(names) >= 3*maxThreads {
			break
		}
	}
	return names, nil
}
