package embedded

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// The tables of the index. A key is the table's letter and then, in order:
const (
	tableLookup      = 'a' // start of the hash of a source id, start of the hash of the home and the source id, number unless it is 1 → span
	tableBranch      = 'b' // thread, name → branch record
	tableBranchFrom  = 'B' // start of the hash of a source id, thread → name of the branch
	tableContext     = 'c' // context → since which commit it stands where its record says, the record
	tableChild       = 'd' // parent context, context → nothing
	tableErased      = 'e' // content id → nothing
	tableFork        = 'f' // parent run, place, run → nothing
	tableID          = 'i' // number of a commit → id of the commits from there on
	tableSpanSet     = 'g' // span set → span set record
	tableAlternative = 'G' // span set, commit, place in the commit → span
	tableBlock       = 'h' // start of the content id → where its record is
	tableOnce        = 'o' // session → its last requests; nothing → the horizon, see sessions
	tableCheckpoint  = 'k' // thread, name → checkpoint record
	tablePointFrom   = 'K' // start of the hash of a source id, thread → name of the checkpoint
	tableReflog      = 'l' // context, commit, place in the commit → reflog record
	tableSummary     = 'm' // context, commit, place in the commit → summary record
	tableCommit      = 'n' // number of a commit, for some → position of its frame
	tableHome        = 'O' // thread, run that belongs to it → nothing
	tableTip         = 'p' // context that has moved → tip
	tableCut         = 'q' // run that lost its end → nothing
	tableRun         = 'r' // run → parent, depth, digest
	tableSpan        = 's' // run, place → position of the frame, sometimes digest
	tableThread      = 't' // thread → thread record
	tableThreadEnd   = 'T' // last four bytes of a thread's id, the others → nothing
	tableUsage       = 'u' // start of the content id, commit, place among its usages → span, place in it
	tablePacked      = 'P' // nothing → segment up to which packs find what is not here
	tablePending     = 'z' // nothing → last commit that the pending collection filters, if the index accounts for that
	tableValue       = 'V' // scope, owner, key, NUL, commit (the latest first) → value record; names of owners end with NUL
	tableMessage     = 'v' // thread, incarnation → time of the last message
	tableOrder       = 'A' // filter, time of the last update, thread → nothing; derived, see order.go
	tableFrom        = 'S' // start of a source id, thread → nothing
	tableTitle       = 'Y' // start of a title without upper case, thread → nothing
	tableNamed       = 'w' // thread, context, name → nothing: the branch of that name is the context
	tableMember      = 'x' // thread, context → nothing
	tableChunk       = 'y' // start of the chunk key → where its record is
)

// early tells of which keys entries may be in the index before its state accounts
// for them: those whose replay looks at nothing of the same table.
func early(key []byte) bool {
	switch key[0] {
	case tableLookup, tableHome, tableFork, tableAlternative, tableBlock, tableCommit, tableRun, tableSpan, tableUsage, tableChunk:
		return true
	}
	return false
}

// hashPrefix is how much of a hash keys use. Finding two contents that share so
// much takes 2^64 attempts, and what is read is checked against the whole.
const hashPrefix = 16

// slab hands out keys and values from large allocations.
type slab struct{ buf []byte }

const (
	slabSize = 64 << 10
	slabRoom = 512 // what a key or value usually fits in
)

// begin starts a key or value; its parts are appended to the slab's buf and end
// returns it.
func (s *slab) begin() int {
	if cap(s.buf)-len(s.buf) < slabRoom {
		s.buf = make([]byte, 0, slabSize)
	}
	return len(s.buf)
}

func (s *slab) end(start int) []byte { return s.buf[start:len(s.buf):len(s.buf)] }

func (s *slab) key(table byte, parts ...[]byte) []byte {
	start := s.begin()
	s.buf = append(s.buf, table)
	for _, p := range parts {
		s.buf = append(s.buf, p...)
	}
	return s.end(start)
}

func key(table byte, parts ...[]byte) []byte {
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

func branchKey(thread structure.ThreadID, name string) []byte {
	return key(tableBranch, thread[:], []byte(name))
}
func checkpointKey(thread structure.ThreadID, name string) []byte {
	return key(tableCheckpoint, thread[:], []byte(name))
}
func namedKey(thread structure.ThreadID, context structure.ContextID, name string) []byte {
	return key(tableNamed, thread[:], context[:], []byte(name))
}

func threadEndKey(id structure.ThreadID) []byte {
	return key(tableThreadEnd, id[len(id)-backend.IDEnd:], id[:len(id)-backend.IDEnd])
}

func be64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func blockKey(id content.ID) []byte { return key(tableBlock, id[:hashPrefix]) }
func chunkKey(k content.Key) []byte { return key(tableChunk, k[:hashPrefix]) }
func spanKey(r structure.SpanRef) []byte {
	return binary.BigEndian.AppendUint64(key(tableSpan, r.Run[:]), r.Seq)
}

// prefixEnd returns the first key after all that start with the prefix.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// kv is how the index is read, with the packs below it.
type kv interface {
	Get(key []byte) ([]byte, bool, error)
}

var (
	_ kv = (*judgeView)(nil)
	_ kv = (*catalog)(nil)
)
