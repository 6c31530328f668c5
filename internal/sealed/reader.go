package sealed

// Get returns a key's value, which the caller owns.
func (r Reader) Get(key []byte) (value []byte, ok bool, err error) {
	l := r.begin()
	defer l.end()
	if !r.shape.isOpen(key) {
		return nil, false, nil
	}
	i, ok, err := l.get(key)
	if err != nil {
		return nil, false, err
	}
	if !ok {
		return l.getUse(key)
	}
	e, err := l.entry(i, key)
	return e.Value, err == nil, err
}

// Has reports whether the table has a key.
func (r Reader) Has(key []byte) (bool, error) {
	l := r.begin()
	defer l.end()
	if !r.shape.isOpen(key) {
		return false, nil
	}
	_, ok, err := l.get(key)
	if err == nil && !ok {
		_, ok, err = l.getUse(key)
	}
	return ok, err
}

// Page returns entries in order with from <= key, and < to unless to is nil, as many as are in one
// block and at most limit (of series at most minUses more), and no more when they have a MiB. next is the key from which others follow,
// or nil if there are none before to. The caller owns the memory.
func (r Reader) Page(from, to []byte, limit int) (entries []Entry, next []byte, err error) {
	l := r.begin()
	defer l.end()
	if !r.hasSeries() {
		return l.page(from, to, limit)
	}
	return l.pageOfUses(from, beforePieces(to), limit)
}

// Last returns the entry with the greatest key that is at least from, and less than to unless to is
// nil.
func (r Reader) Last(from, to []byte) (e Entry, ok bool, err error) {
	l := r.begin()
	defer l.end()
	if !r.hasSeries() {
		return l.last(from, to)
	}
	return l.lastOfUses(from, beforePieces(to))
}
