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
	fmt.Fprintf(a.Out.W, format, args...) // a failure comes back when the buffer is flushed
}

// Print prints a result: the record under --json, and the text otherwise.
func (a *App) Print(r records.Record, format string, args ...any) error {
	if a.JSON {
		return a.Emit(r)
	}
	a.Printf(format, args...)
	return nil
}

// listing prints results of one kind: records under --json, and the rows of a table otherwise.
type listing struct {
	app   *App
	table *screen.Table
	err   error // the first failure of a record
}

// List begins a listing, whose table has columns with these heads.
func (a *App) List(heads ...string) *listing {
	return &listing{app: a, table: screen.NewTable(a.Out, heads...)}
}

// Add adds a result. An error is returned by end.
func (l *listing) Add(r records.Record, row ...screen.Cell) {
	switch {
	case !l.app.JSON:
		l.table.Cells(row...)
	case l.err == nil:
		l.err = l.app.Emit(r)
	}
}

// Row adds a row to the table. The record of the result is printed by the caller.
func (l *listing) Row(row ...screen.Cell) { l.table.Cells(row...) }

// End prints the table. Where nothing was added, a person reads the note, unless it is empty.
func (l *listing) End(note string, args ...any) error {
	if l.table.Len() == 0 && note != "" {
		l.app.Note(note, args...)
	}
	if l.err != nil {
		return l.err
	}
	return l.table.Print()
}

// The cells of tables.
func PlainCell(text string) screen.Cell { return screen.Cell{Text: text} }

func IDCell(text string) screen.Cell { return screen.Cell{Text: text, Style: screen.Yellow} }

func TimeCell(at time.Time) screen.Cell { return screen.Cell{Text: screen.Time(at), Style: screen.Dim} }

func SizeCell(bytes uint64) screen.Cell {
	return screen.Cell{Text: screen.Bytes(bytes), Right: true}
}

func CountCell(number uint64) screen.Cell {
	return screen.Cell{Text: screen.Count(number), Right: true}
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

// Indented returns a stored text for a person: wrapped to the terminal, its lines indented.
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

// Facts prints a result: the record under --json, and otherwise names and values, without values that are empty.
func (a *App) Facts(r records.Record, pairs ...[2]string) error {
	if a.JSON {
		return a.Emit(r)
	}
	table := screen.NewTable(a.Out, "", "")
	for _, pair := range pairs {
		if pair[1] != "" {
			table.Row(pair[0], pair[1])
		}
	}
	return table.Print()
}

// Raw returns the writer for results that are content themselves: as they are, but for a
// terminal.
func (a *App) Raw() io.Writer {
	if a.Out.Terminal {
		return a.Out.W
	}
	return a.buffer
}

// ExportTo returns the writer of a format to w. Formats that are JSON escape control
// characters wherever they go.
func ExportTo(w io.Writer, format export.Format) io.Writer {
	if format.ForPrograms() {
		return screen.NewJSONFilter(w)
	}
	return w
}

// StdoutName names standard output in place of a file.
const StdoutName = "-"

// WriteOutput writes a file, or to standard output. What is printed about a file that was written has no place beside
// data on standard output: with --json that is an error.
func (a *App) WriteOutput(name string, write func(io.Writer) error) error {
	if name != StdoutName {
		return writeFile(name, write)
	}
	if a.JSON {
		return Usagef("--json prints a record about the file that is written: name a file, not standard output")
	}
	return write(a.Raw())
}

// writeFile writes a file that has its name only when it is whole. If the state of the store that is
// written expires, it begins again.
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

// Deletion returns the destruction of what a record names, which is printed when it is deleted.
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
