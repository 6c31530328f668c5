package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/lineage-store/lineage/lineage"
)

// State is what the store knows about a file.
type State struct {
	Agent  string `json:"agent,omitempty"`
	Format string `json:"format,omitempty"`
	// Path is the path of the file. If it is not UTF-8, Raw has its bytes.
	Path string `json:"path"`
	Raw  []byte `json:"raw,omitempty"`
	// Bytes is the size of the part that was read, of Size bytes that the file had then: an incomplete last line may
	// be left. What was read of a file of lines is recorded in its [Source].
	Bytes int64 `json:"bytes"`
	Size  int64 `json:"size"`
	// Modified is the file's modification time in nanoseconds since 1970. Beside is that of what is read with it: the
	// log of a database, the latest of the files of a session.
	Modified int64 `json:"modified"`
	Beside   int64 `json:"beside,omitempty"`
	// Reader is the version of the format's reader that has read all of the file: see archive.Format.Version.
	Reader int `json:"reader,omitempty"`
	// Conversations are the source ids of the threads of the file.
	Conversations []string `json:"conversations,omitempty"`
	// Skipped is the number of unusable items. Error states why the file was not read, or what is wrong with the
	// first of these items.
	Skipped int64  `json:"skipped,omitempty"`
	Error   string `json:"error,omitempty"`
	// Waits is the source id of a conversation that the file's conversation continues, and that was missing when the beginning
	// of the file was read. When it is there, the file is read again from its start.
	Waits string `json:"waits,omitempty"`
	// Gone is the time at which the file was found missing.
	Gone time.Time `json:"gone,omitzero"`
	// LeftOut is the reason why the file is not read, or "". Project is the working directory that is the reason, if
	// it is.
	LeftOut LeftOutReason `json:"left_out,omitempty"`
	Project string        `json:"project,omitempty"`

	moved string // the path under which the state is stored, if that is another one
}

// LeftOutReason is a reason not to read a file.
type LeftOutReason string

// The reasons not to read a file.
const (
	// Deleted is set if the threads of the file were deleted in the store.
	Deleted LeftOutReason = "deleted in the store"
	// OtherProject is set if the session belongs to one of Choice.NotProjects.
	OtherProject LeftOutReason = "project left out"
)

// setPath sets the path of the file.
func (s *State) setPath(path string) {
	s.Path, s.Raw = path, nil
	if !utf8.ValidString(path) {
		s.Raw = []byte(path)
	}
}

// path returns the path of the file.
func (s *State) path() string {
	if s.Raw != nil {
		return string(s.Raw)
	}
	return s.Path
}

// machineStore is what the store keeps for a machine: the states of its files, and the choice.
type machineStore struct {
	store *lineage.Store
	owner lineage.Owner
}

// keptFor returns what a store keeps for a machine. The key contains the id of the store, so copies in other stores
// have no effect.
func keptFor(store *lineage.Store, m Machine) *machineStore {
	name := fmt.Sprintf("lineage follow %s %s", store.ID(), m.ID)
	return &machineStore{store, lineage.Owner{Scope: lineage.ApplicationScope, Name: name}}
}

const (
	fileKeys   = "file "
	choiceKey  = "choice"
	foldersKey = "folders"
)

// states returns the states of all files, by path.
func (k *machineStore) states(ctx context.Context) (map[string]*State, error) {
	all := make(map[string]*State)
	for value, err := range k.store.Values(k.owner).All(ctx, fileKeys) {
		if err != nil {
			return nil, err
		}
		s := &State{}
		if json.Unmarshal(value.JSON, s) == nil { // otherwise it is not ours, and the file is read again
			all[s.path()] = s
		}
	}
	return all, nil
}

// stateKey returns the key of the state of a file.
func stateKey(path string) string {
	sum := sha256.Sum256([]byte(path))
	return fileKeys + hex.EncodeToString(sum[:16])
}

// put replaces the states of files.
func (k *machineStore) put(ctx context.Context, states []*State) error {
	return k.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		for _, s := range states {
			b, err := json.Marshal(s)
			if err == nil {
				err = tx.Values(k.owner).Set(ctx, stateKey(s.path()), b)
			}
			if err == nil && s.moved != "" {
				if err = tx.Values(k.owner).Delete(ctx, stateKey(s.moved)); errors.Is(err, lineage.ErrNotFound) {
					err = nil
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// folderErrors returns the reported errors of folders, by path.
func (k *machineStore) folderErrors(ctx context.Context) (map[string]string, error) {
	errs := make(map[string]string)
	err := k.get(ctx, foldersKey, &errs)
	return errs, err
}

// putFolderErrors changes the reported errors of some folders, "" for none. Other runs report those of other folders.
func (k *machineStore) putFolderErrors(ctx context.Context, changed map[string]string) error {
	return k.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		in := &machineStore{tx.Store, k.owner}
		errs, err := in.folderErrors(ctx)
		if err != nil {
			return err
		}
		for dir, problem := range changed {
			if errs[dir] = problem; problem == "" {
				delete(errs, dir)
			}
		}
		return in.set(ctx, foldersKey, errs)
	})
}

// get reads a value, and leaves it if there is none.
func (k *machineStore) get(ctx context.Context, key string, to any) error {
	value, err := k.store.Values(k.owner).Get(ctx, key)
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(value.JSON, to)
	}
	return err
}

func (k *machineStore) set(ctx context.Context, key string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return k.store.Values(k.owner).Set(ctx, key, b)
}
