package bundle

import (
	"hash/maphash"

	"github.com/lineage-store/lineage/structure"
)

// sourceKey is a source id and number by which a usage is found.
type sourceKey struct {
	home   structure.Home
	source string
	number uint64
}

// sourceSet has source keys that cannot be looked up, because their thread is created at the end of the import. They are
// kept as fingerprints with a random seed, like references.
type sourceSet struct {
	seed maphash.Seed
	had  map[uint64]struct{}
}

func newSourceSet() sourceSet {
	return sourceSet{seed: maphash.MakeSeed(), had: make(map[uint64]struct{})}
}

func (s *sourceSet) add(l sourceKey) { s.had[maphash.Comparable(s.seed, l)] = struct{}{} }

func (s *sourceSet) has(l sourceKey) bool {
	_, had := s.had[maphash.Comparable(s.seed, l)]
	return had
}
