package bundle

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// WriteOptions choose the content of a bundle. The zero value chooses everything.
type WriteOptions struct {
	// Threads are included with all their contexts, Contexts without the others of their
	// thread. If both are empty, everything is included.
	Threads  []structure.ThreadID
	Contexts []structure.ContextID
	// Have, when not nil, lists what the other store has, which is left out.
	Have *Inventory
	// Progress, when not nil, is called from time to time with the number of spans written.
	Progress func(spans uint64)
}

// WriteReport counts what was written.
type WriteReport struct {
	Threads  uint64 `json:"threads"`
	Contexts uint64 `json:"contexts"`
	Spans    uint64 `json:"spans"`
	Blocks   uint64 `json:"blocks"`
	Chunks   uint64 `json:"chunks"`
	Values   uint64 `json:"values"`
	// Erased counts erased blocks, which have only a description.
	Erased uint64 `json:"erased"`
	// Left counts the blocks and chunks that were left out.
	Left  uint64 `json:"left"`
	Bytes int64  `json:"bytes"`
}

// exporter writes a bundle. Of what was written it keeps ids in memory.
type exporter struct {
	ctx    context.Context
	from   backend.Reader
	out    *writer
	o      WriteOptions
	report WriteReport
	seed   maphash.Seed

	// What was written, or left out.
	written  map[prefix]uint64          // content, with the hash of its defaults
	runs     map[structure.RunID]uint64 // the last place of each
	sets     map[structure.SpanSetID]bool
	threads  map[structure.ThreadID]bool
	contexts map[structure.ContextID]bool // and remnants

	chosen map[structure.ContextID]bool // nil for all
	busy   map[structure.RunID]bool     // of which a piece is being written

	// Records for the next entries.
	pending       write.Batch // a history
	pendingRuns   map[structure.RunID]bool
	facts         write.Batch
	pendingValues write.Batch
	single        write.Batch // for commit
	encoder       structure.Encoder
}

// commit writes records as an entry, with times relative to t.
func (e *exporter) commit(tag byte, t time.Time, records ...structure.Record) error {
	e.single.Reset(t)
	e.single.Adopt(records...)
	return e.flush(tag, &e.single)
}

// flush writes a batch as an entry and empties it.
func (e *exporter) flush(tag byte, b *write.Batch) error {
	if empty(b) {
		return nil
	}
	encoded, err := b.Encode(&e.encoder)
	if err != nil {
		return err
	}
	if b.Reset(time.Time{}); b == &e.pending {
		clear(e.pendingRuns)
	}
	return e.out.entry(tag, encoded)
}

// addAfter adds records to an entry that follows the history which they refer to. at is the time of a new one.
func (e *exporter) addAfter(tag byte, to *write.Batch, at time.Time, records ...structure.Record) error {
	if full(to) {
		if err := e.flushAfter(tag, to); err != nil {
			return err
		}
	}
	if empty(to) {
		to.Reset(at)
	}
	to.Adopt(records...)
	return nil
}

// flushAfter writes an entry after the pending history.
func (e *exporter) flushAfter(tag byte, b *write.Batch) error {
	if err := e.flush(entryHistory, &e.pending); err != nil {
		return err
	}
	return e.flush(tag, b)
}

func (e *exporter) lookup() structure.RunLookup { return backend.Runs(e.ctx, e.from) }
