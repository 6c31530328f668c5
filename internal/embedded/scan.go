package embedded

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// readContext returns a context with its tip as the state has it.
func readContext(state kv, id structure.ContextID) (backend.Context, error) {
	v, ok, err := state.Get(key(tableContext, id[:]))
	if err != nil {
		return backend.Context{}, err
	}
	if !ok {
		return backend.Context{}, &backend.SubjectError{Subject: "context", ID: id.String(), Err: backend.ErrNotFound}
	}
	return contextOf(state, id, v)
}

// contextOf returns a context, given its value: as it was stated, and where it
// stands since.
func contextOf(state kv, id structure.ContextID, value []byte) (c backend.Context, err error) {
	v := varints{rest: value}
	c.Moved, c.MovedAt = v.next(), int64(v.next())
	if err := v.err(); err != nil {
		return c, err
	}
	r, err := decodeRecord[*structure.Context](structure.KindContext, v.rest, id.String())
	if err != nil {
		return c, err
	}
	c.Context = *r
	moved, ok, err := state.Get(key(tableTip, id[:]))
	if err != nil {
		return c, err
	}
	if ok {
		is, err := readTip(moved)
		if err != nil {
			return c, err
		}
		c.Tip, c.Moved, c.MovedAt = is.Span, is.Commit, is.At
	}
	return c, nil
}

func readRunInfo(state kv, id structure.RunID) (structure.RunInfo, error) {
	v, ok, err := state.Get(key(tableRun, id[:]))
	if err != nil {
		return structure.RunInfo{}, err
	}
	if !ok {
		return structure.RunInfo{}, &backend.SubjectError{Subject: "run", ID: id.String(), Err: backend.ErrNotFound}
	}
	return readRun(id, v)
}
