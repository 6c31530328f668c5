package sealed

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/lineage-store/lineage/internal/varint"
)

// A block has entries whose keys begin with the same byte and have the same columns. It is: that
// byte; the number of columns of the keys (varint) and their sizes; the number of layouts (varint), and
// for each its length (varint), itself, and the number of its values (varint); if there are several, the
// group of which layout each entry has, and which of its values; the group of the keys; of each layout
// the size of its group (varint), and the group; the heap.

// blockReader reads a block of entries. It refers to the bytes of the block.
type blockReader struct {
	first   byte
	count   int
	columns []byte // of the keys
	keys    groupReader
	in      *dictionaries // of ids whose tails are in keys
	which   groupReader
	values  []values
	heap    heap
	opened  []byte      // the texts, if they were read
	cache   *cache      // of heaps; may be nil
	number  int         // of the block there
	sample  groupReader // of the values that were read first
	used    bool
}

// values is the values of one layout.
type values struct {
	layout []byte
	rows   int
	bytes  []byte       // of the group
	group  *groupReader // nil if it was not read yet
}

// maxLayouts limits the layouts of a block.
const maxLayouts = 64

// keyColumns reports for each column of keys whether it has texts.
func keyColumns(dst []bool, columns []byte) []bool {
	for _, c := range columns {
		dst = append(dst, c >= textColumn)
	}
	return dst
}

// keyNumber returns the number in a column of keys.
func (d *blockReader) keyNumber(column, row int) (uint64, error) {
	c := d.columns[column]
	if !isTail(c) {
		return d.keys.number(column, row), nil
	}
	n := d.keys.number(column+1, row)
	if n%2 == 0 {
		return 0, ErrDamaged
	}
	id, err := d.in.id(int(c-tailColumn), n/2)
	return readNumber(id[idSize-tailSize+tailStart:]), err
}

// read reads a block of so many entries.
func (d *blockReader) read(b []byte, count, kinds int) error {
	r := varint.Reader{Rest: b}
	var texts [16]bool
	for _, c := range r.Take(1) {
		d.first = c
	}
	d.count, d.opened, d.used, d.cache = count, nil, false, nil
	d.columns = r.Take(r.AtMost(maxColumns))
	n := r.Size(maxLayouts)
	d.values = append(d.values[:0], make([]values, n)...)
	rows := 0
	for i := range d.values {
		v := &d.values[i]
		v.layout = r.Take(r.Next())
		v.rows = r.Size(count)
		if rows += v.rows; !valid(v.layout, kinds) {
			return ErrDamaged
		}
	}
	if r.Bad || rows != count {
		return ErrDamaged
	}
	for i, c := range d.columns {
		last := i+1 == len(d.columns)
		switch {
		case isTail(c):
			if last || d.columns[i+1] > 8 || int(c-tailColumn) >= kinds {
				return ErrDamaged
			}
		case c == 0 || c > 8 && c < textColumn || c == restColumn && !last:
			return ErrDamaged
		}
	}
	if n > 1 {
		if err := d.which.read(&r, count, []bool{false, false}); err != nil {
			return err
		}
	}
	if err := d.keys.read(&r, count, keyColumns(texts[:0], d.columns)); err != nil {
		return err
	}
	for i := range d.values {
		d.values[i].bytes = r.Take(r.Next())
	}
	d.heap = readHeap(&r)
	if d.heap.plain() {
		d.opened = d.heap.stored
	}
	if r.Bad {
		return ErrDamaged
	}
	return nil
}

// texts returns the heap.
func (d *blockReader) texts() ([]byte, error) {
	if d.opened != nil || d.heap.size == 0 {
		return d.opened, nil
	}
	b := d.cache.get(d.number)
	if b == nil {
		var err error
		if b, err = d.heap.texts(); err != nil {
			return nil, err
		}
		d.cache.put(d.number, b)
	}
	d.opened = b
	return b, nil
}

