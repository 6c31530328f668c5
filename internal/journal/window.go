package journal

import (
	"fmt"

	"github.com/lineage-store/lineage/internal/vfs"
)

// tailWindow maps the end of the last segment into memory. Commits of normal durability
// are written through it: that costs a fraction of a system call, and they survive the
// end of the process. Space for it is reserved in advance, so the current segment ends
// with zeros; they are cut off when it is sealed, closed or opened again.
type tailWindow struct {
	window vfs.Mapping
	end    int64 // of the window
	next   int64 // size of the next window
	grown  bool  // the file may be longer than its frames
	none   bool  // this segment cannot have a window
	// readied is the end of the segment when space was last prepared, and synced when it
	// was prepared after a sync.
	readied, synced Position
}

func (w *tailWindow) close() error {
	if w.window == nil {
		return nil
	}
	err := w.window.Close()
	w.window = nil
	if err != nil {
		return fmt.Errorf("close a window: %w", err)
	}
	return nil
}
