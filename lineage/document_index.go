package lineage

import "sync"

// documentCache has the document indexes of recently extended contexts.
type documentCache struct {
	mu      sync.Mutex
	indexes map[ContextID]*documentIndex
}

// maxCachedIndexes limits the documentCache.
const maxCachedIndexes = 64

func (s *documentCache) get(id ContextID) *documentIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	index := s.indexes[id]
	if index == nil {
		if s.indexes == nil || len(s.indexes) >= maxCachedIndexes {
			s.indexes = make(map[ContextID]*documentIndex)
		}
		index = new(documentIndex)
		s.indexes[id] = index
	}
	return index
}

// documentIndex has the document revisions on the history up to a span.
type documentIndex struct {
	mu        sync.Mutex
	tip       SpanRef
	length    uint64
	documents map[string]*revisions
}

// revisions are the revisions of one document, by number.
type revisions struct {
	contents map[uint64]ContentID
	latest   uint64
}

// put adds a revision. If several have the same number, the first one counts.
func (s *documentIndex) put(document string, number uint64, id ContentID) {
	r := s.documents[document]
	if r == nil {
		r = &revisions{contents: make(map[uint64]ContentID)}
		s.documents[document] = r
	}
	if _, known := r.contents[number]; !known {
		r.contents[number] = id
	}
	r.latest = max(r.latest, number)
}
