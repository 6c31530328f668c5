package render

import (
	"crypto/sha256"
	"html/template"
	"sync"
)

// maxRendered limits the bytes of cached HTML per generation.
const maxRendered = 16 << 20

// rendered caches the HTML of recently rendered texts.
var rendered cache

// cache has two generations. When the young one is full, it becomes the old one.
type cache struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]cacheEntry
	size       int
}

type cacheEntry struct {
	html template.HTML
	ok   bool
}

// get returns the cached HTML for a key.
func (c *cache) get(key string) (made template.HTML, ok, known bool) {
	id := sha256.Sum256([]byte(key))
	c.mu.Lock()
	defer c.mu.Unlock()
	e, known := c.young[id]
	if !known {
		if e, known = c.old[id]; known {
			c.add(id, e)
		}
	}
	return e.html, e.ok, known
}

// put caches the HTML for a key.
func (c *cache) put(key string, made template.HTML, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(sha256.Sum256([]byte(key)), cacheEntry{made, ok})
}

func (c *cache) add(id [sha256.Size]byte, e cacheEntry) {
	if c.young == nil || c.size > maxRendered {
		c.young, c.old, c.size = make(map[[sha256.Size]byte]cacheEntry), c.young, 0
	}
	c.young[id] = e
	c.size += len(e.html) + len(id) + 64
}
