package embedded

import (
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// filter takes out of a commit what is dead: dropped records become nil, some are
// replaced. The records themselves are not changed. It is a function of the commit
// and the set; of a commit that was filtered it takes nothing more.
//
// What stays can be replayed by itself, with or without what was taken from earlier
// commits: whatever a live record needs lives, and deletions stay, for those that
// follow the feed and have seen what they delete.
// It reports whether it took anything.
func (l *liveSet) filter(c *structure.Commit, t *collected) (changed bool) {
	if c.Number > l.until {
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

// leave filters a commit and removes the records that became nil; a nil set leaves all.
func (l *liveSet) leave(c *structure.Commit) {
	if l == nil || !l.filter(c, new(collected)) {
		return
	}
	c.Records = slices.DeleteFunc(c.Records, func(r structure.Record) bool { return r == nil })
	if len(c.Records) == 0 {
		c.Records = nil // as it is decoded
	}
}

// record returns what stays of a record: itself, another, or nil.
func (l *liveSet) record(c *structure.Commit, i int, r structure.Record) structure.Record {
	lives := true
	switch r := r.(type) {
	case *structure.Block:
		return l.blockRecord(c, i, r)
	case *structure.Chunk:
		lives = l.chunk(r.Key)
	case *structure.Thread:
		lives = l.thread(r.ID, c, i)
	case *structure.Context:
		return l.contextRecord(c, i, r)
	case *structure.Tip:
		return l.tipRecord(c, i, r)
	case *structure.Run:
		lives = has(l.runs, r.ID)
	case *structure.Cut:
		lives = has(l.runs, r.Run)
	case *structure.Span:
		if run := l.runs[r.Ref.Run]; run.cut() && r.Ref.Seq == run.end {
			return &structure.Cut{Run: r.Ref.Run}
		}
		lives = l.span(r.Ref)
	case *structure.SpanSet:
		lives = has(l.sets, r.ID)
	case *structure.Branch:
		lives = l.thread(r.Thread, c, i) && l.context(r.Context, c, i)
	case *structure.Checkpoint:
		lives = has(l.checkpoints, r.ID) && l.span(r.Span)
	case *structure.Summary:
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

// blockRecord leaves of a block that was erased, or that was erased once and
// stored again, what describes it: histories that used it meet that.
func (l *liveSet) blockRecord(c *structure.Commit, i int, b *structure.Block) structure.Record {
	if !l.block(b.ID) {
		return nil
	}
	if b.Gone() {
		return b
	}
	commit, again := l.stored[b.ID]
	counts := !again || commit == c.Number && !storedLater(c, i, b.ID)
	if b.Size > 0 && (has(l.erased, b.ID) || !counts) { // an empty one has no bytes to lose
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

// thread reports whether what record i says of a thread is said of one that lives,
// and not of an earlier one of the same id.
func (l *liveSet) thread(id structure.ThreadID, c *structure.Commit, i int) bool {
	return has(l.threads, id) && !pastLife(l.deletedThreads, id, c, i, func(d *structure.Deletion) bool {
		return d.Subject == structure.KindThread && d.Thread == id
	})
}

// context is thread for contexts.
func (l *liveSet) context(id structure.ContextID, c *structure.Commit, i int) bool {
	return has(l.contexts, id) && !pastLife(l.deletedContexts, id, c, i, func(d *structure.Deletion) bool {
		return d.Subject == structure.KindContext && d.Context == id
	})
}

// pastLife reports whether something is deleted behind record i of a commit.
func pastLife[K comparable](deleted map[K]uint64, id K, c *structure.Commit, i int, deletes func(*structure.Deletion) bool) bool {
	commit, again := deleted[id]
	if !again || commit != c.Number {
		return again && commit > c.Number
	}
	return slices.ContainsFunc(c.Records[i+1:], func(r structure.Record) bool {
		d, ok := r.(*structure.Deletion)
		return ok && deletes(d)
	})
}

func (l *liveSet) contextRecord(c *structure.Commit, i int, r *structure.Context) structure.Record {
	if !l.context(r.ID, c, i) || !r.Thread.IsZero() && !l.thread(r.Thread, c, i) {
		return nil
	}
	if l.span(r.Tip) {
		return r
	}
	own := *r
	own.Tip = l.clamp(r.Tip)
	return &own
}

// tipRecord keeps a context from standing at a span that is gone: it stood as far
// as its history is left.
func (l *liveSet) tipRecord(c *structure.Commit, i int, r *structure.Tip) structure.Record {
	if !l.context(r.Context, c, i) {
		return nil
	}
	if l.span(r.Span) {
		return r
	}
	return &structure.Tip{Context: r.Context, Span: l.clamp(r.Span)}
}

// deletion keeps what those who follow the feed need to know, without the names
// in threads that were deleted themselves.
func (l *liveSet) deletion(d *structure.Deletion, c *structure.Commit, i int) bool {
	switch d.Subject {
	case structure.KindBranch, structure.KindCheckpoint:
		return l.thread(d.Thread, c, i)
	case structure.KindSummary:
		return l.context(d.Context, c, i)
	}
	return true
}

// collected counts what a filter takes out.
type collected struct {
	records, spans, blocks, chunks, erased, bytes uint64
}

func (t *collected) addTo(r *backend.CollectReport) {
	r.Records += t.records
	r.Spans += t.spans
	r.Blocks += t.blocks
	r.Chunks += t.chunks
	r.Erased += t.erased
	r.Bytes += t.bytes
}

func (t *collected) count(was, is structure.Record) {
	if is == nil {
		t.records++
	}
	switch r := was.(type) {
	case *structure.Span:
		t.spans++
	case *structure.Chunk:
		t.chunks++
		t.bytes += uint64(len(r.Bytes))
	case *structure.Block:
		if is == nil {
			t.blocks++
		} else {
			t.erased++
		}
		t.bytes += uint64(len(r.Body))
	}
}
