package refs

import (
	"context"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// maxThreads bounds how many names of chats are looked at for suggestions.
const maxThreads = 20_000

// Thread returns the thread that a name stands for: its id of its maker's choice,
// its id or the beginning or end of that, or its title.
func (r *Resolver) Thread(ctx context.Context, text string) (*lineage.Thread, error) {
	t, err := r.threadNamed(ctx, text)
	if t != nil || err != nil {
		return t, err
	}
	names, err := r.threadNames(ctx)
	if err != nil {
		return nil, err
	}
	return nil, &UnknownError{Kind: "chat", Text: text, Near: Nearest(text, names)}
}

// threadNamed is Thread, with nil for a name that stands for none.
func (r *Resolver) threadNamed(ctx context.Context, text string) (*lineage.Thread, error) {
	if text == "" {
		return nil, nil
	}
	t, err := r.store.FindThread(ctx, text)
	if err == nil || !isNotFound(err) {
		return t, err
	}
	if id, err := structure.ParseID[lineage.ThreadID](text); err == nil {
		t, err := r.store.Thread(ctx, id)
		if isNotFound(err) {
			return nil, nil
		}
		return t, err
	}
	short := strings.ToLower(text)
	var byID, byTitle []*structure.Thread
	for t, err := range r.engine.Threads(ctx, structure.ThreadID{}) {
		if err != nil {
			return nil, err
		}
		switch {
		case isShort(text) && matches(t.ID, short):
			byID = append(byID, t)
		case strings.EqualFold(t.Title, text):
			byTitle = append(byTitle, t)
		}
	}
	for _, found := range [][]*structure.Thread{byTitle, byID} {
		t, err := one("chat", text, found, func(t *structure.Thread) Match { return Match{ID: shown(t.ID, text), Title: t.Title} })
		if err != nil {
			return nil, err
		}
		if t != nil {
			return r.store.Thread(ctx, (*t).ID)
		}
	}
	return nil, nil
}

func (r *Resolver) threadNames(ctx context.Context) ([]string, error) {
	var names []string
	for t, err := range r.engine.Threads(ctx, structure.ThreadID{}) {
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
