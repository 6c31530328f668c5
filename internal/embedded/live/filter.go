package live

import (
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Filter removes dead records from a commit. Dropped records become nil, and some are replaced. The records
// themselves are not changed. The result depends only on the commit and the set, and filtering again changes nothing.
// Filter reports whether it changed anything.
//
// The result can be replayed whether or not earlier commits were filtered, because live records refer only to live
// ones. Deletions are kept for followers of the feed that have seen the deleted records.
func (l *Set) Filter(c *structure.Commit, t *Removed) (changed bool) {
	if c.Number > l.Until {
		return false
	}
	var later replaced
	for i, r := range slices.Backward(c.Records) {
		if r == nil {
			continue
		}
		kept := l.record(c, i, r)
		if v, ok := kept.(*structure.Value); ok && later.is(v) {
			kept = nil
		}
		if kept != r {
			t.count(r, kept)
			c.Records[i], changed = kept, true
		}
	}
	return changed
}

// Strip filters a commit and removes the nil records. A nil set removes nothing.
func (l *Set) Strip(c *structure.Commit) {
	if l == nil || !l.Filter(c, new(Removed)) {
		return
	}
	c.Records = slices.DeleteFunc(c.Records, func(r structure.Record) bool { return r == nil })
	if len(c.Records) == 0 {
		c.Records = nil // as the decoder returns it
	}
}

// FilterEncoded filters an encoded commit, and adds what it removed to a report. It returns the same bytes if nothing is dead.
func (l *Set) FilterEncoded(number uint64, payload []byte, r *backend.CollectReport) (filtered []byte, changed bool, err error) {
	if number > l.Until {
		return payload, false, nil
	}
	c, err := structure.DecodeCommit(payload)
	if err != nil {
		return payload, false, fmt.Errorf("commit %d: %w", number, err)
	}
	c.Number = number
	var removed Removed
	if !l.Filter(c, &removed) {
		return payload, false, nil
	}
	c.Records = slices.DeleteFunc(c.Records, func(r structure.Record) bool { return r == nil })
	var encoder structure.Encoder
	filtered, _, err = encoder.Encode(c)
	if err != nil {
		return payload, false, fmt.Errorf("commit %d: %w", number, err)
	}
	removed.AddTo(r)
	return filtered, true, nil
}

// record returns the filtered record: the same, a replacement, or nil.
func (l *Set) record(c *structure.Commit, i int, r structure.Record) structure.Record {
	lives := true
	switch r := r.(type) {
	case *structure.Block:
		return l.blockRecord(c, i, r)
	case *structure.Chunk:
		lives = l.Chunk(r.Key)
	case *structure.Thread:
		lives = l.thread(r.ID, c, i)
	case *structure.Context:
		return l.contextRecord(c, i, r)
	case *structure.Remnant:
		lives = l.remnant(r.ID, c, i)
	case *structure.Tip:
		return l.tipRecord(c, i, r)
	case *structure.Run:
		lives = has(l.runs, r.ID)
	case *structure.Cut:
		lives = has(l.runs, r.Run)
	case *structure.Span:
		if run := l.runs[r.Ref.Run]; run.Cut() && r.Ref.Seq == run.End {
			return &structure.Cut{Run: r.Ref.Run}
		}
		lives = l.Span(r.Ref)
	case *structure.SpanSet:
		lives = has(l.sets, r.ID)
	case *structure.Branch:
		lives = l.thread(r.Thread, c, i) && l.context(r.Context, c, i)
	case *structure.Checkpoint:
		lives = has(l.checkpoints, r.ID) && l.Span(r.Span)
	case *structure.Summary:
		if has(l.summaries, r.ID) && has(l.erased, r.Content) {
			return r.WithoutEmbedding()
		}
		lives = has(l.summaries, r.ID)
	case *structure.Reflog:
		first, any := l.reflog[r.Context]
		lives = l.context(r.Context, c, i) && any && c.Number >= first && c.Number > l.cutReflog[r.Context]
	case *structure.Deletion:
		lives = l.deletion(r, c, i)
	case *structure.Value:
		return l.valueRecord(c, i, r)
	}
	if lives {
		return r
	}
	return nil
}

// blockRecord keeps the description of a block that was erased, even if it was stored
// again later: histories refer to it.
func (l *Set) blockRecord(c *structure.Commit, i int, b *structure.Block) structure.Record {
	if !l.Block(b.ID) {
		return nil
	}
	if b.Gone() {
		return b
	}
	commit, stored := l.stored[b.ID]
	counts := !stored || commit == c.Number && !storedLater(c, i, b.ID)
	if b.Size > 0 && (has(l.erased, b.ID) || !counts) { // an empty block has no bytes to lose
		return structure.Described(b.Block)
	}
	return b
}

func storedLater(c *structure.Commit, i int, id content.ID) bool {
	return slices.ContainsFunc(c.Records[i+1:], func(r structure.Record) bool {
		b, ok := r.(*structure.Block)
		return ok && b.ID == id
	})
}

func (l *Set) contextRecord(c *structure.Commit, i int, r *structure.Context) structure.Record {
	if !l.context(r.ID, c, i) || !r.Thread.IsZero() && !l.thread(r.Thread, c, i) {
		if l.remnant(r.ID, c, i) {
			return r.Remnant()
		}
		return nil
	}
	if l.Span(r.Tip) {
		return r
	}
	own := *r
	own.Tip = l.clamp(r.Tip)
	return &own
}

// tipRecord moves a tip on a dead span back to the last live span before it.
func (l *Set) tipRecord(c *structure.Commit, i int, r *structure.Tip) structure.Record {
	if !l.context(r.Context, c, i) {
		return nil
	}
	if l.Span(r.Span) {
		return r
	}
	return &structure.Tip{Context: r.Context, Span: l.clamp(r.Span)}
}

// deletion reports whether a deletion is kept for followers of the feed. Deletions of names in deleted threads are
// not kept.
func (l *Set) deletion(d *structure.Deletion, c *structure.Commit, i int) bool {
	switch d.Subject {
	case structure.KindBranch, structure.KindCheckpoint:
		return l.thread(d.Thread, c, i)
	case structure.KindSummary:
		return l.context(d.Context, c, i)
	}
	return true
}

// Removed counts what a filter removes.
type Removed struct {
	records, spans, blocks, chunks, erased, bytes uint64
}

func (t *Removed) AddTo(r *backend.CollectReport) {
	r.Records += t.records
	r.Spans += t.spans
	r.Blocks += t.blocks
	r.Chunks += t.chunks
	r.Erased += t.erased
	r.Bytes += t.bytes
}

func (t *Removed) count(was, now structure.Record) {
	if now == nil {
		t.records++
	}
	switch r := was.(type) {
	case *structure.Span:
		t.spans++
	case *structure.Chunk:
		t.chunks++
		t.bytes += uint64(len(r.Bytes))
	case *structure.Block:
		if now == nil {
			t.blocks++
		} else {
			t.erased++
		}
		t.bytes += uint64(len(r.Body))
	case *structure.Summary:
		t.bytes += uint64(len(r.Embedding))
	}
}
