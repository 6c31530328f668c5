package read

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// CursorOf returns the cursor of a state.
func CursorOf(s index.State) backend.Cursor { return backend.Cursor{Number: s.Number, ID: s.ID} }

// Head implements backend.Reader.
func (v *View) Head(context.Context) (backend.Cursor, error) { return CursorOf(v.Index.State()), nil }

// IDOf returns the id of an existing commit.
func (v *View) IDOf(number uint64) (uint64, error) {
	if s := v.Index.State(); number >= s.Since {
		return s.ID, nil
	}
	entry, ok, err := v.Index.Last(keys.Of(keys.TableCommitID), keys.Of(keys.TableCommitID, keys.Uint64(number+1)))
	if err == nil && (!ok || len(entry.Value) != 8) {
		err = &backend.CorruptError{File: v.Index.Name(), What: fmt.Sprintf("the id of commit %d is missing; to repair: %s", number, backend.RebuildIndex)}
	}
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(entry.Value), nil
}

// At returns the cursor of an existing commit.
func (v *View) At(number uint64) (backend.Cursor, error) {
	if number == 0 {
		return backend.Cursor{}, nil
	}
	id, err := v.IDOf(number)
	return backend.Cursor{Number: number, ID: id}, err
}

// RequireAt returns an error if a cursor does not belong to this history.
func (v *View) RequireAt(c backend.Cursor) error {
	head := v.Index.State()
	if c.Number == 0 || c.ID == 0 {
		return nil
	}
	if c.Number <= head.Number {
		if id, err := v.IDOf(c.Number); err != nil || id == c.ID {
			return err
		}
	} else if damage := v.Commits.Damage(); damage != nil {
		return fmt.Errorf("commit %v: %w", c, damage)
	}
	common, err := v.common(c)
	return errors.Join(err, &backend.DivergedError{After: c, Common: common})
}

// common returns the last commit that the history certainly has in common with that of a cursor, according to the
// cursor's id.
func (v *View) common(c backend.Cursor) (backend.Cursor, error) {
	if head := v.Index.State(); c.ID == head.ID {
		return CursorOf(head), nil
	}
	prefix := keys.Of(keys.TableCommitID)
	known := false
	for entry, err := range v.Index.Scan(prefix, keys.PrefixEnd(prefix)) {
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
