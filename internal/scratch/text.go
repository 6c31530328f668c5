package scratch

import (
	"io"
	"runtime"

	"github.com/lineage-store/lineage/internal/vfs"
)

// Text has bytes that were written once. A large one is in a temporary file, which is mapped into memory where the system can do
// that: its pages are those of a file, which the system may take back.
type Text struct {
	all    []byte
	mapped bool
}

// Bytes returns all bytes. If the text is mapped, they must not be used when it is not in use any more: see runtime.KeepAlive.
func (t *Text) Bytes() []byte { return t.all }

// Mapped reports whether the bytes are in a mapped file.
func (t *Text) Mapped() bool { return t.mapped }

// TextWriter makes a Text. The zero value keeps it in memory.
type TextWriter struct {
	// Most is the size up to which a text is in memory, 0 for any.
	Most int
	size int
	held []byte // what is in memory; empty if the text is in file
	file *File
	err  error // what was in the file is lost
}

// Len returns the number of bytes written.
func (w *TextWriter) Len() int { return w.size }

// Write adds bytes. A text that no file can be made for, or that the file has no room for, stays in memory.
func (w *TextWriter) Write(p []byte) {
	if w.Most > 0 && w.file == nil && len(w.held)+len(p) > w.Most {
		w.spill()
	}
	if w.file != nil {
		if _, err := w.file.WriteAt(p, int64(w.size)); err == nil {
			w.size += len(p)
			return
		}
		w.unspill()
	}
	w.held, w.size = append(w.held, p...), w.size+len(p)
}

// spill moves the text to a file, if it can.
func (w *TextWriter) spill() {
	f, err := NewFile()
	if err == nil {
		if w.file = f; w.size > 0 {
			_, err = f.WriteAt(w.held, 0)
		}
	}
	if err != nil {
		w.Most = 0
		w.Close()
		return
	}
	w.held = nil
}

// unspill moves the text from the file into memory.
func (w *TextWriter) unspill() {
	w.held, w.Most = make([]byte, w.size), 0
	_, w.err = io.ReadFull(io.NewSectionReader(w.file, 0, int64(w.size)), w.held)
	w.Close()
}

// Text returns what was written, and ends the writer.
func (w *TextWriter) Text() (*Text, error) {
	defer w.Close()
	if w.file != nil {
		mapped, err := vfs.ReadMapped(w.file.File, w.size)
		if err == nil {
			t := &Text{mapped, true}
			runtime.AddCleanup(t, func(mapped []byte) { _ = vfs.Unmap(mapped) }, mapped)
			return t, nil
		}
		w.unspill()
	}
	return &Text{all: w.held}, w.err
}

// Close ends the writer. What cannot be removed, the next process removes.
func (w *TextWriter) Close() {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}
