// Package keys defines the entries that an engine keeps in an ordered map of bytes, for reads and
// for judging commits: the keys of its tables and the encodings of their values. All entries are
// derived from the commits. Engines that store these entries share the code that writes them
// (package entries) and reads them (package read).
package keys

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// The tables of the index. A key is the table's letter followed by:
const (
	TableSpanBySource       = 'a' // start of the hash of a source id, start of the hash of the home and the source id, number, run, place → the rest of the hashes; sealed: nothing
	TableBranch             = 'b' // thread, name → branch record
	TableBranchBySource     = 'B' // start of the hash of a source id, thread → name of the branch
	TableContext            = 'c' // context → since which commit it has the tip in its record, the record
	TableChildOfContext     = 'd' // parent context, context or remnant → nothing, or RemnantChild
	TableErased             = 'e' // content id → nothing
	TableForkOfRun          = 'f' // parent run, place, run → nothing
	TableCommitID           = 'i' // number of a commit → id of the commits from there on
	TableSpanSet            = 'g' // span set → span set record
	TableAlternative        = 'G' // span set, commit, place in the commit → span
	TableBlock              = 'h' // start of the content id → location of its record
	TableRequests           = 'o' // session → its last requests; nothing → the horizon, see sessions
	TableCheckpoint         = 'k' // thread, name → checkpoint record
	TableCheckpointBySource = 'K' // start of the hash of a source id, thread → name of the checkpoint
	TableReflog             = 'l' // context, commit, place in the commit → reflog record
	TableSummary            = 'm' // context, commit, place in the commit → summary record
	TableCommit             = 'n' // number of a commit, for some → position of its frame
	TableRunOfThread        = 'O' // thread, run that belongs to it → nothing
	TableTip                = 'p' // context that has moved → tip
	TableCutRun             = 'q' // run that lost its last spans → nothing
	TableRemnant            = 'R' // context that was deleted and has forks → remnant record
	TableRun                = 'r' // run → parent, depth, digest
	TableSpan               = 's' // run, place → position of the frame, sometimes digest
	TableThread             = 't' // thread → thread record
	TableThreadByEnd        = 'T' // last four bytes of a thread's id, the others → nothing
	TableUsageOfContent     = 'u' // start of the content id, commit, number of the usage in the commit → span, place in it
	TablePackedUpTo         = 'P' // nothing → last segment whose packs replace entries
	TablePendingCollection  = 'z' // nothing → last commit that the pending collection filters, if the index accounts for it
	TableValue              = 'V' // scope, owner, key, NUL, commit (the latest first) → value record; names of owners end with NUL
	TableLastMessage        = 'v' // thread, incarnation → time of the last message
	TableThreadByTime       = 'A' // filter, time of the last update, thread → nothing; derived from the other tables
	TableThreadBySource     = 'S' // start of a source id, thread → nothing
	TableThreadByTitle      = 'Y' // start of a title without upper case, thread → nothing
	TableBranchOfContext    = 'w' // thread, context, name → nothing: the branch of that name is the context
	TableContextOfThread    = 'x' // thread, context → nothing
	TableChunk              = 'y' // start of the chunk key → location of its record
)

// Early reports whether an entry may be written before the state of the index includes its commit. This is the case
// if replaying the commit reads nothing from the same table.
func Early(key []byte) bool {
	switch key[0] {
	case TableSpanBySource, TableRunOfThread, TableForkOfRun, TableAlternative, TableBlock, TableCommit, TableRun, TableSpan, TableUsageOfContent, TableChunk:
		return true
	}
	return false
}

// HashPrefix is the number of bytes of a hash in keys. A collision takes 2^64 attempts, and
// readers compare the whole hash.
const HashPrefix = 16

// Of returns a key, or the prefix of keys with these parts. It has room for 8 more bytes.
func Of(table byte, parts ...[]byte) []byte {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	k := append(make([]byte, 0, n+8), table)
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

// Branch is the key of a branch, or the prefix of the branches whose names start with name.
func Branch(thread structure.ThreadID, name string) []byte {
	return Of(TableBranch, thread[:], []byte(name))
}

// Checkpoint is the key of a checkpoint.
func Checkpoint(thread structure.ThreadID, name string) []byte {
	return Of(TableCheckpoint, thread[:], []byte(name))
}

// Named is the key of a name of a context. Without the name it is the prefix of all its names.
func Named(thread structure.ThreadID, context structure.ContextID, name string) []byte {
	return Of(TableBranchOfContext, thread[:], context[:], []byte(name))
}

// ThreadEnd is the key that finds a thread by the end of its id.
func ThreadEnd(id structure.ThreadID) []byte {
	return Of(TableThreadByEnd, id[len(id)-backend.IDEnd:], id[:len(id)-backend.IDEnd])
}

// Uint64 encodes a number so that keys sort numerically.
func Uint64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// Block is the key of a block.
func Block(id content.ID) []byte { return Of(TableBlock, id[:HashPrefix]) }

// Chunk is the key of a chunk.
func Chunk(k content.Key) []byte { return Of(TableChunk, k[:HashPrefix]) }

// Span is the key of a span.
func Span(r structure.SpanRef) []byte {
	return binary.BigEndian.AppendUint64(Of(TableSpan, r.Run[:]), r.Seq)
}

// PrefixEnd returns the first key after all that start with the prefix.
func PrefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// Present is the value of keys without a value.
var Present = []byte{}

// RemnantChild is the value in TableChildOfContext for a child that is a remnant.
var RemnantChild = []byte{1}

// ReadUint64 is the inverse of Uint64.
func ReadUint64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
