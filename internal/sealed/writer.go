package sealed

import (
	"bytes"
	"errors"
	"hash/crc32"
)

// Writer writes a table. First the caller passes the keys that define ids to Define, then all entries
// to Add, both in order.
type Writer struct {
	table  *Table
	emit   func(extent uint32, b []byte) error
	load   Load
	extent []byte // not emitted yet
	number uint32 // of that extent
	ids    idBlock
	kind   int // of ids
	added  bool
	last   []byte // key, of Add
	stored []byte
	before []byte // stored key
	refs   []Reference
	cuts   []reference
	rest   []byte
	block  columns
	first  []byte // of the block
	whole  []byte
}

// NewWriter returns a writer that passes extents to emit, numbered from 0. Emit does not keep their
// memory. Load returns bytes of extents that were emitted.
func NewWriter(shape Shape, emit func(extent uint32, b []byte) error, load Load) *Writer {
	return &Writer{table: newTable(shape), emit: emit, load: load}
}

var errOrder = errors.New("sealed table: keys are out of order")

// Define defines the id in a key of an owner; other keys are ignored.
func (w *Writer) Define(key []byte) error {
	owners := w.table.shape.Owners()
	if len(key) <= idSize {
		return nil
	}
	kind := bytes.IndexByte(owners[:w.table.kinds], key[0])
	if kind < 0 {
		return nil
	}
	if kind != w.kind {
		if err := w.flushIDs(); err != nil {
			return err
		}
		if w.kind = kind; w.table.counts[kind] > 0 {
			return errOrder
		}
	}
	if n := len(w.ids); n > 0 || w.table.counts[kind] > 0 {
		switch bytes.Compare(w.last, key[1:1+idSize]) {
		case 0:
			return nil
		case 1:
			return errOrder
		}
	}
	w.last = append(w.last[:0], key[1:1+idSize]...)
	w.ids = append(w.ids, key[1:1+idSize]...)
	w.table.counts[kind]++
	if len(w.ids) == blockIDs*idSize {
		return w.flushIDs()
	}
	return nil
}

func (w *Writer) flushIDs() error {
	if len(w.ids) == 0 {
		return nil
	}
	first := bytes.Clone(w.ids[:idSize])
	w.whole = encodeIDs(w.whole[:0], w.ids)
	count := len(w.ids) / idSize
	w.ids = w.ids[:0]
	return w.put(w.kind, first, count)
}

// put writes the block in whole.
func (w *Writer) put(section int, first []byte, count int) error {
	if len(w.extent) >= extentSize {
		if err := w.flush(); err != nil {
			return err
		}
	}
	start := len(w.extent)
	w.extent = compress(w.extent, w.whole)
	s := &w.table.sections[section]
	s.blocks = append(s.blocks, blockAt{
		Place: Place{Extent: w.number, Offset: start, Length: len(w.extent) - start},
		whole: len(w.whole), count: count, sum: crc32.Checksum(w.extent[start:], castagnoli),
	})
	s.firsts = append(s.firsts, first)
	return nil
}

func (w *Writer) flush() error {
	if len(w.extent) == 0 {
		return nil
	}
	err := w.emit(w.number, w.extent)
	w.extent = w.extent[:0]
	w.number++
	return err
}

// reader reads the dictionaries.
func (w *Writer) reader() Reader {
	return Reader{w.table, w.load}
}

// begin ends the dictionaries.
func (w *Writer) begin() error {
	if err := errors.Join(w.flushIDs(), w.flush()); err != nil {
		return err
	}
	for kind := range w.table.kinds {
		w.table.widths[kind] = widthOf(w.table.counts[kind])
	}
	w.added, w.last = true, nil
	return nil
}

// Add adds an entry. Keys are not empty.
func (w *Writer) Add(key, value []byte) (err error) {
	if !w.added {
		if err := w.begin(); err != nil {
			return err
		}
	}
	if bytes.Compare(w.last, key) >= 0 {
		return errOrder
	}
	w.last = append(w.last[:0], key...)
	r := w.reader()
	if w.stored, err = appendStored(w.stored[:0], w.table.shape, r, key); err != nil {
		return err
	}
	rest, refs, err := w.cut(r, key, value)
	if err != nil {
		return err
	}
	if !w.block.fits(w.stored, rest) {
		if err := w.flushBlock(); err != nil {
			return err
		}
	}
	if w.block.count == 0 { // what distinguishes it from the keys before
		shared := 0
		for shared < len(w.before) && w.before[shared] == w.stored[shared] {
			shared++
		}
		w.first = bytes.Clone(w.stored[:min(shared+1, len(w.stored))])
	}
	w.before = append(w.before[:0], w.stored...)
	w.block.add(w.stored, rest, refs, w.table.width)
	return nil
}

// cut cuts the ids out of a value that dictionaries have. The result is valid until the next call.
func (w *Writer) cut(r Reader, key, value []byte) (rest []byte, refs []reference, err error) {
	w.refs = w.table.shape.References(w.refs[:0], key, value)
	w.cuts, w.rest = w.cuts[:0], w.rest[:0]
	from := 0
	for _, at := range w.refs {
		if at.Offset < from || at.Offset+idSize > len(value) || at.Kind < 0 || at.Kind >= w.table.kinds {
			continue
		}
		n, ok, err := r.rank(at.Kind, (*[idSize]byte)(value[at.Offset:]))
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		w.rest = append(w.rest, value[from:at.Offset]...)
		w.cuts = append(w.cuts, reference{uint32(at.Offset - from), uint8(at.Kind), n})
		from = at.Offset + idSize
	}
	w.rest = append(w.rest, value[from:]...)
	return w.rest, w.cuts, nil
}

func (w *Writer) flushBlock() error {
	if w.block.count == 0 {
		return nil
	}
	count := w.block.count
	w.whole = w.block.finish(w.whole[:0])
	return w.put(w.table.kinds, w.first, count)
}

// Finish ends the table and returns its directory.
func (w *Writer) Finish() (directory []byte, err error) {
	if !w.added {
		if err := w.begin(); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.flushBlock(), w.flush()); err != nil {
		return nil, err
	}
	return w.table.encodeDirectory(), nil
}
