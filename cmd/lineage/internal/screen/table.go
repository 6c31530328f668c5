package screen

import (
	"bufio"
	"slices"
	"strings"
)

// Table is a table with aligned columns. On a terminal the last column is cut to the remaining width, unless Whole is set.
type Table struct {
	Whole bool
	// Spare are the heads of columns that a narrow terminal does not show, the first one that is left out first.
	Spare  []string
	screen *Screen
	head   []string
	rows   [][]Cell
}

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
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Print writes the table.
func (t *Table) Print() error {
	widths := make([]int, len(t.head))
	for i, h := range t.head {
		widths[i] = Width(h)
	}
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], Width(c.Text))
		}
	}
	w := bufio.NewWriter(t.screen.W)
	if len(t.rows) == 0 {
		return nil
	}
	head := make([]Cell, len(t.head))
	for i, h := range t.head {
		head[i] = Cell{Text: h, Style: Dim}
	}
	hidden := t.hidden(widths)
	for _, i := range hidden {
		widths = slices.Delete(widths, i, i+1)
	}
	if len(head) > 0 && strings.Join(t.head, "") != "" {
		t.print(w, shown(head, hidden), widths)
	}
	for _, row := range t.rows {
		t.print(w, shown(row, hidden), widths)
	}
	return w.Flush()
}

// leastLast is the width that spare columns leave to the last one.
const leastLast = 24

// hidden returns the columns that are left out, the last one first.
func (t *Table) hidden(widths []int) (hidden []int) {
	if t.screen.Width == 0 || t.Whole || len(widths) == 0 {
		return nil
	}
	last := len(widths) - 1
	used := min(widths[last], leastLast)
	for _, width := range widths[:last] {
		used += width + 2
	}
	for _, name := range t.Spare {
		if used <= t.screen.Width {
			break
		}
		if i := slices.Index(t.head[:last], name); i >= 0 {
			hidden = append(hidden, i)
			used -= widths[i] + 2
		}
	}
	slices.Sort(hidden)
	slices.Reverse(hidden)
	return hidden
}

// shown returns a row without hidden columns.
func shown(row []Cell, hidden []int) []Cell {
	if len(hidden) == 0 {
		return row
	}
	row = slices.Clone(row)
	for _, i := range hidden {
		row = slices.Delete(row, i, i+1)
	}
	return row
}

func (t *Table) print(w *bufio.Writer, row []Cell, widths []int) {
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
		gap := widths[i] - Width(text)
		if c.Right && gap > 0 {
			w.WriteString(strings.Repeat(" ", gap))
			gap = 0
		}
		w.WriteString(t.screen.Paint(c.Style, text))
		if !last {
			w.WriteString(strings.Repeat(" ", max(gap, 0)+2))
		}
		used += widths[i] + 2
		if last {
			break
		}
	}
	w.WriteByte('\n')
}
