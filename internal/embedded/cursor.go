package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

func cursorOf(s index.State) backend.Cursor { return backend.Cursor{Number: s.Number, ID: s.ID} }

// identify returns the id of a commit, and the first commit that has it, given the state before
// it. An id that begins gets an entry.
func (e *Engine) identify(b *builder, f journal.Frame) (id, since uint64) {
	if f.ID == 0 || f.ID == e.id {
		return e.id, e.since
	}
	e.id, e.since = f.ID, f.Number
	b.put(b.slab.key(keys.TableID, keys.Uint64(f.Number)), binary.LittleEndian.AppendUint64(nil, f.ID))
	return e.id, e.since
}

// idOf returns the id of a commit that is there.
func (v view) idOf(number uint64) (uint64, error) {
	if s := v.index.State(); number >= s.Since {
		return s.ID, nil
	}
	entry, ok, err := v.index.Last(keys.Of(keys.TableID), keys.Of(keys.TableID, keys.Uint64(number+1)))
	if err == nil && (!ok || len(entry.Value) != 8) {
		err = &backend.CorruptError{File: v.engine.indexPath(), What: fmt.Sprintf("the id of commit %d is missing; to repair: %s", number, backend.RebuildIndex)}
	}
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(entry.Value), nil
}

// at returns the cursor of a commit that is there.
func (v view) at(number uint64) (backend.Cursor, error) {
	if number == 0 {
		return backend.Cursor{}, nil
	}
	id, err := v.idOf(number)
	return backend.Cursor{Number: number, ID: id}, err
}

// requireAt returns an error if a cursor is not of this history.
func (v view) requireAt(c backend.Cursor) error {
	head := v.index.State()
	if c.Number == 0 || c.ID == 0 {
		return nil
	}
	if c.Number <= head.Number {
		if id, err := v.idOf(c.Number); err != nil || id == c.ID {
			return err
		}
	} else if v.engine.damage != nil {
		return fmt.Errorf("commit %v: %w", c, v.engine.damage)
	}
	common, err := v.common(c)
	return errors.Join(err, &backend.DivergedError{After: c, Common: common})
}

// common returns the last commit that a history has in common with the one of a cursor, as far
// as its id tells.
func (v view) common(c backend.Cursor) (backend.Cursor, error) {
	if head := v.index.State(); c.ID == head.ID {
		return cursorOf(head), nil
	}
	prefix := keys.Of(keys.TableID)
	known := false
	for entry, err := range v.index.Scan(prefix, keys.PrefixEnd(prefix)) {
		if err != nil {
			return backend.Cursor{}, err
		}
		if known {
			return backend.Cursor{Number: binary.BigEndian.Uint64(entry.Key[1:]) - 1, ID: c.ID}, nil
		}
		known = binary.LittleEndian.Uint64(entry.Value) == c.ID
	}
	return backend.Cursor{}, nil
}

// follows is requireAt for the latest state. It mostly needs no look into the index.
func (e *Engine) follows(c backend.Cursor) error {
	if s := e.index.State(); c.ID == s.ID && s.Since <= c.Number && c.Number <= s.Number || c.Number == 0 || c.ID == 0 {
		return nil
	}
	v := e.now()
	defer v.release()
	return v.requireAt(c)
}
