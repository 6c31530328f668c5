package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/lineage/records"
)

// emit prints a record.
func (a *app) emit(r records.Record) error {
	line, err := records.Encode(r)
	if err != nil {
		return err
	}
	_, err = a.out.W.Write(line)
	return err
}

// printf prints a result for a person.
func (a *app) printf(format string, args ...any) {
	fmt.Fprintf(a.out.W, format, args...) // a failure comes back when the buffer is flushed
}

// print prints a result: the record under --json, and the text otherwise.
func (a *app) print(r records.Record, format string, args ...any) error {
	if a.json {
		return a.emit(r)
	}
	a.printf(format, args...)
	return nil
}

// listing prints results of one kind: records under --json, and the rows of a table otherwise.
type listing struct {
	app   *app
	table *screen.Table
	err   error // the first failure of a record
}

// list begins a listing, whose table has columns with these heads.
func (a *app) list(heads ...string) *listing {
	return &listing{app: a, table: screen.NewTable(a.out, heads...)}
}

// add adds a result. An error is returned by end.
func (l *listing) add(r records.Record, row ...screen.Cell) {
	switch {
	case !l.app.json:
		l.table.Cells(row...)
	case l.err == nil:
		l.err = l.app.emit(r)
	}
}

// row adds a row to the table. The record of the result is printed by the caller.
func (l *listing) row(row ...screen.Cell) { l.table.Cells(row...) }

// end prints the table. Where nothing was added, a person reads the note, unless it is empty.
func (l *listing) end(note string, args ...any) error {
	if l.table.Len() == 0 && note != "" {
		l.app.note(note, args...)
	}
	if l.err != nil {
		return l.err
	}
	return l.table.Print()
}

// The cells of tables.
func plainCell(text string) screen.Cell { return screen.Cell{Text: text} }
func idCell(text string) screen.Cell    { return screen.Cell{Text: text, Style: screen.Yellow} }
func timeCell(at time.Time) screen.Cell { return screen.Cell{Text: screen.Time(at), Style: screen.Dim} }
func sizeCell(bytes uint64) screen.Cell {
	return screen.Cell{Text: screen.Bytes(bytes), Right: true}
}
func countCell(number uint64) screen.Cell {
	return screen.Cell{Text: screen.Count(number), Right: true}
}

// roleCell is the cell of a message's speaker, in the style of the role.
func roleCell(speaker, role string) screen.Cell {
	return screen.Cell{Text: speaker, Style: screen.OfRole(role)}
}

// markCell marks the active or chosen row.
func markCell(marked bool) screen.Cell {
	if marked {
		return screen.Cell{Text: "*", Style: screen.Green}
	}
	return plainCell(" ")
}

// indented returns a stored text for a person: wrapped to the terminal, its lines indented.
func (a *app) indented(indent, text string) string {
	width := 0
	if a.out.Width > 0 {
		width = max(a.out.Width-len(indent), 20)
	}
	var b strings.Builder
	for _, line := range screen.Wrap(plain.Text(text), width) {
		if line != "" {
			b.WriteString(indent + line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// facts prints a result: the record under --json, and otherwise names and values, without values that are empty.
func (a *app) facts(r records.Record, pairs ...[2]string) error {
	if a.json {
		return a.emit(r)
	}
	table := screen.NewTable(a.out, "", "")
	for _, pair := range pairs {
		if pair[1] != "" {
			table.Row(pair[0], pair[1])
		}
	}
	return table.Print()
}
