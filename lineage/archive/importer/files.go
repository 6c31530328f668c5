package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Files records which files imports on a machine have read into a store, so that a later import reads only files that
// have changed. A file is read again if its size or time differs, if one of its threads or branches is gone, if
// another file of these threads has changed, and with other options or another version of this program. Files with
// damage, and files of formats that read other files with them, are always read. Files that a format reads together
// are not recorded.
//
// A Files is for one import.
type Files struct {
	machine string
	options string
	known   map[string]*fileState // by absolute path
	stored  map[string]*fileState // by absolute path, those of files that have changed too
	reread  map[string]bool       // conversations of files that have changed
	read    map[*archive.File]*fileRead
}

// fileState is the stored state of a file.
type fileState struct {
	Path          string   `json:"path"`
	Size          int64    `json:"size"`
	Modified      int64    `json:"modified"`
	Options       string   `json:"options"`
	Conversations []string `json:"conversations"`
	Branches      int      `json:"branches"`
}

// fileRead is the state of a file that this import reads.
type fileRead struct {
	fileState
	has    map[string]bool // Conversations
	partly bool            // something was left out
}

// Limits of a file's state: the conversations, and its size in bytes. A file with more is always read.
const (
	maxOfFile    = 100_000
	maxFileState = 8 << 20
)

// FilesOf returns the record of files at or below a path that imports on a machine have read into a store. It is
// empty if the store is nil.
func FilesOf(ctx context.Context, store *lineage.Store, machine, path string) (*Files, error) {
	f := &Files{machine: machine, known: make(map[string]*fileState), stored: make(map[string]*fileState), reread: make(map[string]bool), read: make(map[*archive.File]*fileRead)}
	root, err := filepath.Abs(path)
	if store == nil || err != nil {
		return f, err
	}
	for value, err := range store.Values(f.owner(store)).All(ctx, "") {
		if err != nil {
			return nil, err
		}
		s := &fileState{}
		if json.Unmarshal(value.JSON, s) == nil && (s.Path == root || strings.HasPrefix(s.Path, strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator))) {
			f.known[s.Path], f.stored[s.Path] = s, s
		}
	}
	for path, s := range f.known {
		same, err := f.isThere(ctx, store, s)
		if err != nil {
			return nil, err
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			delete(f.known, path)
		} else if err != nil || !same || !s.equals(info) {
			f.changed(path)
		}
	}
	return f, nil
}

// ReadAll makes the import read files that have not changed, too.
func (f *Files) ReadAll() { clear(f.known) }

// changed records that a file is read, and that its conversations have changed.
func (f *Files) changed(path string) {
	s := f.known[path]
	if s == nil {
		return
	}
	delete(f.known, path)
	for _, id := range s.Conversations {
		f.reread[id] = true
	}
}

// owner returns the owner of the stored states.
func (f *Files) owner(store *lineage.Store) lineage.Owner {
	return lineage.Owner{Scope: lineage.ApplicationScope, Name: fmt.Sprintf("lineage import %s %s", store.ID(), f.machine)}
}

// isThere reports whether a store still has the threads of a file, with as many branches as before.
func (f *Files) isThere(ctx context.Context, store *lineage.Store, s *fileState) (bool, error) {
	n, err := branchesOf(ctx, store, s.Conversations)
	if errors.Is(err, lineage.ErrNotFound) {
		return false, nil
	}
	return n >= s.Branches, err
}

// threadsAtOnce is the number of threads that are read in one state.
const threadsAtOnce = 100

// branchesOf counts the branches of the threads of conversations.
func branchesOf(ctx context.Context, store *lineage.Store, conversations []string) (n int, err error) {
	for some := range slices.Chunk(conversations, threadsAtOnce) {
		ids := make([]lineage.ThreadID, len(some))
		for i, id := range some {
			ids[i] = write.SourceThread(id)
		}
		found, err := backend.AtOnce(ctx, store.View(), func(s backend.Snapshot) (found int, err error) {
			if s, ok := s.(backend.ThreadsAhead); ok {
				if err := s.ThreadsAhead(ctx, ids); err != nil {
					return 0, err
				}
			}
			for _, id := range ids {
				if _, err := s.Thread(ctx, id); err != nil {
					return 0, err
				}
				for _, err := range s.Branches(ctx, id, "", "") {
					if err != nil {
						return 0, err
					}
					found++
				}
			}
			return found, nil
		})
		if err != nil {
			return 0, err
		}
		n += found
	}
	return n, nil
}

// equals reports whether a file has the size and time of the state.
func (s *fileState) equals(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Size() == s.Size && info.ModTime().UnixNano() == s.Modified
}

