package bundle

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// WriteOptions select the content of a bundle. The zero value selects everything.
type WriteOptions struct {
	// Threads are included with all their contexts. Contexts are included without the other contexts of their thread.
	// If both are empty, everything is included.
	Threads  []structure.ThreadID
	Contexts []structure.ContextID
	// Have, when not nil, lists what the other store has. The bundle omits it.
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
	// Erased counts erased blocks, of which the bundle has only a description.
	Erased uint64 `json:"erased"`
	// Left counts omitted blocks and chunks.
	Left  uint64 `json:"left"`
	Bytes int64  `json:"bytes"`
}

// exporter writes a bundle. It keeps the ids of what it has written in memory.
type exporter struct {
	ctx    context.Context
	from   backend.Reader
	out    *writer
	o      WriteOptions
	report WriteReport
	seed   maphash.Seed

	// Ids of what was written or omitted.
	written  map[prefix]uint64          // content, with the hash of its defaults
	runs     map[structure.RunID]uint64 // last place of each run
	sets     map[structure.SpanSetID]bool
	threads  map[structure.ThreadID]bool
	contexts map[structure.ContextID]bool // contexts and remnants

	chosen map[structure.ContextID]bool // nil for all
	busy   map[structure.RunID]bool     // runs of which a piece is being written

	// Records for the next entries.
	pending       write.Batch // a history
	pendingRuns   map[structure.RunID]bool
	facts         write.Batch
	pendingValues write.Batch
	single        write.Batch // for commit
	encoder       structure.Encoder
}

// commit writes records as one entry, with times relative to t.
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

// addAfter adds records to an entry that must follow the history that they refer to. at is the time of the entry, if
// this starts it.
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
