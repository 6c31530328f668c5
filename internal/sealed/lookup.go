package sealed

import (
	"bytes"
	"sync"
)

// lookup is what a call of a Reader reads.
type lookup struct {
	dictionaries
	blockReader
}

var lookups = sync.Pool{New: func() any { return new(lookup) }}

// begin returns a lookup, which ends with end.
func (r Reader) begin() *lookup {
	l := lookups.Get().(*lookup)
	l.Reader = r
	return l
}

func (l *lookup) end() {
	l.Reader = Reader{}
	l.forget()
	lookups.Put(l)
}

// enter reads a block of entries.
func (l *lookup) enter(i int) error {
	b, err := l.bytes(l.kinds, i)
	if err != nil {
		return err
	}
	if err := l.blockReader.read(b, l.entries().blocks[i].count, l.kinds); err != nil {
		return damaged(l.kinds, i)
	}
	l.blockReader.cache, l.blockReader.number, l.in = &l.Table.cache, i, &l.dictionaries
	return nil
}

// entry returns an entry of the block. key is its key, or nil to make it.
func (l *lookup) entry(i int, key []byte) (e Entry, err error) {
	var memory [128]byte
	if e.Key = key; key == nil {
		stored, err := l.appendKey(memory[:0], i)
		if err != nil {
			return e, err
		}
		if e.Key, err = appendKey(make([]byte, 0, len(stored)+2*idSize), l.shape, &l.dictionaries, stored); err != nil {
			return e, err
		}
	}
	value, err := l.appendValue(memory[:0], &l.dictionaries, i)
	if err == nil {
		e.Value = append(make([]byte, 0, len(value)), value...)
	}
	return e, err
}

// find reads the block and finds the place in it of the first entry with a stored key that is not
// less, or the last block and its end. It returns -1 if there are no blocks.
func (l *lookup) find(stored []byte) (n, i int, err error) {
	if len(l.entries().blocks) == 0 {
		return -1, 0, nil
	}
	n = max(0, l.entries().find(stored))
	if err = l.enter(n); err != nil {
		return 0, 0, err
	}
	if i, _, err = l.search(stored); err == nil && i == l.count && n+1 < len(l.entries().blocks) {
		n, i = n+1, 0
		err = l.enter(n)
	}
	return n, i, err
}

// get finds the entry with a key.
func (l *lookup) get(key []byte) (i int, ok bool, err error) {
	var memory [128]byte
	stored, err := l.stored(memory[:0], key)
	if err != nil {
		return 0, false, err
	}
	n := l.entries().find(stored)
	if n < 0 {
		return 0, false, nil
	}
	if err := l.enter(n); err != nil {
		return 0, false, err
	}
	return l.search(stored)
}

// page does what Page does, with the stored entries: pointers are not replaced by uses.
func (l *lookup) page(from, to []byte, limit int) (entries []Entry, next []byte, err error) {
	stored, err := l.stored(nil, from)
	if err != nil {
		return nil, nil, err
	}
	var end []byte
	if to != nil {
		if end, err = l.stored(nil, to); err != nil {
			return nil, nil, err
		}
	}
	n, i, err := l.find(stored)
	if err != nil || n < 0 {
		return nil, nil, err
	}
	least, size := from, 0
	for ; i < l.count && len(entries) < limit && size < 1<<20; i++ {
		if to != nil {
			if c, err := l.compare(i, end); err != nil || c >= 0 {
				return entries, nil, err
			}
		}
		e, err := l.entry(i, nil)
		if err == nil && (bytes.Compare(e.Key, least) < 0 || len(entries) > 0 && bytes.Equal(e.Key, least)) {
			err = damaged(l.kinds, n) // it would never end
		}
		if err != nil {
			return nil, nil, err
		}
		entries, least, size = append(entries, e), e.Key, size+len(e.Value)
	}
	if i == l.count && n+1 == len(l.entries().blocks) || len(entries) == 0 {
		return entries, nil, nil
	}
	return entries, append(bytes.Clone(entries[len(entries)-1].Key), 0), nil
}

// last is Last of the entries as they are stored.
func (l *lookup) last(from, to []byte) (e Entry, ok bool, err error) {
	n := len(l.entries().blocks) - 1
	var end []byte
	if to != nil {
		if end, err = l.stored(nil, to); err != nil {
			return e, false, err
		}
		n = l.entries().find(end)
	}
	for ; n >= 0; n-- {
		if err := l.enter(n); err != nil {
			return e, false, err
		}
		i := l.count
		if to != nil {
			if i, _, err = l.search(end); err != nil {
				return e, false, err
			}
		}
		if i == 0 {
			continue // all of the block is at the end or after it
		}
		if e, err = l.entry(i-1, nil); err != nil || bytes.Compare(e.Key, from) < 0 {
			return Entry{}, false, err
		}
		return e, true, nil
	}
	return e, false, nil
}
