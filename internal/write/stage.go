package write

import (
	"context"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Stage is the state of a store within a transaction: a snapshot with the changes of the transaction. It
// implements backend.Engine, so that all operations work in transactions. Its commits are added to the batch
// of the transaction. What is read by id or name becomes an expectation of that batch. Listings of the whole
// store are refused. A Stage is for one goroutine.
type Stage struct {
	backend.Reader // the snapshot
	engine         backend.Engine
	batch          *Batch
	fresh          bool
	done           bool
	large          bool

	threads     map[structure.ThreadID]*structure.Thread // nil when deleted, as below
	contexts    map[structure.ContextID]*backend.Context
	remnants    map[structure.ContextID]*structure.Remnant // of contexts that the transaction has deleted, or states
	branches    map[branchName]*structure.Branch
	checkpoints map[checkpointName]*structure.Checkpoint
	sets        map[structure.SpanSetID]*structure.SpanSet
	runs        map[structure.RunID]structure.RunInfo
	spans       map[structure.RunID][]*structure.Span
	blocks      map[content.ID]*structure.Block
	sources     map[string][]backend.Found
	values      map[structure.ValueKey][]backend.Value // the newest last
	moves       map[structure.ContextID][]*structure.Reflog
	read        map[any]bool // which expectations there are
	undo        []func()     // takes back what the commit that is being staged has changed
}

var _ backend.Engine = (*Stage)(nil)

// branchName is the name of a branch in a thread, checkpointName that of a checkpoint.
type (
	branchName struct {
		thread structure.ThreadID
		name   string
	}
	checkpointName branchName
)

// NewStage returns the stage of a transaction, which a batch commits. With fresh it starts new runs instead
// of extending those of the store: an earlier attempt lost a race for one.
func NewStage(engine backend.Engine, from backend.Reader, b *Batch, fresh bool) *Stage {
	return &Stage{
		Reader: from, engine: engine, batch: b, fresh: fresh,
		threads: make(map[structure.ThreadID]*structure.Thread), contexts: make(map[structure.ContextID]*backend.Context),
		remnants: make(map[structure.ContextID]*structure.Remnant),
		branches: make(map[branchName]*structure.Branch), checkpoints: make(map[checkpointName]*structure.Checkpoint),
		sets: make(map[structure.SpanSetID]*structure.SpanSet), runs: make(map[structure.RunID]structure.RunInfo),
		spans: make(map[structure.RunID][]*structure.Span), blocks: make(map[content.ID]*structure.Block),
		sources: make(map[string][]backend.Found), values: make(map[structure.ValueKey][]backend.Value), moves: make(map[structure.ContextID][]*structure.Reflog),
		read: make(map[any]bool),
	}
}

// End ends the stage. Later calls fail.
func (s *Stage) End() { s.done = true }

// Load sets the time and the durability of the commit of an import, and lets it place messages: see
// Batch.Places.
func (s *Stage) Load(at time.Time, d backend.Durability) {
	s.batch.commit.Time, s.batch.Durability = at, d
	s.batch.Places()
}

// AllowLarge removes the size limits of the transaction, for one that is built in a single call.
func (s *Stage) AllowLarge() { s.large = true }

// IsLarge reports whether AllowLarge was called.
func (s *Stage) IsLarge() bool { return s.large }

// IsFresh reports whether the stage starts new runs: see NewStage.
func (s *Stage) IsFresh() bool { return s.fresh }

// Changes returns the number of records of the transaction.
func (s *Stage) Changes() int { return len(s.batch.commit.Records) }

func (s *Stage) alive() error {
	if s.done {
		return fmt.Errorf("a transaction that has ended: %w", backend.ErrClosed)
	}
	return nil
}

// Upload implements backend.Engine.
func (s *Stage) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	return s.engine.Upload(ctx, chunks)
}

// Recent implements backend.Engine.
func (s *Stage) Recent() backend.Reader { return s }

// Snapshot implements backend.Engine. A stage is a snapshot already.
func (s *Stage) Snapshot(context.Context) (backend.Snapshot, error) { return staged{s}, nil }

type staged struct{ *Stage }

func (staged) Close() error { return nil }

// StoreID implements backend.Identified.
func (s *Stage) StoreID() (id [16]byte) {
	if identified, ok := s.engine.(backend.Identified); ok {
		id = identified.StoreID()
	}
	return id
}

// owned returns a copy of a record that shares no memory with it.
func owned[T any, P interface {
	*T
	structure.Record
}](r T) P {
	structure.Own(P(&r))
	return &r
}
