package postgres

import (
	"sync"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/embedded/recent"
	"github.com/lineage-store/lineage/internal/lru"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// DefaultCache is the size of the caches of an engine, in bytes.
const DefaultCache = 64 << 20

// cache has what does not change in one epoch of one history: rows of the log, and entries of runs and spans. When the
// epoch or the history is another one, it is replaced.
type cache struct {
	frames   read.FrameCache
	contexts *recent.Shared[structure.ContextID, backend.Context] // as they were after a commit of this process
	durable  durable
	digests  *recent.Shared[structure.SpanRef, structure.Digest]

	items lru.Cache[string, any]
	limit int // of items, in bytes

	mu    sync.Mutex
	known known // the state as of which everything here was read, or a later one
}

func newCache(st state, limit int) *cache {
	return &cache{
		known:    st.known(),
		limit:    limit,
		digests:  recent.NewShared[structure.SpanRef, structure.Digest](recent.PlaceOfSpan),
		contexts: recent.NewShared[structure.ContextID, backend.Context](func(id structure.ContextID) uint64 { return recent.PlaceOfID(id) }),
	}
}

// Digest implements read.Digests.
func (c *cache) Digest(r structure.SpanRef) (structure.Digest, bool) { return c.digests.Get(r) }

// SetDigest implements read.Digests.
func (c *cache) SetDigest(r structure.SpanRef, d structure.Digest) { c.digests.Set(r, d) }

// last returns the latest state that was read. If the log has its row, everything in the cache is still true.
func (c *cache) last() known {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// advance records a later state of the same history.
func (c *cache) advance(later state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if later.epoch == c.known.epoch && later.Number > c.known.Number {
		c.known = later.known()
	}
}

// overhead is the memory of an item besides its key and value.
const overhead = 200

func (c *cache) put(key string, value any, size int) {
	if size += len(key) + overhead; size <= c.limit {
		c.items.Put(key, value, size, c.limit)
	}
}

// rowKey is the key of a row of the log. Keys of entries begin with letters.
func rowKey(first uint64) string { return "\x00" + string(keys.Uint64(first)) }

func (c *cache) row(first uint64) ([]embedded.Sequenced, bool) {
	v, ok := c.items.Get(rowKey(first))
	if !ok {
		return nil, false
	}
	return v.([]embedded.Sequenced), true
}

// putRow caches the commits of a row.
func (c *cache) putRow(first uint64, commits []embedded.Sequenced) {
	size := 0
	for i := range commits {
		size += len(commits[i].Payload) + 100
	}
	c.put(rowKey(first), commits, size)
}

// fixed reports whether the entry of a key never changes in an epoch.
func fixed(key []byte) bool { return key[0] == keys.TableSpan || key[0] == keys.TableRun }

// fixedEntry is an entry that does not change, and the number of a state that has it.
type fixedEntry struct {
	value []byte
	since uint64
}

// entry returns an entry that does not change, if it is known to be there in a state.
func (c *cache) entry(key []byte, at uint64) ([]byte, bool) {
	if !fixed(key) {
		return nil, false
	}
	v, ok := c.items.Get(string(key))
	if !ok || v.(fixedEntry).since > at {
		return nil, false
	}
	return v.(fixedEntry).value, true
}

func (c *cache) putEntry(key, value []byte, at uint64) {
	if fixed(key) {
		c.put(string(key), fixedEntry{value, at}, len(value))
	}
}
