package index

import (
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/memtable"
)

// view is the state of the index after one commit.
type view struct {
	state  State
	memory []memtable.Moment // the latest first
	base   *base             // nil in a read-only index without a file
	refs   atomic.Int64
}

func (v *view) release() {
	if v.refs.Add(-1) == 0 && v.base != nil {
		v.base.release()
	}
}