// setOptions sets a checksum of all that decides how files are read. Files whose state has another one are read again.
func (f *Files) setOptions(sum string) {
	f.options = sum
	for path, s := range f.known {
		if s.Options != f.options {
			f.changed(path)
		}
	}
	for more := true; more; { // conversations connect files, so repeat until nothing changes
		more = false
		for path, s := range f.known {
			if slices.ContainsFunc(s.Conversations, func(id string) bool { return f.reread[id] }) {
				f.changed(path)
				more = true
			}
		}
	}
}

// equal reports whether a stored state, nil if there is none, is the same as another.
func (s *fileState) equal(other *fileState) bool {
	return s != nil && s.Path == other.Path && s.Size == other.Size && s.Modified == other.Modified && s.Options == other.Options &&
		s.Branches == other.Branches && slices.Equal(s.Conversations, other.Conversations)
}

// unchanged reports whether a file need not be read.
func (f *Files) unchanged(file *archive.File) bool {
	full, err := filepath.Abs(file.Path)
	if err != nil {
		return false
	}
	s := f.known[full]
	return s != nil && s.Size == file.Size && s.Modified == file.Modified.UnixNano() && !isOpenDatabase(full)
}

// isOpenDatabase reports whether a file is a database whose changes may be in another file.
func isOpenDatabase(path string) bool {
	_, err := os.Lstat(path + "-wal")
	return err == nil
}

// reading returns the state of a file that is being read, nil if it is not recorded.
func (f *Files) reading(file *archive.File) *fileRead {
	if f == nil || file == nil {
		return nil
	}
	read := f.read[file]
	if read == nil {
		full, err := filepath.Abs(file.Path)
		read = &fileRead{fileState: fileState{Path: full, Size: file.Size, Modified: file.Modified.UnixNano(), Options: f.options}, has: make(map[string]bool)}
		// Times of files are coarse: one that was opened right after a change may change again and keep its time.
		read.partly = err != nil || !utf8.ValidString(full) || file.Opened.Sub(file.Modified).Abs() < settleTime || isOpenDatabase(full)
		f.read[file] = read
	}
	return read
}

// leftOut records that something of a file was left out.
func (f *Files) leftOut(file *archive.File) {
	if read := f.reading(file); read != nil {
		read.partly = true
	}
}

// has records that a file contains a conversation.
func (f *Files) has(file *archive.File, conversation string) {
	if read := f.reading(file); read != nil && len(read.Conversations) <= maxOfFile && !read.has[conversation] {
		read.Conversations = append(read.Conversations, conversation)
		read.has[conversation] = true
	}
}

// settleTime is the time within which a file may change twice without getting a new time.
const settleTime = 100 * time.Millisecond

// encode returns the state to store, nil for a file that the next import has to read again.
func (r *fileRead) encode(ctx context.Context, store *lineage.Store) (state []byte, err error) {
	if r.Branches, err = branchesOf(ctx, store, r.Conversations); errors.Is(err, lineage.ErrNotFound) {
		r.partly, err = true, nil
	}
	if err != nil || r.partly || len(r.Conversations) == 0 || len(r.Conversations) > maxOfFile {
		return nil, err
	}
	if state, err = json.Marshal(&r.fileState); len(state) > maxFileState {
		state = nil
	}
	return state, err
}

// save stores the states of the files that were read.
func (f *Files) save(ctx context.Context, store *lineage.Store) error {
	if f == nil {
		return nil
	}
	var read []*fileRead
	var states [][]byte
	size := 0
	for _, file := range f.read {
		state, err := file.encode(ctx, store)
		if err != nil {
			return err
		}
		read, states, size = append(read, file), append(states, state), size+len(state)
		if len(read) < savedAtOnce && size < savedBytes {
			continue
		}
		if err := f.saveStates(ctx, store, read, states); err != nil {
			return err
		}
		read, states, size = nil, nil, 0
	}
	return f.saveStates(ctx, store, read, states)
}

// savedAtOnce is the largest number of states in a transaction. One that has savedBytes of them has no more. Tests change that.
const savedAtOnce = 128

var savedBytes = 8 << 20

// saveStates stores the states of some files in a transaction.
func (f *Files) saveStates(ctx context.Context, store *lineage.Store, read []*fileRead, states [][]byte) error {
	if len(read) == 0 {
		return nil
	}
	err := store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		values := tx.Values(f.owner(store))
		for i, file := range read {
			sum := sha256.Sum256([]byte(file.Path))
			key := hex.EncodeToString(sum[:16])
			var err error
			switch stored := f.stored[file.Path]; {
			case states[i] != nil && !stored.equal(&file.fileState):
				err = values.Set(ctx, key, states[i])
			case states[i] == nil && stored != nil:
				err = values.Delete(ctx, key)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remember the files that were read: %w", err)
	}
	return nil
}
