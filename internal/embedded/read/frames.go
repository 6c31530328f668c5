package read

import (
	"container/list"
	"sync"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

const (
	// minCached is the smallest payload that is cached: a smaller one is quickly
	// read again.
	minCached = 8 << 10
	// MaxCached limits the bytes of cached frames, including layouts. A larger
	// frame is cached alone.
	MaxCached = 8 << 20
)

// FrameCache caches large frames of which only a small part was read: the end of a
// history is often read again, and checking and decoding a whole frame costs more
// than reading a few messages. Cached frames are checked and immutable; readers
// copy what they return. It is safe for concurrent use.
type FrameCache struct {
	mu     sync.Mutex
	items  map[frameKey]*list.Element
	recent list.List // of *cachedFrame, the latest first
	bytes  int
}

// frameKey includes the file: after a segment is packed or swept, the same position
// has other bytes.
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
	for c.bytes > MaxCached && c.recent.Len() > 1 {
		c.drop(c.recent.Back())
	}
}

func (c *FrameCache) drop(e *list.Element) {
	f := e.Value.(*cachedFrame)
	c.recent.Remove(e)
	delete(c.items, f.key)
	c.bytes -= f.layout.Size()
}

// Clear empties the cache. It is called when files are replaced, because erased
// content must not stay in memory.
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

// Size returns the size of the frames in bytes.
func (c *FrameCache) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
