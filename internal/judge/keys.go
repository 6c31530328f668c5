package judge

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// KeyKind is the kind of a key.
type KeyKind uint8

// The kinds of keys, with the fields that they use.
const (
	KeyThread         KeyKind = iota + 1 // ID
	KeyContext                           // ID
	KeyRun                               // ID
	KeyEnd                               // ID of a run
	KeySpan                              // ID of a run, Seq
	KeyDigest                            // ID of a run, Seq
	KeySet                               // ID
	KeyLookups                           // ID of a thread, Seq: its incarnation, Name: a source id
	KeyLookupsOfRun                      // ID of a run, Name: a source id, in the home of the run
	KeyFind                              // ID of a thread or zero, Name: a source id
	KeyBranch                            // ID of a thread, Name
	KeyCheckpoint                        // ID of a thread, Name
	KeyBranchFrom                        // ID of a thread, Name: a source id
	KeyCheckpointFrom                    // ID of a thread, Name: a source id
	KeyBlock                             // Hash
	KeyErased                            // Hash of a block
	KeyChunk                             // Hash
	KeyTree                              // Hash of a root: all chunks below it, with their bytes
	KeyOfThread                          // ID: the members, branches and checkpoints of a thread, and the lines of the members
	KeyNamesOf                           // ID of a context: its names in its thread
	KeySummaries                         // ID of a context: its summaries
	KeyValue                             // Value
	KeyRemnant                           // ID of a context
	KeyLine                              // ID of a context: its children, and the remnants above it with theirs
)

// Key is one thing that judging a commit may read.
type Key struct {
	Kind KeyKind
	ID   [16]byte
	Seq  uint64
	Hash [32]byte
	Name string
	// Value asks whether a value is set, and by which commit.
	Value structure.ValueKey
}

// Keys returns everything that judging a commit may read from a view. It depends only on the
// commit and its options, so that an engine can read all of it at once. The view of the case
// is not used.
func Keys(c Case, o backend.Options) []Key {
	k := keys{seen: make(map[Key]struct{}), homes: make(map[structure.RunID]structure.Home), replay: c.Replay, wholeTrees: c.WholeTrees}
	k.options(o)
	for _, r := range c.Commit.Records {
		k.record(r)
	}
	return k.all
}

type keys struct {
	all                []Key
	seen               map[Key]struct{}
	homes              map[structure.RunID]structure.Home              // of runs created in the commit
	members            groups[structure.ThreadID, structure.ContextID] // stated in the commit
	replay, wholeTrees bool
}

func (k *keys) add(key Key) {
	if _, ok := k.seen[key]; !ok {
		k.seen[key] = struct{}{}
		k.all = append(k.all, key)
	}
}

func (k *keys) record(r structure.Record) {
	switch r := r.(type) {
	case *structure.Block:
		k.block(r)
	case *structure.Chunk:
		k.chunk(r)
	case *structure.Thread:
		k.thread(r)
	case *structure.Context:
		k.contextRecord(r)
	case *structure.Tip:
		k.tip(r)
	case *structure.Run:
		k.run(r)
	case *structure.Span:
		k.newSpan(r)
	case *structure.SpanSet:
		k.spanSet(r)
	case *structure.Branch:
		k.branch(r)
	case *structure.Checkpoint:
		k.checkpoint(r)
	case *structure.Summary:
		k.summary(r)
	case *structure.Reflog:
		k.reflogEntry(r)
	case *structure.Deletion:
		k.deletion(r)
	case *structure.Value:
		k.value(r)
	case *structure.Remnant:
		k.remnant(r)
	}
}

func (k *keys) deletion(d *structure.Deletion) {
	switch d.Subject {
	case structure.KindThread:
		k.deleteThread(d.Thread)
	case structure.KindContext:
		k.deleteContext(d.Context)
	case structure.KindBranch:
		k.deleteBranch(d)
	case structure.KindCheckpoint:
		k.deleteCheckpoint(d)
	case structure.KindSummary:
		k.deleteSummary(d)
	case structure.KindBlock:
		k.erase(d.Content)
	}
}
