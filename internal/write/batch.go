package write

import (
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Batch collects the records of one commit, and the states that the commit is made for.
// It does no I/O. An engine keeps nothing of a commit's memory, so that of a batch is used
// again.
type Batch struct {
	// Options say how durable the commit is to be, and what must be so just before it.
	backend.Options

	commit structure.Commit
	bytes  int
	places bool // see Places

	// Memory of the records that most batches have.
	spans   []structure.Span
	run     structure.Run
	tip     structure.Tip
	context structure.Context
}

// A batch whose memory has room for no more spans and records than this is used again.
const (
	mostKept        = 64
	mostRecordsKept = 1024
)

// Reset empties the batch, for a commit at a time. Durability stays.
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

// Time returns the time of the commit with the precision that records keep.
func (b *Batch) Time() time.Time { return Kept(b.commit.Time) }

// Kept returns a time with the precision that records keep.
func Kept(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Records returns the records so far. They belong to the batch.
func (b *Batch) Records() []structure.Record { return b.commit.Records }

// Size returns how many records the batch has, and how many bytes of bodies, metadata and
// the like are in them.
func (b *Batch) Size() (records, bytes int) { return len(b.commit.Records), b.bytes }

// Adopt adds records as they are, such as those of another store. They must not be changed
// before the batch was committed.
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

// truncate takes the last records back.
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

// weight is how many bytes a record has of what has no bound of its own.
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

// Expect adds the position that a context must have.
func (b *Batch) Expect(id structure.ContextID, tip structure.SpanRef) {
	b.Tips = append(b.Tips, backend.Expect{Context: id, Tip: tip})
}

// ExpectThread adds the state that a thread must have, nil for none.
func (b *Batch) ExpectThread(id structure.ThreadID, was *structure.Thread) {
	b.Threads = append(b.Threads, backend.ExpectThread{ID: id, Was: was})
}

// ExpectContext adds the state that a context must have, nil for none.
func (b *Batch) ExpectContext(id structure.ContextID, was *structure.Context) {
	b.Contexts = append(b.Contexts, backend.ExpectContext{ID: id, Was: was})
}

// Places states that the batch was made for a state in which nothing of what it adds was there: ids of messages, runs
// and names of branches; and in which the spans are that it continues.
func (b *Batch) Places() { b.places = true }

// expectsNone reports whether the commit is made for a state in which something of a kind is
// not there.
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
