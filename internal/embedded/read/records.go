package read

import (
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Context returns a context with its current tip.
func Context(state Getter, id structure.ContextID) (backend.Context, error) {
	v, ok, err := state.Get(keys.Of(keys.TableContext, id[:]))
	if err != nil {
		return backend.Context{}, err
	}
	if !ok {
		return backend.Context{}, &backend.SubjectError{Subject: "context", ID: id.String(), Err: backend.ErrNotFound}
	}
	return ContextOf(state, id, v)
}

// ContextOf returns a context, given its index value, with its current tip.
func ContextOf(state Getter, id structure.ContextID, value []byte) (c backend.Context, err error) {
	v := keys.ReadVarints(value)
	c.Moved, c.MovedAt = v.Next(), int64(v.Next())
	if err := v.Err(); err != nil {
		return c, err
	}
	r, err := keys.Record[*structure.Context](structure.KindContext, v.Rest, id.String())
	if err != nil {
		return c, err
	}
	c.Context = *r
	moved, ok, err := state.Get(keys.Of(keys.TableTip, id[:]))
	if err != nil {
		return c, err
	}
	if ok {
		tip, err := keys.ReadTip(moved)
		if err != nil {
			return c, err
		}
		c.Tip, c.Moved, c.MovedAt = tip.Span, tip.Commit, tip.At
	}
	return c, nil
}

// Run returns a run.
func Run(state Getter, id structure.RunID) (structure.RunInfo, error) {
	v, ok, err := state.Get(keys.Of(keys.TableRun, id[:]))
	if err != nil {
		return structure.RunInfo{}, err
	}
	if !ok {
		return structure.RunInfo{}, &backend.SubjectError{Subject: "run", ID: id.String(), Err: backend.ErrNotFound}
	}
	return keys.ReadRun(id, v)
}
