package sealed

import (
	"container/list"
	"sync"
)

// cacheBytes is the memory of the decoded blocks that a table keeps.
const cacheBytes = 16 << 20

// cache keeps the blocks that were used last. It is safe for concurrent use.
type cache struct {
	mu     sync.Mutex
	blocks map[cacheKey]*list.Element
	recent list.List // of *cached, the latest first
	bytes  int
}

// cacheKey is a block of a section.
type cacheKey struct{ section, block int }

type cached struct {
	key   cacheKey
	value any
	size  int
}

func (c *cache) get(k cacheKey) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.blocks[k]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*cached).value
}

func (c *cache) put(k cacheKey, value any, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.blocks[k]; ok || size > cacheBytes/4 {
		return
	}
	if c.blocks == nil {
		c.blocks = map[cacheKey]*list.Element{}
	}
	c.blocks[k] = c.recent.PushFront(&cached{k, value, size})
	c.bytes += size
	for c.bytes > cacheBytes {
		last := c.recent.Remove(c.recent.Back()).(*cached)
		delete(c.blocks, last.key)
		c.bytes -= last.size
	}
}