// keyText returns a text of a key.
func (d *blockReader) keyText(column, row int) ([]byte, error) {
	heap, err := d.texts()
	if err != nil {
		return nil, err
	}
	t, err := d.keys.text(column, d.keys.number(column, row), heap)
	if c := d.columns[column]; err == nil && c != restColumn && len(t) > int(c-textColumn) {
		err = ErrDamaged
	}
	return t, err
}

// appendKey appends the stored key of an entry.
func (d *blockReader) appendKey(dst []byte, row int) ([]byte, error) {
	dst = append(dst, d.first)
	for i, c := range d.columns {
		if c < textColumn {
			x, err := d.keyNumber(i, row)
			if err != nil {
				return nil, err
			}
			dst = appendNumber(dst, x, sizeOf(c))
			continue
		}
		t, err := d.keyText(i, row)
		if err != nil {
			return nil, err
		}
		if dst = append(dst, t...); c != restColumn {
			dst = append(dst, padding[:int(c-textColumn)-len(t)]...)
		}
	}
	return dst, nil
}

var padding [restColumn - textColumn]byte

// compare compares the stored key of an entry with another.
func (d *blockReader) compare(row int, key []byte) (int, error) {
	if len(key) == 0 {
		return 1, nil
	}
	if d.first != key[0] {
		return int(d.first) - int(key[0]), nil
	}
	key = key[1:]
	var memory [restColumn - textColumn]byte
	for i, c := range d.columns {
		if c < textColumn {
			x, err := d.keyNumber(i, row)
			if err != nil {
				return 0, err
			}
			size := sizeOf(c)
			if len(key) < size {
				return bytes.Compare(appendNumber(memory[:0], x, size), key), nil
			}
			if y := readNumber(key[:size]); x != y {
				if x < y {
					return -1, nil
				}
				return 1, nil
			}
			key = key[size:]
			continue
		}
		t, err := d.keyText(i, row)
		if err != nil {
			return 0, err
		}
		if c == restColumn {
			return bytes.Compare(t, key), nil
		}
		size := sizeOf(c)
		clear(memory[copy(memory[:size], t):size])
		if n := bytes.Compare(memory[:size], key[:min(size, len(key))]); n != 0 {
			return n, nil
		}
		key = key[size:]
	}
	return -min(len(key), 1), nil
}

// search returns the number of entries with lesser stored keys, and whether there is this one.
func (d *blockReader) search(key []byte) (n int, ok bool, err error) {
	n = sort.Search(d.count, func(i int) bool {
		c, e := d.compare(i, key)
		if e != nil {
			err = e
		}
		ok = ok || c == 0
		return c >= 0
	})
	return n, ok, err
}

// appendValue appends the value of an entry.
func (d *blockReader) appendValue(dst []byte, in *dictionaries, row int) ([]byte, error) {
	v := &d.values[0]
	if len(d.values) > 1 {
		n := d.which.number(0, row)
		if n >= uint64(len(d.values)) {
			return nil, ErrDamaged
		}
		at := d.which.number(1, row)
		if v = &d.values[n]; at >= uint64(v.rows) {
			return nil, ErrDamaged
		}
		row = int(at)
	}
	if len(v.layout) == 0 {
		return dst, nil
	}
	if v.group == nil {
		var texts [32]bool
		columns := columnsOf(texts[:0], v.layout)
		if len(columns) > maxColumns {
			return nil, ErrDamaged
		}
		g := &d.sample
		if d.used {
			g = new(groupReader)
		}
		if err := g.read(&varint.Reader{Rest: v.bytes}, v.rows, columns); err != nil {
			return nil, err
		}
		v.group, d.used = g, true
	}
	var heap []byte
	for i := range v.group.columns {
		if v.group.columns[i].text {
			var err error
			if heap, err = d.texts(); err != nil {
				return nil, err
			}
			break
		}
	}
	return join(dst, v.layout, in, v.group, row, heap)
}

