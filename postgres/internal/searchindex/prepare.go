package searchindex

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// prepare reads what the window needs.
func (w *indexUpdate) prepare(ctx context.Context) error {
	w.blocks, w.homes, w.runs = make(map[content.ID]*structure.Block), make(map[structure.ThreadID]structure.Home), make(map[string]int64)
	w.lasts, w.restored, w.sources = make(map[string]uint64), make(map[content.ID]bool), make(map[searched.TextID]text)
	w.tips.init()
	for _, c := range w.feed.Commits {
		for _, r := range c.Records {
			switch r := r.(type) {
			case *structure.Block:
				w.blocks[r.ID] = r
			case *structure.Run:
				w.next.runs++
				found := newRun{key: string(r.ID[:]), after: r.Parent.Seq, home: r.Home}
				if !r.Parent.IsZero() {
					found.parent = string(r.Parent.Run[:])
				}
				w.runs[found.key] = w.next.runs
				w.created = append(w.created, found)
				w.threads.saw(r.Home.Thread)
			case *structure.Thread:
				w.threads.saw(r.ID)
			case *structure.Span:
				w.next.spans++
				w.spans = append(w.spans, r)
				w.lasts[string(r.Ref.Run[:])] = r.Ref.Seq
			}
		}
	}
	for _, step := range []func(context.Context) error{
		w.settleContents, w.settleThreads, w.settleContexts, w.settleCheckpoints, w.settleSummaries, w.findRuns, w.mentionSpans, w.findNew,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if len(w.gone) > 0 { // a term may lose its number, and get another one later
		w.next.generation = rand.Int64()
	}
	return nil
}

// mentionSpans finds what is indexed of the steps.
func (w *indexUpdate) mentionSpans(ctx context.Context) error {
	if err := w.fetchBlocks(ctx); err != nil {
		return err
	}
	for _, s := range w.spans {
		run := string(s.Ref.Run[:])
		if w.runs[run] == 0 { // of a later window
			continue
		}
		_ = searched.Mentions(s, func(m searched.Mention) error {
			id, from := searched.TextID{}, text{name: m.Name}
			if m.Name != "" {
				id = searched.TextOfName(m.Name)
			} else {
				b := w.blocks[m.Usage.Content]
				if b == nil { // erased or collected
					return nil
				}
				r := searched.ReadingOf(m.Usage, b)
				if r == form.Unread {
					return nil
				}
				id, from = searched.TextOf(m.Usage.Content, r), text{content: m.Usage.Content, kind: m.Usage.Kind}
			}
			w.mention(mention{id, run, s.Ref.Seq, m.Head, m.Kind, m.Role}, from)
			return nil
		})
	}
	return nil
}

// Limits of one read of blocks, and of a body that is kept until its text is needed.
const (
	mostBlocks = 200
	mostKept   = 4 << 10
)

// fetchBlocks reads the blocks that the steps use and the window does not have. Those that are gone are nil.
func (w *indexUpdate) fetchBlocks(ctx context.Context) error {
	var missing []content.ID
	for _, s := range w.spans {
		for i := range s.Usages {
			id := s.Usages[i].Content
			if b, known := w.blocks[id]; !known || b != nil && !searched.HasBody(b) {
				w.blocks[id] = nil
				missing = append(missing, id)
			}
		}
	}
	for len(missing) > 0 {
		batch := missing[:min(len(missing), mostBlocks)]
		missing = missing[len(batch):]
		blocks, err := w.feed.State.Blocks(ctx, batch)
		if errors.Is(err, backend.ErrErased) || errors.Is(err, backend.ErrNotFound) {
			blocks = blocks[:0]
			for _, id := range batch {
				b, err := searched.BlockIn(ctx, w.feed.State, id)
				if err != nil {
					return err
				}
				blocks = append(blocks, b)
			}
			err = nil
		}
		if err != nil {
			return err
		}
		for i, b := range blocks {
			if b != nil && len(b.Body) > mostKept {
				described := *b
				described.Body = nil
				b = &described
			}
			w.blocks[batch[i]] = b
		}
	}
	return nil
}
