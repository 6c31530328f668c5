package sealed

// dictionaries reads ids and their numbers. It keeps the block of each kind that it read last.
type dictionaries struct {
	Reader
	last [MaxKinds]struct {
		ids   idBlock
		block int // plus 1
	}
}

func (r *dictionaries) ids(kind, i int) (*idBlock, error) {
	last := &r.last[kind]
	if last.block == i+1 {
		return &last.ids, nil
	}
	b, err := r.bytes(kind, i)
	if err != nil {
		return nil, err
	}
	last.block = 0
	if last.ids, err = readIDs(b, r.sections[kind].firsts[i], r.sections[kind].blocks[i].count); err != nil {
		return nil, damaged(kind, i)
	}
	last.block = i + 1
	return &last.ids, nil
}

// forget forgets the blocks, whose bytes are valid for a time only.
func (r *dictionaries) forget() {
	for i := range r.last {
		r.last[i].block = 0
	}
}

// rank returns the place of an id among those of a kind. ok is false if it is not one of them.
func (r *dictionaries) rank(kind int, id *[idSize]byte) (place uint64, ok bool, err error) {
	i := r.sections[kind].find(id[:])
	if i < 0 {
		return 0, false, nil
	}
	b, err := r.ids(kind, i)
	if err != nil {
		return 0, false, err
	}
	n, ok := b.search(id)
	return uint64(i)*blockIDs + uint64(n), ok, nil
}

// id returns the id with a number.
func (r *dictionaries) id(kind int, n uint64) (id [idSize]byte, err error) {
	if n >= r.counts[kind] {
		return id, ErrDamaged
	}
	b, err := r.ids(kind, int(n/blockIDs))
	if err != nil {
		return id, err
	}
	return b.at(int(n % blockIDs)), nil
}