// blockWriter collects the entries of a block.
type blockWriter struct {
	first   byte
	columns []byte
	keys    groupWriter
	which   groupWriter
	layouts []string
	values  []*groupWriter
	count   int
	size    int      // about that of the block
	few     [][]byte // the keys, if they are few
	cells   []cell
}

// takes reports whether a block has space for an entry. The first one always fits.
func (w *blockWriter) takes(key, columns []byte, value *cutter, size int) bool {
	switch {
	case w.count == 0:
		return true
	case key[0] != w.first || w.count == maxCount || size > blockSize || w.layout(value.layout) == maxLayouts:
		return false
	case w.count < fewCount:
		return w.size <= 4*blockSize
	}
	return w.size <= blockSize && (w.plain() || bytes.Equal(columns, w.columns))
}

// plain reports whether the keys are not divided.
func (w *blockWriter) plain() bool { return len(w.columns) == 1 && w.columns[0] == restColumn }

// layout returns the number of a layout.
func (w *blockWriter) layout(layout []byte) int {
	for i, l := range w.layouts {
		if l == string(layout) {
			return i
		}
	}
	return len(w.layouts)
}

// add adds an entry with a stored key, which is not empty.
func (w *blockWriter) add(key, columns []byte, value *cutter) {
	switch {
	case w.count == 0:
		w.first, w.columns = key[0], append(w.columns[:0], columns...)
	case !bytes.Equal(columns, w.columns) && !w.plain():
		w.columns = append(w.columns[:0], restColumn)
		w.keys, w.size = groupWriter{}, 0
		for _, k := range w.few {
			w.key(k)
		}
	}
	if w.count < fewCount {
		w.few = append(w.few, bytes.Clone(key))
	}
	w.key(key)
	n := w.layout(value.layout)
	if n == len(w.layouts) {
		w.layouts, w.values = append(w.layouts, string(value.layout)), append(w.values, &groupWriter{})
	}
	w.which.add([]cell{{number: uint64(n)}, {number: uint64(w.values[n].rows)}})
	w.size += w.values[n].add(value.cells)
	w.count++
}

// key adds a stored key.
func (w *blockWriter) key(key []byte) {
	w.cells = w.cells[:0]
	key = key[1:]
	for _, c := range w.columns {
		switch {
		case isTail(c):
			w.cells = append(w.cells, cell{})
			key = key[sizeOf(c):]
		case c < textColumn:
			w.cells = append(w.cells, cell{number: readNumber(key[:c])})
			key = key[c:]
		case c == restColumn:
			w.cells = append(w.cells, cell{text: key, isText: true})
		default:
			n := sizeOf(c)
			w.cells = append(w.cells, cell{text: bytes.TrimRight(key[:n], "\x00"), isText: true})
			key = key[n:]
		}
	}
	w.size += w.keys.add(w.cells)
}

// finish appends the block and begins another.
func (w *blockWriter) finish(dst []byte) []byte {
	var heap []byte
	dst = append(dst, w.first)
	dst = append(binary.AppendUvarint(dst, uint64(len(w.columns))), w.columns...)
	dst = binary.AppendUvarint(dst, uint64(len(w.layouts)))
	for i, l := range w.layouts {
		dst = append(binary.AppendUvarint(dst, uint64(len(l))), l...)
		dst = binary.AppendUvarint(dst, uint64(w.values[i].rows))
	}
	if len(w.layouts) > 1 {
		dst, heap = w.which.append(dst, heap, []bool{false, false})
	}
	dst, heap = w.keys.append(dst, heap, keyColumns(nil, w.columns))
	var b []byte
	for i, l := range w.layouts {
		b, heap = w.values[i].append(b[:0], heap, columnsOf(nil, []byte(l)))
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	dst = appendHeap(dst, heap)
	*w = blockWriter{columns: w.columns[:0], cells: w.cells[:0]}
	return dst
}
