package export

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// conversation is what is written under one heading: a thread or a single history.
type conversation struct {
	info lineage.ThreadInfo // only Active is set for a context outside of threads
	tips []tip
	// beside are the tips of logs and fields that an import kept beside the messages.
	beside []lineage.SpanRef
}

// tip is the tip of a context.
type tip struct {
	context *lineage.Context
	ref     lineage.SpanRef
	branch  string // empty for a context without a branch
	active  bool
}

// title returns the title under which a conversation is shown.
func (x *exporter) title(ctx context.Context, c *conversation) (string, error) {
	title, err := x.store.ShownTitle(ctx, c.info)
	return cmp.Or(title, transcript.Untitled), err
}

// conversations yields the conversations in scope. Each thread is read just before its conversation is yielded. If the scope
// names no threads, one that was deleted before it is read is left out.
func (x *exporter) conversations(ctx context.Context) iter.Seq2[*conversation, error] {
	return func(yield func(*conversation, error) bool) {
		if x.o.Scope.Context != nil {
			yield(x.oneContext(ctx, x.o.Scope.Context))
			return
		}
		threads := x.o.Scope.Threads
		if threads == nil {
			var err error
			if threads, err = x.allThreads(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
		for _, t := range threads {
			conv, err := x.oneThread(ctx, t)
			if x.o.Scope.Threads == nil && errors.Is(err, lineage.ErrNotFound) {
				if _, failed := x.store.Thread(ctx, t.ID()); errors.Is(failed, lineage.ErrNotFound) {
					continue
				}
			}
			if !yield(conv, err) {
				return
			}
		}
	}
}

// allThreads returns all threads, oldest first.
func (x *exporter) allThreads(ctx context.Context) ([]*lineage.Thread, error) {
	type dated struct {
		thread *lineage.Thread
		info   lineage.ThreadInfo
	}
	var all []dated
	for r, err := range x.store.View().Threads(ctx, lineage.ThreadID{}) {
		if err != nil {
			return nil, err
		}
		t, err := x.store.Thread(ctx, r.ID)
		if errors.Is(err, lineage.ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, dated{t, lineage.ThreadInfo{ID: r.ID, SourceID: r.SourceID, CreatedAt: r.CreatedAt}})
	}
	slices.SortFunc(all, func(a, b dated) int {
		return cmp.Or(a.info.CreatedAt.Compare(b.info.CreatedAt), strings.Compare(a.info.SourceID, b.info.SourceID),
			bytes.Compare(a.info.ID[:], b.info.ID[:]))
	})
	threads := make([]*lineage.Thread, len(all))
	for i := range all {
		threads[i] = all[i].thread
	}
	return threads, nil
}

func (x *exporter) oneContext(ctx context.Context, c *lineage.Context) (*conversation, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	conv := &conversation{info: lineage.ThreadInfo{Active: c.ID()}, tips: []tip{{context: c, ref: info.Tip, active: true}}}
	if info.Thread != (lineage.ThreadID{}) {
		t, err := x.store.Thread(ctx, info.Thread)
		if err != nil {
			return nil, err
		}
		if conv.info, err = t.Info(ctx); err != nil {
			return nil, err
		}
		conv.info.Active = c.ID()
	}
	return conv, nil
}

// oneThread lists the tips of a thread's contexts: branches first, then unnamed ones, oldest first.
func (x *exporter) oneThread(ctx context.Context, t *lineage.Thread) (*conversation, error) {
	info, err := t.Info(ctx)
	if err != nil {
		return nil, err
	}
	conv := &conversation{info: info}
	branches, err := t.Branches(ctx)
	if err != nil {
		return nil, err
	}
	named := make(map[lineage.ContextID]bool, len(branches))
	for _, b := range branches {
		named[b.Context] = true
		c, err := x.store.Context(ctx, b.Context)
		if err != nil {
			return nil, err
		}
		conv.tips = append(conv.tips, tip{context: c, ref: b.Head, branch: b.Name, active: b.Active})
	}
	for c, err := range t.Contexts(ctx) {
		if err != nil {
			return nil, err
		}
		if named[c.ID()] {
			continue
		}
		about, err := c.Info(ctx)
		if err != nil {
			return nil, err
		}
		if lineage.BesideMessages(about.Metadata) {
			conv.beside = append(conv.beside, about.Tip)
			continue
		}
		conv.tips = append(conv.tips, tip{context: c, ref: about.Tip})
	}
	conv.tips = slices.DeleteFunc(conv.tips, func(t tip) bool { return t.ref.IsZero() })
	return conv, nil
}
