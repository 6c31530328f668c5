package embedded

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// absent reports without a lookup that the store lacks an id or content. If it does not, this is not known. The write
// lock guards all but the filter.
type absent struct {
	contexts createdIDs
	runs     createdIDs
	lookups  createdLookups
	filter   storeFilter // has no runs, and no contexts that this process created after opening
}

// begin is called when no other goroutine, in this process or another, can create ids in the store any more.
func (a *absent) begin() {
	last := structure.LastMade()
	a.contexts, a.runs, a.lookups = newCreatedIDs(last), newCreatedIDs(last), newCreatedLookups()
}

func (a *absent) context(id structure.ContextID) bool {
	if made, ok := structure.Made(id); ok {
		return a.contexts.isNew(made)
	}
	return a.filter.lacks(id[:])
}

func (a *absent) run(id structure.RunID) bool {
	made, ok := structure.Made(id)
	return ok && a.runs.isNew(made)
}

// content takes the start of a content id or chunk key.
func (a *absent) content(start []byte) bool {
	k := contentKey(journal.Fingerprint(start))
	return a.filter.lacks(k[:])
}

// stored notes that the store has what a commit adds.
func (a *absent) stored(c *structure.Commit, b *entries.Builder) {
	a.filter.addContents(c)
	for id := range b.Runs.All() {
		if made, ok := structure.Made(id); ok {
			a.runs.add(made)
		}
	}
	for l := range b.Lookups.All() {
		a.lookups.add(l)
	}
	for id, change := range b.Contexts.All() {
		if change.Created {
			a.storedContext(id)
		}
	}
	for id, change := range b.Remnants.All() {
		if change.Was == nil {
			a.storedContext(id)
		}
	}
}

func (a *absent) storedContext(id structure.ContextID) {
	if made, ok := structure.Made(id); ok {
		a.contexts.add(made)
	} else {
		a.filter.add(id[:])
	}
}

// storeFilter is the filter of a store. It is filled in the background after the first
// write; until then every key may exist.
type storeFilter struct {
	ready atomic.Pointer[bloomFilter]
	next  atomic.Pointer[bloomFilter] // being filled
}

// lacks reports that the store does not have the key; false means unknown.
func (s *storeFilter) lacks(key []byte) bool {
	f := s.ready.Load()
	return f != nil && !f.has(key)
}

// contentKey expands the fingerprint of content to a filter key.
func contentKey(print uint32) (key [16]byte) {
	x := uint64(print) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xbf58476d1ce4e5b9
	binary.LittleEndian.PutUint64(key[:], x^x>>29)
	x = (x + 0x9e3779b97f4a7c15) * 0x94d049bb133111eb
	binary.LittleEndian.PutUint64(key[8:], x^x>>31)
	return key
}

// addContents adds the content of a commit.
func (s *storeFilter) addContents(c *structure.Commit) {
	if s.next.Load() == nil && s.ready.Load() == nil {
		return
	}
	for _, r := range c.Records {
		if id, ok := judge.HashOf(r); ok {
			k := contentKey(journal.Fingerprint(id[:]))
			s.add(k[:])
		}
	}
}

// add adds a key that is being stored. The write lock is held.
func (s *storeFilter) add(key []byte) {
	// A finished filter becomes ready before it stops being next, so in this order it is always seen.
	for _, f := range []*bloomFilter{s.next.Load(), s.ready.Load()} {
		if f != nil {
			f.add(key)
			f.room--
		}
	}
}
