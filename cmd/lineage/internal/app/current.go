package app

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// ThreadFile is a file in a store with the id of the current thread and a checksum. It is a preference of the command
// line. The store does not know it.
const ThreadFile = "current-thread"

// currentThread returns the current thread, nil if there is none.
func (s *OpenStore) currentThread(ctx context.Context) (*lineage.Thread, error) {
	if name := s.NamedThread(); name != "" {
		return refs.New(s.Store, nil).Thread(ctx, name)
	}
	id, err := s.chosenThread()
	if err != nil {
		return nil, err
	}
	if !id.IsZero() {
		t, err := s.Store.Thread(ctx, id)
		if !errors.Is(err, lineage.ErrNotFound) { // the thread may have been deleted
			return t, err
		}
	}
	return s.LatestThread(ctx)
}

// chosenThread returns the thread that was chosen, zero if none was. A damaged file is an error, because a message
// must not be added to a wrong thread.
func (s *OpenStore) chosenThread() (lineage.ThreadID, error) {
	path := filepath.Join(s.Dir, ThreadFile)
	b, err := vfs.ReadFile(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return lineage.ThreadID{}, nil
	}
	if err != nil {
		return lineage.ThreadID{}, fmt.Errorf("current thread: %w", err)
	}
	text, _, _ := strings.Cut(string(b), " ")
	id, err := structure.ParseID[lineage.ThreadID](text)
	if err != nil || string(b) != chosen(id) {
		return lineage.ThreadID{}, Hint(fmt.Errorf("%s: %w", path, lineage.ErrCorrupt), "'lineage thread use THREAD' chooses the current thread again")
	}
	return id, nil
}

// chosen returns the content of ThreadFile.
func chosen(id lineage.ThreadID) string {
	return fmt.Sprintf("%s %08x\n", id, crc32.ChecksumIEEE(id[:]))
}

// LatestThread returns the thread that was updated last, nil if there are no threads.
func (s *OpenStore) LatestThread(ctx context.Context) (*lineage.Thread, error) {
	for t, err := range s.Store.Threads(ctx, lineage.ThreadQuery{}) {
		if err != nil {
			return nil, err
		}
		return t.Thread, nil
	}
	return nil, nil
}

// UseThread makes a thread the current one.
func (s *OpenStore) UseThread(id lineage.ThreadID) error {
	return writeFile(filepath.Join(s.Dir, ThreadFile), func(w io.Writer) error {
		if f, ok := w.(*os.File); ok {
			vfs.Give(f)
		}
		_, err := io.WriteString(w, chosen(id))
		return err
	})
}
