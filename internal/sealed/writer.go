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
	ids    []byte
	kind   int // of ids
	added  bool
	last   []byte // key, of Add
	stored []byte
	before []byte // stored key
	parts  []byte // columns of stored
	dicts  dictionaries
	value  cutter
	block  blockWriter
	first  []byte // of the block
	uses   usesWriter
}

// NewWriter returns a writer that passes extents to emit, numbered from 0. Emit does not keep their
// memory. Load returns bytes of extents that were emitted.
func NewWriter(shape Shape, emit func(extent uint32, b []byte) error, load Load) *Writer {
	return &Writer{table: newTable(shape), emit: emit, load: load, uses: usesWriter{limit: maxUses, mixed: mixedCost}}
}

var (
	errOrder    = errors.New("sealed table: keys are out of order")
	errReserved = errors.New("sealed table: the key is one of series")
)

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
	first, count := bytes.Clone(w.ids[:idSize]), len(w.ids)/idSize
	err := w.put(w.kind, first, count, func(dst []byte) []byte { return encodeIDs(dst, w.ids) })
	w.ids = w.ids[:0]
	return err
}

// put writes a block.
func (w *Writer) put(section int, first []byte, count int, encode func(dst []byte) []byte) error {
	if len(w.extent) >= extentSize {
		if err := w.flush(); err != nil {
			return err
		}
	}
	start := len(w.extent)
	w.extent = encode(w.extent)
	s := &w.table.sections[section]
	s.blocks = append(s.blocks, blockAt{
		Location: Location{Extent: w.number, Offset: start, Length: len(w.extent) - start},
		count:    count, sum: crc32.Checksum(w.extent[start:], castagnoli),
	})
	s.firsts = append(s.firsts, first)
	w.table.stored += int64(len(w.extent) - start)
	return nil
}

func (w *Writer) flush() error {
	if len(w.extent) == 0 {
		return nil
	}
	err := w.emit(w.number, w.extent)
	w.dicts.forget()
	w.extent = w.extent[:0]
	w.number++
	return err
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
	w.dicts = dictionaries{Reader: Reader{w.table, w.load}}
	w.uses.shape, w.uses.dicts, w.uses.store = w.table.shape, &w.dicts, w.store
	return nil
}

// Add adds an entry. Keys are not empty; see uses.go for keys that no entry has.
func (w *Writer) Add(key, value []byte) (err error) {
	if !w.added {
		if err := w.begin(); err != nil {
			return err
		}
	}
	if bytes.Compare(w.last, key) >= 0 {
		return errOrder
	}
	if !w.table.shape.isOpen(key) {
		return errReserved
	}
	w.last = append(w.last[:0], key...)
	w.table.whole += int64(len(key) + len(value))
	return w.uses.add(key, value)
}

// store writes an entry.
func (w *Writer) store(key, value []byte) (err error) {
	if w.stored, w.parts, err = appendStored(w.stored[:0], w.parts[:0], w.table.shape, &w.dicts, key); err != nil {
		return err
	}
	if err := w.value.cut(w.table.shape, &w.dicts, key, value); err != nil {
		return err
	}
	if !w.block.takes(w.stored, w.parts, &w.value, len(key)+len(value)) {
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
	w.block.add(w.stored, w.parts, &w.value)
	return nil
}

func (w *Writer) flushBlock() error {
	if w.block.count == 0 {
		return nil
	}
	return w.put(w.table.kinds, w.first, w.block.count, w.block.finish)
}

// Finish ends the table and returns its directory.
func (w *Writer) Finish() (directory []byte, err error) {
	if !w.added {
		if err := w.begin(); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.uses.flush(), w.uses.storePieces(), w.flushBlock(), w.flush()); err != nil {
		return nil, err
	}
	return w.table.encodeDirectory(), nil
}
