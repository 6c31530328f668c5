package sealed

import "github.com/lineage-store/lineage/internal/lru"

// cacheBytes is the memory of the heaps that a table keeps.
const cacheBytes = 16 << 20

// cache keeps the decompressed heaps of blocks that were used last, but no very large ones.
type cache struct{ lru.Cache[int, []byte] }

func (c *cache) get(block int) []byte {
	if c == nil {
		return nil
	}
	b, _ := c.Get(block)
	return b
}

func (c *cache) put(block int, heap []byte) {
	if c != nil && len(heap) <= cacheBytes/4 {
		c.Put(block, heap, len(heap)+100, cacheBytes)
	}
}
