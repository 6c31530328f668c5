package entries

import (
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// list calls take for each entry under a prefix, with the rest of its key and its value.
func (s *State) list(prefix []byte, take func(rest, value []byte) error) error {
	for e, err := range s.Latest.Scan(prefix, keys.PrefixEnd(prefix)) {
		if err == nil {
			s.Scanned++
			err = take(e.Key[len(prefix):], e.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listed returns the records under a prefix.
func listed[R structure.Record](s *State, kind structure.Kind, prefix []byte) (all []R, err error) {
	err = s.list(prefix, func(_, value []byte) error {
		r, err := keys.Record[R](kind, value, "")
		all = append(all, r)
		return err
	})
	return all, err
}

// Members implements judge.View. The contexts are about to be deleted, so they are not
// cached.
func (s *State) Members(id structure.ThreadID) (all []*backend.Context, err error) {
	err = s.list(keys.Of(keys.TableContextOfThread, id[:]), func(rest, _ []byte) error {
		c, err := read.Context(s, structure.ContextID(rest))
		all = append(all, &c)
		return err
	})
	return all, err
}

// Branches implements judge.View.
func (s *State) Branches(id structure.ThreadID) ([]*structure.Branch, error) {
	return listed[*structure.Branch](s, structure.KindBranch, keys.Of(keys.TableBranch, id[:]))
}

// Checkpoints implements judge.View.
func (s *State) Checkpoints(id structure.ThreadID) ([]*structure.Checkpoint, error) {
	return listed[*structure.Checkpoint](s, structure.KindCheckpoint, keys.Of(keys.TableCheckpoint, id[:]))
}

// NamesOf implements judge.View.
func (s *State) NamesOf(thread structure.ThreadID, id structure.ContextID) (names []string, err error) {
	err = s.list(keys.Named(thread, id, ""), func(rest, _ []byte) error {
		names = append(names, string(rest))
		return nil
	})
	return names, err
}

// NextChild implements judge.View.
func (s *State) NextChild(parent, after structure.ContextID) (child structure.ContextID, ok bool, err error) {
	prefix := keys.Of(keys.TableChildOfContext, parent[:])
	from := prefix
	if !after.IsZero() {
		from = append(keys.Of(keys.TableChildOfContext, parent[:], after[:]), 0)
	}
	for e, err := range s.Latest.Scan(from, keys.PrefixEnd(prefix)) {
		if err != nil {
			return child, false, err
		}
		s.Scanned++
		return structure.ContextID(e.Key[len(prefix):]), true, nil
	}
	return child, false, nil
}

// Summaries implements judge.View.
func (s *State) Summaries(id structure.ContextID) (all []judge.SummaryAt, err error) {
	err = s.list(keys.Of(keys.TableSummary, id[:]), func(rest, value []byte) error {
		r, err := keys.Record[*structure.Summary](structure.KindSummary, value, "")
		if err == nil {
			all = append(all, judge.SummaryAt{ID: r.ID, Context: id, Commit: keys.ReadUint64(rest), Record: keys.ReadUint64(rest[8:])})
		}
		return err
	})
	return all, err
}

// entriesOf returns the keys of the entries that belong to a context.
func (s *State) entriesOf(id structure.ContextID) (all []index.Entry, err error) {
	for _, table := range []byte{keys.TableSummary, keys.TableReflog} {
		found, err := s.keysUnder(keys.Of(table, id[:]))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	values, err := s.valuesOf(structure.Owner{Scope: structure.ContextScope, Context: id})
	return append(all, values...), err
}

// valuesOf returns the keys of all value records of an owner.
func (s *State) valuesOf(owner structure.Owner) ([]index.Entry, error) {
	return s.keysUnder(keys.Owner(owner))
}

// keysUnder returns the keys under a prefix, without values.
func (s *State) keysUnder(prefix []byte) (all []index.Entry, err error) {
	err = s.list(prefix, func(rest, _ []byte) error {
		all = append(all, index.Entry{Key: append(prefix[:len(prefix):len(prefix)], rest...)})
		return nil
	})
	return all, err
}
