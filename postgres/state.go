package postgres

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// head is the last row that a process knows, and the epoch in which it read the log. The zero value
// is the head of an empty log without a collection.
type head struct {
	first uint64
	backend.Cursor
	epoch uint64
}

func (h head) next() uint64 { return h.Number + 1 }

// after returns the head that a row makes.
func (h head) after(r *logRow) head { return head{r.first, r.last(), h.epoch} }

// count is the number of commits in the row. A received row can have the id of a lost one.
func (h head) count() int64 { return int64(h.Number - h.first + 1) }

// state is a state of the store: the one after a row of the log, in an epoch.
type state struct {
	head
	counts     index.Counts
	folded     uint64 // the last commit that folded
	unfolded   *unfolded
	collecting bool   // rows of the log may have what a collection removed
	forgets    uint64 // how often sessions were forgotten
	unfilled   bool   // there are no entries, but commits
}

// known is a state that was read before.
type known struct {
	head
	counts   index.Counts
	folded   uint64
	unfolded *unfolded
}

func (s *state) known() known { return known{s.head, s.counts, s.folded, s.unfolded} }

func (k known) state() state {
	return state{head: k.head, counts: k.counts, folded: k.folded, unfolded: k.unfolded}
}

// after returns the state that a row makes.
func (s state) after(r *logRow) state {
	s.head, s.counts, s.folded, s.unfolded = s.head.after(r), r.counts, r.folded, r.unfolded
	return s
}

// inIndex returns the state in the form that package read expects.
func (s *state) inIndex(store [16]byte) index.State {
	return index.State{Store: store, Number: s.Number, ID: s.ID, Since: s.first, Counts: s.counts}
}

func encodeCounts(c index.Counts) []byte {
	b := make([]byte, 0, 8*len(c))
	for _, n := range c {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func decodeCounts(b []byte, into *index.Counts) error {
	if len(b) != 8*len(into) {
		return &backend.CorruptError{File: "lineage_head", What: "the counts"}
	}
	for i := range into {
		into[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return nil
}
