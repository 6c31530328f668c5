package search

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// settle updates threads, contexts, checkpoints, summaries and erased content to their state in the snapshot.
func (f *writer) settle(ctx context.Context) error {
	if err := f.Settle(ctx); err != nil {
		return err
	}
	if err := f.settleContents(ctx); err != nil { // adds changed summaries
		return err
	}
	for id, change := range f.Changes.Contexts {
		if change.Stated || change.Summarized {
			if err := f.settleSummaries(ctx, id); err != nil {
				return err
			}
		}
	}
	return f.Reach(ctx)
}

// settleContents updates content that was erased or stored again.
func (f *writer) settleContents(ctx context.Context) error {
	if f.erased {
		for _, id := range f.Changes.Stored {
			var exists int
			was, err := f.Get(ctx, `SELECT 1 FROM erased WHERE id = ?`, []any{id[:]}, &exists)
			if err != nil {
				return err
			}
			if was {
				f.Changes.Erased[id] = true
			}
		}
	}
	for id := range f.Changes.Erased {
		if err := f.settleContent(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// settleSummaries stores the summaries of a context. Each is a run with one step that the context
// sees.
func (f *writer) settleSummaries(ctx context.Context, id structure.ContextID) error {
	owner := searched.SummariesOf(id)
	if err := f.MoveAll(ctx, `SELECT run FROM tips WHERE of = ?`, owner); err != nil {
		return err
	}
	if err := f.Exec(ctx, `DELETE FROM tips WHERE of = ?`, owner); err != nil {
		return err
	}
	c, err := f.Context(ctx, id)
	if derivedfile.IsGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for r, err := range f.Snapshot.Summaries(ctx, id) {
		if err != nil {
			return err
		}
		key := searched.SummaryKey(id, r.ID)
		run, err := f.addSummary(ctx, key, r)
		if err != nil {
			return err
		}
		if err := f.See(ctx, key, c.Thread, run, 1, owner); err != nil {
			return err
		}
	}
	return nil
}

// addSummary returns the number of the run of a summary.
func (f *writer) addSummary(ctx context.Context, key []byte, r *structure.Summary) (n int64, err error) {
	found, err := f.Get(ctx, `SELECT number FROM runs WHERE id = ?`, []any{key}, &n)
	if err == nil && !found {
		if n, err = f.NewRun(ctx, key, 0, 0, 0); err == nil {
			err = f.Exec(ctx, `UPDATE runs SET last = 1 WHERE number = ?`, n)
		}
	}
	if err != nil {
		return 0, err
	}
	at := usage{run: n, seq: 1}
	if at.role, err = f.roleNumber(ctx, role{kind: searched.Summary}); err != nil {
		return 0, err
	}
	b, err := searched.BlockIn(ctx, f.Snapshot, r.Content)
	if b == nil {
		return n, err
	}
	text, err := f.indexed(ctx, searched.TextOf(r.Content, form.Plain), func() (string, error) { return searched.ReadText(ctx, f.Snapshot, searched.Summary, b, form.Plain) })
	if err != nil {
		return 0, err
	}
	return n, f.use(ctx, at, text)
}

// settleContent removes erased texts from the index, and adds those that were stored again.
func (f *writer) settleContent(ctx context.Context, id [32]byte) error {
	b, err := searched.BlockIn(ctx, f.Snapshot, id)
	if err != nil {
		return err
	}
	if err := f.Exec(ctx, `DELETE FROM erased WHERE id = ?`, id[:]); err != nil {
		return err
	}
	for _, r := range searched.Readings {
		textID := searched.TextOf(id, r)
		var text int64
		if found, err := f.Get(ctx, `SELECT number FROM texts WHERE id = ?`, []any{textID[:]}, &text); err != nil || !found {
			if err != nil {
				return err
			}
			continue
		}
		if err := f.Exec(ctx, `DELETE FROM terms WHERE rowid = ?`, text); err != nil {
			return err
		}
		if err := f.forget(ctx, text); err != nil {
			return err
		}
		if b == nil {
			continue
		}
		body, err := searched.ReadText(ctx, f.Snapshot, structure.PartUsage, b, r)
		if err != nil {
			return err
		}
		terms, _ := f.terms(body)
		if err := f.Exec(ctx, `INSERT INTO terms (rowid, words) VALUES (?, ?)`, text, terms); err != nil {
			return err
		}
		if err := f.pend(ctx, textID, text); err != nil {
			return err
		}
	}
	if b == nil {
		return f.Exec(ctx, `INSERT INTO erased VALUES (?)`, id[:])
	}
	return f.restore(ctx, id)
}

// restore adds the usages of content that was stored again, including those added while it was
// erased, and has all summaries read again, because they may have such content.
func (f *writer) restore(ctx context.Context, id [32]byte) error {
	for u, err := range f.Snapshot.Where(ctx, id) {
		if err != nil {
			return err
		}
		run, err := f.Indexed(ctx, u.Span.Run)
		if err != nil {
			return err
		}
		if run == 0 {
			continue
		}
		for step, err := range f.Snapshot.Path(ctx, u.Span, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
			if err != nil {
				return err
			}
			blocks := make(map[content.ID]*structure.Block, len(step.Blocks))
			for _, b := range step.Blocks {
				blocks[b.ID] = b
			}
			if err := f.addUsages(ctx, run, step.Span, blocks); err != nil {
				return err
			}
		}
	}
	return f.resummarize(ctx)
}

// resummarize marks the summaries of all contexts as changed.
func (f *writer) resummarize(ctx context.Context) error {
	all, err := f.Blobs(ctx, `SELECT DISTINCT of FROM tips WHERE of >= ? AND of < ?`, []byte{searched.OfSummary}, []byte{searched.OfSummary + 1})
	for _, owner := range all {
		id, ok := searched.SummarizedIn(owner)
		if !ok {
			return fmt.Errorf("summaries of context %x: %w", owner, derivedfile.ErrUseless)
		}
		f.Changes.Context(id, derived.ContextChange{Summarized: true})
	}
	return err
}
