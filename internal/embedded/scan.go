package embedded

import (
	"bytes"
	"iter"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// scanned returns the prefix of a key that scan may be asked for, nil if its table is
// never scanned.
func scanned(key []byte) []byte {
	const id = len(structure.ContextID{})
	switch key[0] {
	case tableBranch, tableCheckpoint, tableMember, tableSummary, tableReflog:
		return key[:1+id]
	case tableNamed:
		return key[:1+2*id]
	}
	return nil
}

// scan yields the entries under a prefix, as scanned returns it, in the state with what
// the commit changed so far. It looks at no other entry. The entries are collected
// first, so the caller may change what it is shown.
func (b *builder) scan(prefix []byte) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		s := b.engine.index.Snapshot()
		defer s.Close()
		var found []index.Entry
		for e, err := range s.Scan(prefix, prefixEnd(prefix)) {
			if err != nil {
				yield(index.Entry{}, err)
				return
			}
			found = append(found, e)
		}
		if b.pending != nil {
			for _, i := range b.groups[string(prefix)] {
				found = append(found, b.batch[i])
			}
		} else {
			for _, e := range b.batch {
				if bytes.HasPrefix(e.Key, prefix) {
					found = append(found, e)
				}
			}
			b.scanned += uint64(len(b.batch))
		}
		b.scanned += uint64(len(found))
		seen := make(map[string]bool, len(found))
		for _, e := range found {
			if seen[string(e.Key)] {
				continue
			}
			seen[string(e.Key)] = true
			v, ok, err := b.get(e.Key)
			if err == nil && !ok {
				continue
			}
			if !yield(index.Entry{Key: e.Key, Value: v}, err) {
				return
			}
		}
	}
}

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
		c.Tip, c.Moved, c.MovedAt = is.span, is.commit, is.at
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
