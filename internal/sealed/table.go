package sealed

import (
	"bytes"
	"fmt"
)

// Table is a table without its blocks. It is safe for concurrent use.
type Table struct {
	shape    Shape
	kinds    int
	counts   [MaxKinds]uint64
	widths   [MaxKinds]int
	sections []section // of each kind, and of the entries
	stored   int64     // size of the blocks
	whole    int64     // before compression
	cache    cache
}

func newTable(shape Shape) *Table {
	t := &Table{shape: shape, kinds: min(len(shape.Owners()), MaxKinds)}
	t.sections = make([]section, t.kinds+1)
	return t
}

func (t *Table) entries() *section { return &t.sections[t.kinds] }

// Size returns the size of all blocks, as stored and before compression.
func (t *Table) Size() (stored, whole int64) { return t.stored, t.whole }

// Reader reads a table.
type Reader struct {
	*Table
	Load Load
}

// block returns a decoded block of a section.
func (r Reader) block(n, i int) (any, error) {
	k := cacheKey{n, i}
	if b := r.cache.get(k); b != nil {
		return b, nil
	}
	at := r.sections[n].blocks[i]
	b, err := r.Load(at.Place)
	if err != nil {
		return nil, err
	}
	if b, err = expand(b, at.whole, at.sum); err != nil {
		return nil, fmt.Errorf("block %d of section %d: %w", i, n, err)
	}
	first := r.sections[n].firsts[i]
	if n < r.kinds {
		ids, err := decodeIDs(b)
		if err != nil || !bytes.Equal(ids.at(0)[:], first) {
			return nil, fmt.Errorf("block %d of section %d: %w", i, n, ErrDamaged)
		}
		r.cache.put(k, ids, len(ids))
		return ids, nil
	}
	d, err := decodeBlock(b, at.count, r.width)
	if err != nil || !bytes.HasPrefix(d.key(0), first) {
		return nil, fmt.Errorf("block %d of section %d: %w", i, n, ErrDamaged)
	}
	r.cache.put(k, d, d.size())
	return d, nil
}

func (r Reader) entryBlock(i int) (*block, error) {
	b, err := r.block(r.kinds, i)
	if err != nil {
		return nil, err
	}
	return b.(*block), nil
}

func (t *Table) width(kind int) int { return t.widths[kind] }

func (r Reader) rank(kind int, id *[idSize]byte) (uint64, bool, error) {
	i := r.sections[kind].find(id[:])
	if i < 0 {
		return 0, false, nil
	}
	b, err := r.block(kind, i)
	if err != nil {
		return 0, false, err
	}
	n, ok := b.(idBlock).search(id)
	return uint64(i)*blockIDs + uint64(n), ok, nil
}

func (r Reader) id(kind int, n uint64) (id [idSize]byte, err error) {
	if n >= r.counts[kind] {
		return id, ErrDamaged
	}
	b, err := r.block(kind, int(n/blockIDs))
	if err != nil {
		return id, err
	}
	return *b.(idBlock).at(int(n % blockIDs)), nil
}

// stored returns the stored key of a key.
func (r Reader) stored(key []byte) ([]byte, error) {
	return appendStored(make([]byte, 0, len(key)+8), r.shape, r, key)
}

// read returns an entry of a block. key is its key, or nil to make it.
func (r Reader) read(b *block, i int, key []byte) (e Entry, err error) {
	stored, value, refs := b.entry(i)
	mem := make([]byte, 0, len(stored)+len(value)+idSize*(len(refs)+2))
	if key == nil {
		if mem, err = appendKey(mem, r.shape, r, stored); err != nil {
			return e, err
		}
		key = mem[:len(mem):len(mem)]
	}
	start := len(mem)
	for _, ref := range refs {
		id, err := r.id(int(ref.kind), ref.n)
		if err != nil {
			return e, err
		}
		mem = append(append(mem, value[:ref.gap]...), id[:]...)
		value = value[ref.gap:]
	}
	mem = append(mem, value...)
	return Entry{Key: key, Value: mem[start:len(mem):len(mem)]}, nil
}

// find returns the block and the place in it of the first entry with a stored key that is not less,
// or the last block and its end.
func (r Reader) find(stored []byte) (n int, b *block, i int, err error) {
	if len(r.entries().blocks) == 0 {
		return 0, nil, 0, nil
	}
	n = max(0, r.entries().find(stored))
	if b, err = r.entryBlock(n); err != nil {
		return 0, nil, 0, err
	}
	if i = b.search(stored); i == len(b.ends) && n+1 < len(r.entries().blocks) {
		n, i = n+1, 0
		b, err = r.entryBlock(n)
	}
	return n, b, i, err
}

// Get returns a key's value, which the caller owns.
func (r Reader) Get(key []byte) (value []byte, ok bool, err error) {
	stored, err := r.stored(key)
	if err != nil {
		return nil, false, err
	}
	n := r.entries().find(stored)
	if n < 0 {
		return nil, false, nil
	}
	b, err := r.entryBlock(n)
	if err != nil {
		return nil, false, err
	}
	i := b.search(stored)
	if i == len(b.ends) || !bytes.Equal(b.key(i), stored) {
		return nil, false, nil
	}
	e, err := r.read(b, i, key)
	return e.Value, err == nil, err
}

// Has reports whether the table has a key.
func (r Reader) Has(key []byte) (bool, error) {
	_, ok, err := r.Get(key)
	return ok, err
}

// Page returns entries in order with from <= key, and < to unless to is nil, as many as are in one
// block and at most limit. next is the key from which others follow, or nil if there are none before
// to. The caller owns the memory.
func (r Reader) Page(from, to []byte, limit int) (entries []Entry, next []byte, err error) {
	stored, err := r.stored(from)
	if err != nil {
		return nil, nil, err
	}
	var end []byte
	if to != nil {
		if end, err = r.stored(to); err != nil {
			return nil, nil, err
		}
	}
	n, b, i, err := r.find(stored)
	if err != nil || b == nil {
		return nil, nil, err
	}
	least := from
	for ; i < len(b.ends) && len(entries) < limit; i++ {
		if to != nil && bytes.Compare(b.key(i), end) >= 0 {
			return entries, nil, nil
		}
		e, err := r.read(b, i, nil)
		if err == nil && bytes.Compare(e.Key, least) < 0 {
			err = ErrDamaged // it would never end
		}
		if err != nil {
			return nil, nil, err
		}
		entries, least = append(entries, e), e.Key
	}
	if i == len(b.ends) && n+1 == len(r.entries().blocks) || len(entries) == 0 {
		return entries, nil, nil
	}
	return entries, append(bytes.Clone(entries[len(entries)-1].Key), 0), nil
}

// Last returns the entry with the greatest key that is at least from, and less than to unless to is
// nil.
func (r Reader) Last(from, to []byte) (e Entry, ok bool, err error) {
	n := len(r.entries().blocks) - 1
	var end []byte
	if to != nil {
		if end, err = r.stored(to); err != nil {
			return e, false, err
		}
		n = r.entries().find(end)
	}
	for ; n >= 0; n-- {
		b, err := r.entryBlock(n)
		if err != nil {
			return e, false, err
		}
		i := len(b.ends)
		if to != nil {
			i = b.search(end)
		}
		if i == 0 {
			continue // all of the block is at the end or after it
		}
		if e, err = r.read(b, i-1, nil); err != nil || bytes.Compare(e.Key, from) < 0 {
			return Entry{}, false, err
		}
		return e, true, nil
	}
	return e, false, nil
}
