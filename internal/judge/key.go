package judge

import "github.com/lineage-store/lineage/structure"

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

func (k *keys) context(id structure.ContextID) { k.add(Key{Kind: KeyContext, ID: id}) }

// span adds the key of a span, unless it is the empty position.
func (k *keys) span(r structure.SpanRef) {
	if !r.IsZero() {
		k.add(Key{Kind: KeySpan, ID: r.Run, Seq: r.Seq})
	}
}

func (k *keys) digest(r structure.SpanRef) {
	k.add(Key{Kind: KeyDigest, ID: r.Run, Seq: r.Seq})
}

// set adds the key of a span set, if there is one.
func (k *keys) set(id structure.SpanSetID) {
	if !id.IsZero() {
		k.add(Key{Kind: KeySet, ID: id})
	}
}
