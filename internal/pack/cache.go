package pack

import (
	"container/list"
	"errors"
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Cache holds recently decoded data of any number of packs, in three shelves of the same
// capacity: dictionaries with their chapters, content, and everything else. So reading
// content does not evict the dictionary and the records that it needs. It is safe for
// concurrent use.
type Cache struct {
	mu    sync.Mutex
	max   int64
	items map[cacheKey]*list.Element

	dictionaries, content, rest shelf
}

// shelf is an LRU list, the latest first.
type shelf struct {
	recent list.List // of *cached
	bytes  int64
}

type cacheKey struct {
	file *File
	kind int
	n    uint64
}

const (
	cachedDictionary = iota
	cachedContent
	cachedIDs
	cachedChapter
	cachedRun
	cachedBegin // the start of a run, by its fingerprint
)

type cached struct {
	key   cacheKey
	value any
	size  int64
}

// NewCache returns a cache of about max bytes per shelf.
func NewCache(max int64) *Cache { return &Cache{max: max, items: map[cacheKey]*list.Element{}} }

func (c *Cache) get(k cacheKey) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[k]
	if !ok {
		return nil
	}
	c.shelf(k).recent.MoveToFront(e)
	return e.Value.(*cached).value
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

func (c *Cache) put(k cacheKey, value any, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[k]; ok {
		return
	}
	on := c.shelf(k)
	c.items[k] = on.recent.PushFront(&cached{k, value, size})
	on.bytes += size
	for on.bytes > c.max && on.recent.Len() > 1 {
		c.drop(on.recent.Back())
	}
}

func (c *Cache) shelf(k cacheKey) *shelf {
	switch {
	case k.kind == cachedDictionary, k.kind == cachedChapter && k.n == 0 && !k.file.Dense:
		return &c.dictionaries
	case k.kind == cachedContent:
		return &c.content
	}
	return &c.rest
}

func (c *Cache) drop(e *list.Element) {
	item := e.Value.(*cached)
	on := c.shelf(item.key)
	on.recent.Remove(e)
	delete(c.items, item.key)
	on.bytes -= item.size
}

// DropContent empties the cache except for dictionaries and their chapters.
func (c *Cache) DropContent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range []*shelf{&c.content, &c.rest} {
		for s.recent.Len() > 0 {
			c.drop(s.recent.Back())
		}
	}
}

// Forget drops everything decoded from a pack.
func (c *Cache) Forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.items {
		if k.file == f {
			c.drop(e)
		}
	}
}
