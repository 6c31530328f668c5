package collect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A collection is pending from the moment when its live set is in a file beside the journal until no dead record is
// left in the journal. Meanwhile the journal is read through the filter: the index is built from filtered commits,
// readers do not see dead records, and the barrier hides them from new commits. So after a crash the store is either
// as before or as after the collection.

// ErrPending is returned for an index that does not match the journal filtered by the
// pending collection.
var ErrPending = errors.New("a collection was interrupted")

// Entry identifies the collection that the index accounts for, by its last commit.
func Entry(l *live.Set) index.Entry {
	return index.Entry{Key: keys.Of(keys.TablePendingCollection), Value: binary.AppendUvarint(nil, l.Until)}
}

// File is the file with the live set of the pending collection. It is there while a collection is pending.
type File struct {
	FS   vfs.FS
	Path string
}

// Unfinished is the suffix of a file that is being written.
const Unfinished = ".tmp"

// Read returns the live set, or nil if there is none. It refuses the set of another store, and one that is newer than the
// last commit of the journal, unless cut is set: then the journal may have lost its last commits.
func (f File) Read(store [16]byte, last uint64, cut bool) (*live.Set, error) {
	set, owner, err := live.ReadFile(f.FS, f.Path)
	var damage *backend.CorruptError
	if errors.As(err, &damage) {
		damage.What += "; without the file, records that the collection has not yet deleted reappear"
	} else if set != nil && owner != store {
		err = &backend.CorruptError{File: f.Path, What: "belongs to another store"}
	} else if set != nil && set.Until > last && !cut {
		err = &backend.CorruptError{File: f.Path, What: fmt.Sprintf("knows commit %d, but the journal ends with commit %d", set.Until, last)}
	}
	if err != nil {
		return nil, err
	}
	return set, nil
}

// save writes a live set. After an error the file may be there, if maybe is true.
func (f File) save(store [16]byte, l *live.Set) (maybe bool, err error) {
	tmp := f.Path + Unfinished
	if err := f.RemoveUnfinished(); err != nil {
		return false, err
	}
	out, err := f.FS.Create(tmp)
	if err != nil {
		return false, err
	}
	if err = live.Write(io.NewOffsetWriter(out, 0), store, l); err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return false, errors.Join(err, f.RemoveUnfinished())
	}
	// If one of the following steps fails, it may have taken effect on disk.
	if err := f.FS.Rename(tmp, f.Path); err != nil {
		return true, err
	}
	return true, f.FS.SyncDir(filepath.Dir(tmp))
}

// RemoveUnfinished removes a file that was not written to its end, if there is one.
func (f File) RemoveUnfinished() error { return f.removeIfThere(f.Path + Unfinished) }

func (f File) remove() error {
	if err := f.removeIfThere(f.Path); err != nil {
		return err
	}
	return f.FS.SyncDir(filepath.Dir(f.Path))
}

func (f File) removeIfThere(name string) error {
	if err := f.FS.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
