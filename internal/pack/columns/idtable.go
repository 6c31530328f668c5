package columns

// IDs numbers the ids in a pack that is being written: 1 for the first, in the order of their first use.
type IDs struct {
	numbers map[[16]byte]uint32
	derived map[uint32]bool
	first   uint32 // the first number of the current chapter
	fresh   []ID   // the ids that first occur in it
}

// NewIDs returns an empty table.
func NewIDs() *IDs {
	return &IDs{numbers: map[[16]byte]uint32{}, derived: map[uint32]bool{}, first: 1}
}

// Has reports whether an id has a number. It does not count the ids of commits that are not encoded yet.
func (t *IDs) Has(id [16]byte) bool { return t.numbers[id] != 0 }

// Next begins the next chapter.
func (t *IDs) Next() { t.first, t.fresh = t.first+uint32(len(t.fresh)), nil }

// number returns the number of an id. A new id gets the next number.
func (t *IDs) number(id [16]byte) uint32 {
	if id == ([16]byte{}) {
		return 0
	}
	n, ok := t.numbers[id]
	if !ok {
		n = t.first + uint32(len(t.fresh))
		t.numbers[id] = n
		t.fresh = append(t.fresh, ID{id: id})
	}
	return n
}

// derive records the source that an id is derived from. It returns false if an earlier
// chapter has the id without the source.
func (t *IDs) derive(id [16]byte, source string) bool {
	n := t.number(id)
	if n < t.first {
		return t.derived[n]
	}
	t.fresh[n-t.first].source = source
	t.derived[n] = true
	return true
}
