package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Names in a store directory, beside LockFile.
const (
	journalDir = "journal"
	indexFile  = "index.bolt"
	// SocketFile is the socket on which the process with the lock serves other processes. Longer names with this
	// prefix are sockets being created.
	SocketFile = "SOCKET"
	// IndexBeforeRepair is the name of the index that a repair replaced.
	IndexBeforeRepair = indexFile + ".before-repair"
	// searchFile is the file of a search index. It follows the feed and is rebuilt when it is opened.
	searchFile = "search.db"
	// scratchPattern names the directories of temporary indexes.
	scratchPattern = "verify-*"
)

// Names in the journal's directory, beside the files of the journal.
const (
	// pendingFile contains the live set of the pending collection.
	pendingFile = "COLLECTING"
	// cutSuffix is the suffix of files with bytes that recovery set aside.
	cutSuffix = ".cut"
)

// directory is the directory of a store. It knows the names in it, but not what journal and index contain.
type directory struct {
	path     string       // empty in memory
	fs       vfs.FS       // has the journal
	held     func() error // its error says that the directory that was locked is no longer at the path
	inMemory bool
	readOnly bool
}

func (d directory) index() string { return filepath.Join(d.path, indexFile) }

func (d directory) journal() string { return filepath.Join(d.path, journalDir) }

// pending is the file of a pending collection.
func (d directory) pending() collect.File {
	return collect.File{FS: d.fs, Path: filepath.Join(d.path, journalDir, pendingFile)}
}

// IsStore reports whether there is a store in a directory. A directory with an index but without
// a journal counts as a store.
func IsStore(dir string) (bool, error) { return isStore(vfs.OS(), dir) }

func isStore(fsys vfs.FS, dir string) (bool, error) {
	names, err := fsys.List(filepath.Join(dir, journalDir))
	if err == nil && len(names) > 0 || errors.Is(err, vfs.ErrNotRegular) {
		return err == nil, err
	}
	size, err := vfs.Size(filepath.Join(dir, indexFile))
	if errors.Is(err, vfs.ErrNotRegular) {
		return false, err
	}
	return err == nil && size > 0, nil
}

// hasStore reports whether there is a store. It refuses a directory that contains other files.
func (d directory) hasStore() (bool, error) {
	if found, err := isStore(d.fs, d.path); found || err != nil {
		return found, err
	}
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != journalDir && name != LockFile && !strings.HasPrefix(name, indexFile) && !strings.HasPrefix(name, SocketFile) {
			return false, fmt.Errorf("the directory holds %q and is not a store: %w", entry.Name(), backend.ErrExists)
		}
	}
	return false, nil
}

// hasLock reports whether there is a lock file: another process may be creating the store.
func (d directory) hasLock() bool {
	_, err := os.Lstat(filepath.Join(d.path, LockFile))
	return err == nil
}

// create creates the directory if necessary.
func (d directory) create() error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	return vfs.OS().SyncDir(filepath.Dir(filepath.Clean(d.path)))
}

// removeFollowers removes files that may contain collected data and that the store does not
// need: bytes that recovery set aside, a search index unless it is pruned, and the index from before a repair.
// It returns their paths in the store's directory.
func (d directory) removeFollowers(pruned bool) (removed []string, err error) {
	if err := d.held(); err != nil {
		return nil, err
	}
	names, err := d.fs.List(d.journal())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, cutSuffix) {
			if err := d.fs.Remove(filepath.Join(d.journal(), name)); err != nil {
				return removed, err
			}
			removed = append(removed, journalDir+"/"+name)
		}
	}
	if d.inMemory {
		return removed, nil
	}
	names = []string{IndexBeforeRepair}
	if !pruned {
		names = append(names, searchFile, searchFile+"-wal", searchFile+"-shm", searchFile+"-journal")
	}
	for _, name := range names {
		switch removeErr := os.Remove(filepath.Join(d.path, name)); {
		case removeErr == nil:
			removed = append(removed, name)
		case !errors.Is(removeErr, fs.ErrNotExist):
			err = errors.Join(err, removeErr)
		}
	}
	return removed, errors.Join(err, d.fs.SyncDir(d.journal()), vfs.OS().SyncDir(d.path))
}

// scratch creates a directory for a temporary index: on the volume of the store or, if that is read-only, among the
// temporary files of the machine.
func (d directory) scratch() (dir string, remove func(), err error) {
	if d.readOnly {
		temporary, err := scratch.New()
		if err != nil {
			return "", nil, err
		}
		return temporary.Path, func() { _ = temporary.Remove() }, nil // the next process that needs one tries again
	}
	if err := d.held(); err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(d.path, scratchPattern)
	return dir, func() { _ = os.RemoveAll(dir) }, err // opening the store tries again
}

// removeScratch removes temporary indexes of interrupted verifications.
func (d directory) removeScratch() error {
	entries, err := os.ReadDir(d.path)
	for _, entry := range entries {
		if ok, _ := filepath.Match(scratchPattern, entry.Name()); ok {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.path, entry.Name())))
		}
	}
	return err
}

// sizes returns the total size of the index files, and of all other files that are not segments of the journal:
// a search index, temporary files, bytes that recovery and repair set aside.
func (d directory) sizes(segments func() []journal.SegmentInfo) (ofIndex, ofOthers int64, err error) {
	if !d.inMemory {
		if ofIndex, ofOthers, err = d.sizesOutsideJournal(); err != nil {
			return 0, 0, err
		}
	}
	names, err := d.fs.List(d.journal())
	if err != nil {
		return 0, 0, err
	}
	known := make(map[string]bool)
	for _, s := range segments() { // after listing, so that a new one is in both
		known[filepath.Base(s.Name)] = true
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		info, err := d.fs.Stat(filepath.Join(d.journal(), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, 0, err
		}
		ofOthers += info.Size
	}
	return ofIndex, ofOthers, nil
}

func (d directory) sizesOutsideJournal() (ofIndex, ofOthers int64, err error) {
	err = filepath.WalkDir(d.path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path == d.journal() {
			return fs.SkipDir
		}
		var info fs.FileInfo
		if err == nil && !entry.IsDir() {
			info, err = entry.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed in the meantime
			return nil
		case err != nil || info == nil:
			return err
		case strings.HasPrefix(path, d.index()):
			ofIndex += info.Size()
		default:
			ofOthers += info.Size()
		}
		return nil
	})
	return ofIndex, ofOthers, err
}
