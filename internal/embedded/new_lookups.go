package embedded

import (
	"hash/maphash"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// createdLookups records the source ids in homes that began after the store was opened, so that a new one in them needs no
// lookup. It may have ids that the store does not have. The write lock must be held.
type createdLookups struct {
	seed  maphash.Seed
	homes map[structure.Home]map[uint64]struct{} // nil for a home whose ids are looked up: it had runs, or has too many ids
	size  int                                    // of all sets
}

// Limits of createdLookups. It starts over with the next home beyond them.
const (
	mostCreatedHomes   = 1 << 10
	mostCreatedLookups = 1 << 17
)

func newCreatedLookups() createdLookups {
	return createdLookups{seed: maphash.MakeSeed(), homes: make(map[structure.Home]map[uint64]struct{})}
}

func (c *createdLookups) hash(l judge.Lookup) uint64 {
	return maphash.String(c.seed, l.SourceID) ^ l.Number*0x9e3779b97f4a7c15
}

// isNew reports that no usage in the home has the source id and number. false means that this is unknown. had reports whether
// the home has runs.
func (c *createdLookups) isNew(l judge.Lookup, had func(structure.Home) bool) bool {
	in, asked := c.homes[l.Home]
	if !asked {
		if len(c.homes) >= mostCreatedHomes || c.size >= mostCreatedLookups {
			clear(c.homes)
			c.size = 0
		}
		if !had(l.Home) {
			in = make(map[uint64]struct{})
		}
		c.homes[l.Home] = in
	}
	_, has := in[c.hash(l)]
	return in != nil && !has
}

// add records that a usage is being stored.
func (c *createdLookups) add(l judge.Lookup) {
	in := c.homes[l.Home]
	if in == nil {
		return
	}
	if c.size++; c.size > mostCreatedLookups {
		c.homes[l.Home] = nil
		c.size -= len(in) + 1
		return
	}
	in[c.hash(l)] = struct{}{}
}
