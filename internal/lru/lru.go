// Package lru caches the most recently used values, up to a total size in bytes.
package lru

import (
	"container/list"
	"sync"
)

// Cache caches values by key. It is safe for concurrent use. The zero value is an empty cache.
type Cache[K comparable, V any] struct {
	mu     sync.Mutex
	items  map[K]*list.Element
	recent list.List // of *item, the latest first
	size   int
}

type item[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// Get returns a cached value.
func (c *Cache[K, V]) Get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[k]
	if !ok {
		return v, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(*item[K, V]).value, true
}

// Put caches a value with its size in bytes, and drops others until all of them have at most most bytes. The value
// itself is kept whatever its size. A cached value is not replaced.
func (c *Cache[K, V]) Put(k K, v V, size, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[k]; ok {
		return
	}
	if c.items == nil {
		c.items = make(map[K]*list.Element)
	}
	c.items[k] = c.recent.PushFront(&item[K, V]{k, v, size})
	for c.size += size; c.size > most && c.recent.Len() > 1; {
		c.drop(c.recent.Back())
	}
}

func (c *Cache[K, V]) drop(e *list.Element) {
	last := c.recent.Remove(e).(*item[K, V])
	delete(c.items, last.key)
	c.size -= last.size
}

// Delete drops the values whose keys match.
func (c *Cache[K, V]) Delete(matches func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.items {
		if matches(k) {
			c.drop(e)
		}
	}
}

// Clear empties the cache.
func (c *Cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items, c.size = nil, 0
	c.recent.Init()
}

// Len returns the number of values.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

// Size returns the size of the values in bytes.
func (c *Cache[K, V]) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}
