package write

import (
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Batch collects the records of one commit and its expectations. It does no I/O. Engines do not retain the
// memory of a commit, so that batches are reused.
type Batch struct {
	// Options are the durability of the commit and its expectations.
	backend.Options

	commit structure.Commit
	bytes  int
	places bool // see Places

	// Memory for the records that most batches have.
	spans   []structure.Span
	run     structure.Run
	tip     structure.Tip
	context structure.Context
}

// Larger batches are not reused.
const (
	mostKept        = 64
	mostRecordsKept = 1024
)

// Reset empties the batch for a commit at the given time. It keeps the durability.
func (b *Batch) Reset(at time.Time) {
	clear(b.commit.Records)
	clear(b.spans)
	b.commit = structure.Commit{Time: at, Records: b.commit.Records[:0]}
	b.spans, b.bytes, b.places = b.spans[:0], 0, false
	b.run, b.tip, b.context = structure.Run{}, structure.Tip{}, structure.Context{}
	o := &b.Options
	clear(o.Threads)
	clear(o.Contexts)
	b.Options = backend.Options{
		Durability: o.Durability, Tips: o.Tips[:0], Threads: o.Threads[:0], Contexts: o.Contexts[:0],
		Branches: o.Branches[:0], Checkpoints: o.Checkpoints[:0], Sources: o.Sources[:0], Values: o.Values[:0],
	}
}

// Time returns the time of the commit, truncated as in records.
func (b *Batch) Time() time.Time { return Kept(b.commit.Time) }

// Kept returns a time truncated to the precision of records.
func Kept(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Records returns the records of the batch, which the caller must not change.
func (b *Batch) Records() []structure.Record { return b.commit.Records }

// Size returns the number of records, and the bytes of their bodies, metadata and other unbounded fields.
func (b *Batch) Size() (records, bytes int) { return len(b.commit.Records), b.bytes }

// Adopt adds existing records, such as those of another store. They must not be changed before the commit.
func (b *Batch) Adopt(records ...structure.Record) {
	for _, r := range records {
		b.add(r)
	}
}

// Encode returns the commit in the binary form of package structure.
func (b *Batch) Encode(e *structure.Encoder) ([]byte, error) {
	encoded, _, err := e.Encode(&b.commit)
	return encoded, err
}

func (b *Batch) add(r structure.Record) {
	b.commit.Records = append(b.commit.Records, r)
	b.bytes += weight(r)
}

// truncate removes all records after the first n.
func (b *Batch) truncate(n int) {
	for _, r := range b.commit.Records[n:] {
		b.bytes -= weight(r)
	}
	clear(b.commit.Records[n:])
	b.commit.Records = b.commit.Records[:n]
}

func weightOf(o *structure.Overrides) int {
	n := len(o.JSON)
	if o.SystemPrompt != nil {
		n += len(*o.SystemPrompt)
	}
	return n
}

// weight returns the size of a record's unbounded fields.
func weight(r structure.Record) int {
	switch r := r.(type) {
	case *structure.Block:
		return len(r.Body)
	case *structure.Chunk:
		return len(r.Bytes)
	case *structure.Thread:
		return len(r.Metadata)
	case *structure.Value:
		return len(r.JSON)
	case *structure.Context:
		return len(r.Metadata) + weightOf(&r.Overrides)
	case *structure.Remnant:
		return weightOf(&r.Overrides)
	case *structure.Span:
		n := 0
		for i := range r.Usages {
			n += len(r.Usages[i].Metadata)
			for _, extra := range r.Usages[i].Extras {
				n += len(extra)
			}
		}
		return n
	case *structure.Summary:
		return len(r.Embedding)
	}
	return 0
}

// Expect adds the expected head of a context.
func (b *Batch) Expect(id structure.ContextID, tip structure.SpanRef) {
	b.Tips = append(b.Tips, backend.Expect{Context: id, Tip: tip})
}

// ExpectThread adds the expected state of a thread. nil means that it must not exist.
func (b *Batch) ExpectThread(id structure.ThreadID, was *structure.Thread) {
	b.Threads = append(b.Threads, backend.ExpectThread{ID: id, Was: was})
}

// ExpectContext adds the expected state of a context. nil means that it must not exist.
func (b *Batch) ExpectContext(id structure.ContextID, was *structure.Context) {
	b.Contexts = append(b.Contexts, backend.ExpectContext{ID: id, Was: was})
}

// Places declares that the batch expects the spans that it extends, and expects that the source ids of
// messages, the runs and the branch names that it adds do not exist.
func (b *Batch) Places() { b.places = true }

// expectsNone reports whether the batch expects that something of a kind does not exist.
func (b *Batch) expectsNone(subject string) bool {
	switch subject {
	case "source id", "run", "branch", "context":
		if b.places {
			return true
		}
	}
	switch subject {
	case "thread":
		return slices.ContainsFunc(b.Threads, func(e backend.ExpectThread) bool { return e.Was == nil })
	case "context":
		return slices.ContainsFunc(b.Contexts, func(e backend.ExpectContext) bool { return e.Was == nil })
	case "branch":
		return slices.ContainsFunc(b.Branches, func(e backend.ExpectBranch) bool { return e.Was == nil })
	case "checkpoint":
		return slices.ContainsFunc(b.Checkpoints, func(e backend.ExpectCheckpoint) bool { return e.Was == nil })
	case "source id":
		return len(b.Sources) > 0
	case "value":
		return slices.ContainsFunc(b.Values, func(e backend.ExpectValue) bool { return e.Commit == 0 })
	}
	return false
}
