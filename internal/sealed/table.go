package sealed

import (
	"fmt"
	"iter"
)

// Table is a table without its blocks. It is safe for concurrent use.
type Table struct {
	shape    withSeries
	kinds    int
	counts   [MaxKinds]uint64
	widths   [MaxKinds]int
	sections []section // of each kind, and of the entries
	stored   int64     // size of the blocks
	whole    int64     // size of the entries
	cache    cache
}

func newTable(shape Shape) *Table {
	t := &Table{shape: withSeries{shape}, kinds: min(len(shape.Owners()), MaxKinds)}
	t.sections = make([]section, t.kinds+1)
	return t
}

func (t *Table) entries() *section { return &t.sections[t.kinds] }

// Size returns the size of all blocks, and that of the keys and values of all entries.
func (t *Table) Size() (stored, whole int64) { return t.stored, t.whole }

// Block is a block of ids or entries.
type Block struct {
	Location
	Kind  int // of ids; -1 for entries
	Count int
}

// Blocks yields all blocks in their order.
func (t *Table) Blocks() iter.Seq[Block] {
	return func(yield func(Block) bool) {
		for i := range t.sections {
			kind := i
			if i == t.kinds {
				kind = -1
			}
			for _, at := range t.sections[i].blocks {
				if !yield(Block{at.Location, kind, at.count}) {
					return
				}
			}
		}
	}
}

func (t *Table) width(kind int) int { return t.widths[kind] }

// Reader reads a table.
type Reader struct {
	*Table
	Load Load
}

// bytes returns the checked bytes of a block.
func (r Reader) bytes(section, i int) ([]byte, error) {
	at := &r.sections[section].blocks[i]
	b, err := r.Load(at.Location)
	if err == nil && Sum(b) != at.sum {
		err = damaged(section, i)
	}
	return b, err
}

func damaged(section, i int) error {
	return fmt.Errorf("block %d of section %d: %w", i, section, ErrDamaged)
}
