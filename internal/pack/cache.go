package pack

import (
	"errors"

	"github.com/lineage-store/lineage/internal/lru"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Cache holds recently decoded data of any number of packs, in three shelves of the same
// capacity: what other chapters need, which are dictionaries with their chapters, and the
// bodies and objects of chapters; content; and everything else. So reading content does not
// evict the dictionary and the records that it needs, and reading records does not evict the
// content that they name. It is safe for concurrent use.
type Cache struct {
	max                   int
	needed, content, rest lru.Cache[cacheKey, any]
}

type cacheKey struct {
	file *mendedFile
	kind int
	n    uint64
}

const (
	cachedDictionary = iota
	cachedContent
	cachedIDs
	cachedFirst // the first chapter of a pack that has a dictionary
	cachedChapter
	cachedBodies
	cachedObjects
	cachedRun
	cachedBegin // the start of a run, by its fingerprint
)

// NewCache returns a cache of about max bytes per shelf.
func NewCache(max int64) *Cache { return &Cache{max: int(max)} }

func (c *Cache) get(k cacheKey) any {
	v, _ := c.shelf(k).Get(k)
	return v
}

// getOr returns the cached value of a key, or the cached error of decoding it.
func getOr[T any](c *Cache, k cacheKey) (v T, ok bool, err error) {
	switch x := c.get(k).(type) {
	case T:
		return x, true, nil
	case error:
		return v, false, x
	}
	return v, false, nil
}

// fault caches an error about damage, so that damaged data is not decoded repeatedly.
func (c *Cache) fault(k cacheKey, err error) error {
	if errors.Is(err, backend.ErrCorrupt) {
		c.put(k, err, 256)
	}
	return err
}

func (c *Cache) put(k cacheKey, value any, size int64) { c.shelf(k).Put(k, value, int(size), c.max) }

func (c *Cache) shelf(k cacheKey) *lru.Cache[cacheKey, any] {
	switch {
	case k.kind == cachedDictionary, k.kind == cachedFirst, k.kind == cachedBodies, k.kind == cachedObjects:
		return &c.needed
	case k.kind == cachedContent:
		return &c.content
	}
	return &c.rest
}

// DropContent empties the cache except for dictionaries and their chapters.
func (c *Cache) DropContent() {
	c.content.Clear()
	c.rest.Clear()
	c.needed.Delete(func(k cacheKey) bool { return k.kind == cachedBodies || k.kind == cachedObjects })
}

// forget drops everything decoded from a pack.
func (c *Cache) forget(file *mendedFile) {
	for _, shelf := range []*lru.Cache[cacheKey, any]{&c.needed, &c.content, &c.rest} {
		shelf.Delete(func(k cacheKey) bool { return k.file == file })
	}
}
