package sealed

import (
	"encoding/binary"
	"math/bits"

	"github.com/lineage-store/lineage/internal/varint"
)

// A group is columns of rows: the keys of a block, or the values of one layout. It has the heads of
// its columns, and then their bits. The head of a column of numbers is that of its vector. If it has
// few different numbers, it has choices: a byte 3, their number (varint), the head of the vector of
// which choice each row has, and that of the vector of the choices. A column of texts is the same
// without the byte 3: the choices are where in the heap each text begins, and where the last one ends.

// column is a column of a group.
type column struct {
	vector
	choices int // 0 if the vector has the numbers
	depth   int // how many earlier vectors follow from each other before this one
	text    bool
	from    vector // the choices
}

// groupReader reads a group.
type groupReader struct {
	rows    int
	columns []column
	memory  [12]column // of columns, if they are few
}

const (
	// maxColumns limits the columns of a group.
	maxColumns = 128
	// maxDepth limits the vectors that follow from each other.
	maxDepth = 3
)

// read reads a group from the start of r. texts says which columns have texts.
func (g *groupReader) read(r *varint.Reader, rows int, texts []bool) error {
	g.rows, g.columns = rows, g.memory[:0]
	for i, text := range texts {
		g.columns = append(g.columns, column{text: text})
		if !g.readHead(r, i) {
			return ErrDamaged
		}
	}
	for i := range g.columns {
		g.columns[i].readBits(r, rows)
	}
	if r.Bad {
		return ErrDamaged
	}
	return nil
}

// readHead reads the head of a column, after those of the columns before it. It reports whether the head is valid.
func (g *groupReader) readHead(r *varint.Reader, i int) bool {
	c := &g.columns[i]
	if !c.text && len(r.Rest) > 0 && r.Rest[0] == ofChoices {
		r.Take(1)
		c.choices = 1 + r.Size(g.rows-1)
	} else if c.text {
		c.choices = r.Size(g.rows)
	}
	c.vector = readVector(r, i)
	switch {
	case r.Bad:
		return false
	case c.text || c.choices > 0:
		c.from = readVector(r, i)
		return c.earlier < 0 && c.from.earlier < 0
	case c.earlier >= 0:
		before := &g.columns[c.earlier]
		c.depth = before.depth + 1
		return c.depth <= maxDepth && !before.text
	}
	return true
}

// readBits reads the bits of a column.
func (c *column) readBits(r *varint.Reader, rows int) {
	c.bits = r.Take(uint64(bytesOf(rows, c.width)))
	if c.text {
		c.from.bits = r.Take(uint64(bytesOf(c.choices+1, c.from.width)))
	} else if c.choices > 0 {
		c.from.bits = r.Take(uint64(bytesOf(c.choices, c.from.width)))
	}
}

// number returns the number in a column, of texts which one.
func (g *groupReader) number(column, row int) uint64 {
	c := &g.columns[column]
	if c.earlier >= 0 {
		return c.after(g.number(c.earlier, row), row)
	}
	x := c.at(row)
	if x < uint64(c.choices) && !c.text {
		x = c.from.at(int(x))
	}
	return x
}

// text returns a text of a column.
func (g *groupReader) text(column int, n uint64, heap []byte) ([]byte, error) {
	c := &g.columns[column]
	if !c.text || n >= uint64(c.choices) {
		return nil, ErrDamaged
	}
	from, to := c.from.at(int(n)), c.from.at(int(n)+1)
	if from > to || to > uint64(len(heap)) {
		return nil, ErrDamaged
	}
	return heap[from:to:to], nil
}

// groupWriter collects the columns of a group.
type groupWriter struct {
	rows    int
	numbers [][]uint64          // of each column
	texts   [][][]byte          // of each column; nil for numbers
	known   []map[string]uint64 // which text
	wide    []map[uint64]bool   // numbers that differ much from the one before
}

// cell is a number or a text of a row.
type cell struct {
	number uint64
	text   []byte
	isText bool
	absent bool // of a text that may be
}

// add adds a row. All rows have the same kinds of cells. It returns about what the row adds to the size.
func (g *groupWriter) add(cells []cell) (size int) {
	for len(g.numbers) < len(cells) {
		g.numbers, g.texts, g.known, g.wide = append(g.numbers, nil), append(g.texts, nil), append(g.known, nil), append(g.wide, nil)
	}
	for i, c := range cells {
		n := c.number
		if c.isText && !c.absent {
			at, ok := g.known[i][string(c.text)]
			if !ok {
				if g.known[i] == nil {
					g.known[i] = map[string]uint64{}
				}
				at = uint64(len(g.texts[i]))
				g.known[i][string(c.text)] = at
				g.texts[i] = append(g.texts[i], append([]byte(nil), c.text...))
				size += len(c.text)
			}
			n += at
		}
		if k := len(g.numbers[i]); k > 0 && n != g.numbers[i][k-1] {
			size += 1 + g.more(i, n, bits.Len64(n^g.numbers[i][k-1])/16)
		}
		g.numbers[i] = append(g.numbers[i], n)
	}
	g.rows++
	return size
}

// more returns the bytes beyond one that a number takes, which are n unless the column has it as a choice.
func (g *groupWriter) more(column int, number uint64, n int) int {
	if n == 0 || g.wide[column][number] {
		return 0
	}
	if g.wide[column] == nil {
		g.wide[column] = map[uint64]bool{}
	}
	g.wide[column][number] = true
	return n
}

// append appends the group, and its texts to the heap.
func (g *groupWriter) append(dst, heap []byte, texts []bool) (_, _ []byte) {
	var head, data []byte
	earlier, depths := make([][]uint64, 0, len(g.numbers)), make([]int, len(g.numbers))
	for i, numbers := range g.numbers {
		if texts[i] {
			earlier = append(earlier, nil)
			places := make([]uint64, 0, len(g.texts[i])+1)
			for _, t := range g.texts[i] {
				places = append(places, uint64(len(heap)))
				heap = append(heap, t...)
			}
			places = append(places, uint64(len(heap)))
			head = binary.AppendUvarint(head, uint64(len(g.texts[i])))
			head, data = appendChoices(head, data, numbers, places)
			continue
		}
		f := fitOf(numbers, earlier)
		var picks, choices []uint64
		if f.width > 8 {
			picks, choices = choose(numbers)
		}
		if k := len(choices); k > 0 && bytesOf(k, f.width)+bytesOf(len(numbers), bits.Len(uint(k-1)))+8 < f.cost(len(numbers)) {
			head = binary.AppendUvarint(append(head, ofChoices), uint64(k-1))
			head, data = appendChoices(head, data, picks, choices)
		} else {
			head, data = appendVector(head, data, numbers, earlier, f)
			if f.mode == withEarlier {
				depths[i] = depths[i-f.back] + 1
			}
		}
		if depths[i] == maxDepth {
			numbers = nil
		}
		earlier = append(earlier, numbers)
	}
	return append(append(dst, head...), data...), heap
}

// appendChoices appends the heads and bits of the vectors of choices.
func appendChoices(head, data []byte, picks, choices []uint64) (h, d []byte) {
	head, data = appendVector(head, data, picks, nil, fitOf(picks, nil))
	return appendVector(head, data, choices, nil, fitOf(choices, nil))
}

// choose returns the different numbers, and of each number which one it is.
func choose(numbers []uint64) (picks, choices []uint64) {
	known := make(map[uint64]uint64, len(numbers))
	for _, x := range numbers {
		n, ok := known[x]
		if !ok {
			n = uint64(len(choices))
			known[x] = n
			choices = append(choices, x)
		}
		picks = append(picks, n)
	}
	return picks, choices
}
