package sealed

import "github.com/lineage-store/lineage/internal/lru"

// cacheBytes is the memory of the decoded blocks that a table keeps.
const cacheBytes = 16 << 20

// cache keeps the decoded blocks and ids that were used last, but no very large ones.
type cache struct{ lru.Cache[cacheKey, any] }

// cacheKey is a block of a section.
type cacheKey struct{ section, block int }

func (c *cache) get(k cacheKey) any {
	v, _ := c.Get(k)
	return v
}

func (c *cache) put(k cacheKey, value any, size int) {
	if size <= cacheBytes/4 {
		c.Put(k, value, size, cacheBytes)
	}
}
