package memtable

// Moment is the state of a table when it was sealed. It is safe for concurrent use.
type Moment struct {
	table *Table
	at    uint32
}

// Seal returns the current moment. Later changes are not visible in it. Only the
// writer may call it.
func (t *Table) Seal() Moment {
	m := Moment{t, t.now}
	t.now++
	return m
}

// Latest returns the moment that is being written. It must not be read while the
// writer writes.
func (t *Table) Latest() Moment { return Moment{t, t.now} }

// Get returns the value of a key; ok with a nil value is a deletion. The caller
// must not change it.
func (m Moment) Get(key []byte) (value []byte, ok bool) {
	prefix := Prefix(key)
	id := m.shown(m.table.next(m.before(prefix, key), 0))
	if id == 0 {
		return nil, false
	}
	n := m.table.node(id)
	if !m.table.has(n, prefix, key) {
		return nil, false
	}
	return m.table.bytes(n.value), true
}

// Last returns the entry with the greatest key less than to; a nil to has no end.
func (m Moment) Last(to []byte) (key, value []byte, ok bool) {
	t := m.table
	for {
		var id uint32
		if to == nil {
			id = t.end()
		} else {
			id = m.before(Prefix(to), to)
		}
		if id == 0 {
			return nil, nil, false
		}
		// That is the key's oldest node; the visible one precedes it.
		key = t.bytes(t.node(id).key)
		if value, ok = m.Get(key); ok {
			return key, value, true
		}
		to = key
	}
}

// before returns the last node before all entries of a key.
func (m Moment) before(prefix uint64, key []byte) uint32 {
	before := uint32(0)
	for level := maxHeight - 1; level >= 0; level-- {
		before = m.table.walk(before, level, prefix, key)
	}
	return before
}

// end returns the last node, or 0.
func (t *Table) end() uint32 {
	last := uint32(0)
	for level := maxHeight - 1; level >= 0; level-- {
		for next := t.next(last, level); next != 0; next = t.next(last, level) {
			last = next
		}
	}
	return last
}

// shown returns the first node, from the given one on, that is visible at the
// moment.
func (m Moment) shown(id uint32) uint32 {
	for id != 0 {
		n := m.table.node(id)
		if n.moment <= m.at {
			break
		}
		id = n.next.Load()
	}
	return id
}

// Cursor reads entries in order, including deletions. It is not safe for concurrent
// use.
type Cursor struct {
	moment Moment
	id     uint32
}

// Seek returns a cursor at the first entry with a key not less than from.
func (m Moment) Seek(from []byte) Cursor {
	c := Cursor{moment: m}
	c.Seek(from)
	return c
}

// Seek moves to the first entry with a key not less than from.
func (c *Cursor) Seek(from []byte) {
	c.id = c.moment.shown(c.moment.table.next(c.moment.before(Prefix(from), from), 0))
}

// Valid reports whether the cursor is at an entry.
func (c *Cursor) Valid() bool { return c.id != 0 }

// Key returns the entry's key. The caller must not change it.
func (c *Cursor) Key() []byte { return c.moment.table.bytes(c.moment.table.node(c.id).key) }

// Value returns the entry's value, or nil for a deletion. The caller must not
// change it.
func (c *Cursor) Value() []byte { return c.moment.table.bytes(c.moment.table.node(c.id).value) }

// Next moves to the next entry.
func (c *Cursor) Next() {
	t := c.moment.table
	was := t.node(c.id)
	for {
		c.id = c.moment.shown(t.node(c.id).next.Load())
		if c.id == 0 {
			return
		}
		// Older values of the same key follow the visible one.
		if !t.has(t.node(c.id), was.prefix, t.bytes(was.key)) {
			return
		}
	}
}
