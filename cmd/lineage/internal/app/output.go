package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
)

// Emit prints a record.
func (a *App) Emit(r records.Record) error {
	line, err := records.Encode(r)
	if err != nil {
		return err
	}
	_, err = a.Out.W.Write(line)
	return err
}

// Printf prints a result for a person.
func (a *App) Printf(format string, args ...any) {
	fmt.Fprintf(a.Out.W, format, args...) // an error is returned when the buffer is flushed
}

// Print prints a result: the record with --json, otherwise the text.
func (a *App) Print(r records.Record, format string, args ...any) error {
	if a.JSON {
		return a.Emit(r)
	}
	a.Printf(format, args...)
	return nil
}

// listing prints a list of results: records with --json, otherwise the rows of a table.
type listing struct {
	app   *App
	table *screen.Table
	err   error // first error in printing a record
}

// List starts a list. heads are the heads of the columns.
func (a *App) List(heads ...string) *listing {
	return &listing{app: a, table: screen.NewTable(a.Out, heads...)}
}

// Spare names the columns that are left out on a narrow terminal, in the order in which they are left out.
func (l *listing) Spare(heads ...string) { l.table.Spare = heads }

// Optional names the columns that are left out if they are empty.
func (l *listing) Optional(heads ...string) { l.table.Optional = heads }

// Add adds a result. End returns any error.
func (l *listing) Add(r records.Record, row ...screen.Cell) {
	switch {
	case !l.app.JSON:
		l.table.Cells(row...)
	case l.err == nil:
		l.err = l.app.Emit(r)
	}
}

// Row adds a row to the table. The caller prints the record of the result.
func (l *listing) Row(row ...screen.Cell) { l.table.Cells(row...) }

// Failed returns the first error in printing, so that a long list can end early.
func (l *listing) Failed() error { return cmp.Or(l.err, l.table.Failed) }

// End prints the table. If it is empty, a person gets the note, unless that is empty.
func (l *listing) End(note string, args ...any) error {
	if l.table.Len() == 0 && note != "" {
		l.app.Note(note, args...)
	}
	if l.err != nil {
		return l.err
	}
	return l.table.Print()
}

// Cells of tables.
func PlainCell(text string) screen.Cell { return screen.Cell{Text: text} }

func IDCell(text string) screen.Cell { return screen.Cell{Text: text, Style: screen.Yellow} }

func TimeCell(at time.Time) screen.Cell { return screen.Cell{Text: screen.Time(at), Style: screen.Dim} }

func SizeCell(bytes uint64) screen.Cell {
	return screen.Cell{Text: amount.Bytes(bytes), Right: true}
}

func CountCell(number uint64) screen.Cell {
	return screen.Cell{Text: amount.Count(number), Right: true}
}

// RoleCell is the cell of a message's speaker, in the style of the role.
func RoleCell(speaker, role string) screen.Cell {
	return screen.Cell{Text: speaker, Style: screen.OfRole(role)}
}

// MarkCell marks the active or chosen row.
func MarkCell(marked bool) screen.Cell {
	if marked {
		return screen.Cell{Text: "*", Style: screen.Green}
	}
	return PlainCell(" ")
}

// Indented returns a stored text for people: wrapped to the terminal, with indented lines.
func (a *App) Indented(indent, text string) string {
	width := 0
	if a.Out.Width > 0 {
		width = max(a.Out.Width-len(indent), 20)
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

// Facts prints a result: the record with --json, otherwise names and values. Empty values are left out.
func (a *App) Facts(r records.Record, pairs ...[2]string) error {
	if a.JSON {
		return a.Emit(r)
	}
	table := screen.NewTable(a.Out, "", "")
	table.Whole = true // a command is copied
	for _, pair := range pairs {
		if pair[1] != "" {
			table.Row(pair[0], pair[1])
		}
	}
	return table.Print()
}

// Raw returns the writer for results that are content themselves. They are written unchanged, except on a terminal.
func (a *App) Raw() io.Writer {
	if a.Out.Terminal {
		return a.Out.W
	}
	return a.buffer
}

// ExportTo returns the writer for an export to w. In JSON formats, control characters are always escaped.
func ExportTo(w io.Writer, format export.Format) io.Writer {
	if format.ForPrograms() {
		return screen.NewJSONSanitizer(w)
	}
	return w
}

// StdoutName is the name of standard output.
const StdoutName = "-"

// WriteOutput writes a file, or to standard output. With --json, standard output is an error, because the record
// about the file would be mixed with the data.
func (a *App) WriteOutput(name string, write func(io.Writer) error) error {
	if name != StdoutName {
		return writeFile(name, write)
	}
	if a.JSON {
		return Usagef("--json prints a record about the file that is written: name a file, not standard output")
	}
	return write(a.Raw())
}

// writeFile writes a file that appears under its name only when it is complete. If the state of the store expires
// while it is written, it starts again.
func writeFile(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = backend.Repeat(func() error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return errors.Join(f.Truncate(0), write(f))
	})
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Deletion returns the Destruction of what a record names. The record is printed after the deletion.
func (a *App) Deletion(question string, r *records.Deleted, do func(context.Context) error) *Destruction {
	return &Destruction{question, func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		return a.Deleted(r)
	}}
}

// Deleted prints what a command deleted.
func (a *App) Deleted(r *records.Deleted) error {
	return a.Print(r, "deleted %s %s\n", r.What, cmp.Or(r.Name, r.ID))
}
