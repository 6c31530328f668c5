package screen

import (
	"io"
	"slices"
	"strings"
)

// Table is a table with aligned columns. On a terminal the last column is cut to the remaining width, unless Whole is set.
//
// The first rowsTogether rows are printed together, and determine the columns and their widths. Later ones are printed
// one by one, so that a long table needs no memory.
type Table struct {
	Whole bool
	// Spare are the heads of columns that a narrow terminal does not show, the first one that is left out first.
	Spare []string
	// Optional are the heads of columns that are left out if they are empty.
	Optional []string
	// Failed is the first error in printing.
	Failed error

	screen *Screen
	head   []string
	rows   [][]Cell // not printed
	total  int
	hidden []int // columns that are left out, the last one first
	widths []int // of the others
}

const rowsTogether = 1_000

// Cell is a text in a style.
type Cell struct {
	Text  string
	Style Style
	// Right aligns it to the right.
	Right bool
	// Path is set if the text is cut in its middle.
	Path bool
}

// NewTable returns a table with the given heads, for a screen.
func NewTable(s *Screen, head ...string) *Table { return &Table{screen: s, head: head} }

// Row adds a row of plain cells.
func (t *Table) Row(texts ...string) {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	t.Cells(cells...)
}

// Cells adds a row.
func (t *Table) Cells(cells ...Cell) {
	for i := range cells {
		cells[i].Text = Line(cells[i].Text)
	}
	t.rows = append(t.rows, cells)
	if t.total++; t.total == rowsTogether {
		t.begin()
	}
	if t.total >= rowsTogether {
		t.flush()
	}
}

// Len returns the number of rows.
func (t *Table) Len() int { return t.total }

// Print writes what is left of the table.
func (t *Table) Print() error {
	if t.total > 0 && t.total < rowsTogether {
		t.begin()
	}
	t.flush()
	return t.Failed
}

// flush prints the rows that are not printed.
func (t *Table) flush() {
	for _, row := range t.rows {
		t.print(row)
	}
	t.rows = t.rows[:0]
}

// begin determines the columns, and prints the heads.
func (t *Table) begin() {
	widths, empty := make([]int, len(t.head)), map[string]bool{}
	for i, head := range t.head {
		for _, row := range t.rows {
			if i < len(row) {
				widths[i] = max(widths[i], Width(row[i].Text))
			}
		}
		empty[head] = widths[i] == 0
		widths[i] = max(widths[i], Width(head))
	}
	t.hidden = t.leftOut(widths, empty)
	for _, i := range t.hidden {
		widths = slices.Delete(widths, i, i+1)
	}
	t.widths = widths
	if strings.Join(t.head, "") == "" {
		return
	}
	heads := make([]Cell, len(t.head))
	for i, head := range t.head {
		heads[i] = Cell{Text: head, Style: Dim}
	}
	t.print(heads)
}

// leastLast is the width that spare columns leave to the last one.
const leastLast = 24

// leftOut returns the columns that are left out, the last one first.
func (t *Table) leftOut(widths []int, empty map[string]bool) (out []int) {
	last := len(widths) - 1
	for i, head := range t.head {
		if empty[head] && slices.Contains(t.Optional, head) {
			out = append(out, i)
		}
	}
	if t.screen.Width > 0 && !t.Whole && last >= 0 {
		used := min(widths[last], leastLast)
		for i, width := range widths[:last] {
			if !slices.Contains(out, i) {
				used += width + 2
			}
		}
		for _, head := range t.Spare {
			if used <= t.screen.Width {
				break
			}
			if i := slices.Index(t.head[:last], head); i >= 0 && !slices.Contains(out, i) {
				out = append(out, i)
				used -= widths[i] + 2
			}
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// print writes a row.
func (t *Table) print(row []Cell) {
	if len(t.hidden) > 0 {
		row = slices.Clone(row)
		for _, i := range t.hidden {
			row = slices.Delete(row, i, i+1)
		}
	}
	var w strings.Builder
	used := 0
	for i, c := range row {
		text := c.Text
		last := i == len(row)-1 || i == len(row)-2 && row[i+1].Text == ""
		if last && t.screen.Width > 0 && !t.Whole {
			cut := Cut
			if c.Path {
				cut = CutMiddle
			}
			text = cut(text, max(t.screen.Width-used, 8))
		}
		gap := t.widths[i] - Width(text)
		if c.Right && gap > 0 {
			w.WriteString(strings.Repeat(" ", gap))
			gap = 0
		}
		w.WriteString(t.screen.Paint(c.Style, text))
		if !last {
			w.WriteString(strings.Repeat(" ", max(gap, 0)+2))
		}
		used += max(t.widths[i], Width(c.Text)) + 2
		if last {
			break
		}
	}
	w.WriteByte('\n')
	if t.Failed == nil {
		_, t.Failed = io.WriteString(t.screen.W, w.String())
	}
}
