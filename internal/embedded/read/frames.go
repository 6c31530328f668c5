package read

import (
	"container/list"
	"sync"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

const (
	// leastCached is how large a payload is that is worth keeping: a smaller one is
	// read again in little time.
	leastCached = 8 << 10
	// MostCached is how many bytes of frames are kept, layouts included. A larger
	// frame is kept alone.
	MostCached = 8 << 20
)

// FrameCache keeps large frames that little was read of: whoever reads the end of
// a history wants it again, and checking and laying out all of a frame for a few
// messages costs more than they do. What is in it was checked, does not change, and
// is never handed out: readers copy what they take. It is safe for concurrent use.
type FrameCache struct {
	mu     sync.Mutex
	items  map[frameKey]*list.Element
	recent list.List // of *cachedFrame, the latest first
	bytes  int
}

// frameKey names a frame by its file too: a position stays when a segment is packed
// or swept, and what is there does not.
type frameKey struct {
	file journal.File
	at   journal.Position
}

type cachedFrame struct {
	key    frameKey
	number uint64
	end    int64
	layout *structure.Layout
}

func (c *FrameCache) get(k frameKey) *cachedFrame {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[k]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*cachedFrame)
}

func (c *FrameCache) put(k frameKey, f *cachedFrame) {
	f.key = k
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[k]; ok {
		return
	}
	if c.items == nil {
		c.items = make(map[frameKey]*list.Element)
	}
	c.items[k] = c.recent.PushFront(f)
	c.bytes += f.layout.Size()
	for c.bytes > MostCached && c.recent.Len() > 1 {
		c.drop(c.recent.Back())
	}
}

func (c *FrameCache) drop(e *list.Element) {
	f := e.Value.(*cachedFrame)
	c.recent.Remove(e)
	delete(c.items, f.key)
	c.bytes -= f.layout.Size()
}

// Clear lets go of everything, as when files were replaced: nobody reads what was
// in them much longer, and what was erased is not to stay.
func (c *FrameCache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items, c.bytes = nil, 0
	c.recent.Init()
}

// Len returns the number of frames.
func (c *FrameCache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

// Size returns how many bytes the frames take.
func (c *FrameCache) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
