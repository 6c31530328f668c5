package read

import (
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/lru"
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

// FrameCache caches large frames of which only a small part was read. The end of a history is often read again, and
// checking and decoding a whole frame costs more than reading a few messages. Cached frames are checked and
// immutable. Readers copy what they return. It is safe for concurrent use.
type FrameCache struct {
	frames lru.Cache[frameKey, *cachedFrame]
}

// frameKey includes the file, because after a segment is packed or swept, the same position has other bytes.
type frameKey struct {
	file journal.File
	at   journal.Position
}

type cachedFrame struct {
	number uint64
	end    int64
	layout *structure.Layout
}

func (c *FrameCache) get(k frameKey) *cachedFrame {
	if c == nil {
		return nil
	}
	f, _ := c.frames.Get(k)
	return f
}

func (c *FrameCache) put(k frameKey, f *cachedFrame) { c.frames.Put(k, f, f.layout.Size(), MaxCached) }

// Clear empties the cache. It is called when files are replaced, because erased
// content must not stay in memory.
func (c *FrameCache) Clear() { c.frames.Clear() }

// Len returns the number of frames.
func (c *FrameCache) Len() int { return c.frames.Len() }

// Size returns the size of the frames in bytes.
func (c *FrameCache) Size() int { return c.frames.Size() }
