package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// ReadOptions configure how an archive is read. A zero field means its default, but Formats must be set.
type ReadOptions struct {
	// Format is the name of the archive's format. Default: detected for each file.
	Format string
	// Formats are the formats to detect.
	Formats []Format
	// Limits protect against hostile archives.
	Limits Limits
	// Rows asks formats that read databases to fill Conversation.Rows.
	Rows bool
	// Hold, when not nil, reports whether the message at the end of a session is left out, which its program may write again and
	// has last changed at a time. complete is set if it may be the last state of the message. Formats that do not know this do not ask.
	Hold func(changed time.Time, complete bool) bool
	// Path is the path on disk of an input that grows. It is needed to read files beside it.
	Path string
	// Unchanged, when not nil, reports whether a file on disk need not be read because its content is known. It is
	// not called for files that a format reads together. Only one goroutine calls it.
	Unchanged func(*File) bool
}

// formats returns the formats to detect.
func (o ReadOptions) formats() ([]Format, error) {
	if o.Format == "" {
		return o.Formats, nil
	}
	i := slices.IndexFunc(o.Formats, func(f Format) bool { return f.Name == o.Format })
	if i < 0 {
		return nil, fmt.Errorf("format %q: %w", o.Format, ErrUnknownFormat)
	}
	return o.Formats[i : i+1], nil
}

// Read yields the conversations of an archive without storing them, and a *Damage for each skipped item. The *Damage
// for a file in no known format matches ErrUnknownFormat. Any other error ends the sequence.
func Read(ctx context.Context, src Source, o ReadOptions) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		r, err := newReading(ctx, o)
		if err != nil {
			yield(nil, err)
			return
		}
		r.take = func(e Event) error {
			more := true
			switch {
			case e.Conversation != nil:
				more = yield(e.Conversation, nil)
			case e.Damage != nil:
				more = yield(nil, e.Damage)
			case e.Ignored != "":
				more = yield(nil, Damaged(Position{File: e.Ignored}, ErrUnknownFormat))
			}
			if !more {
				return errStopped
			}
			return nil
		}
		if err := r.run(src); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

var errStopped = errors.New("stopped")

// Event is one result of reading an archive. Exactly one of Conversation, Damage, Repair, Ignored, Input and
// Unchanged is set.
type Event struct {
	Conversation *Conversation
	// Damage reports an item that cannot be used, Repair one that was used after a repair.
	Damage, Repair *Damage
	// Ignored is the name of a file in no known format.
	Ignored string
	// Input is the start of an input. The events up to the next Input belong to it.
	Input *Opened
	// Unchanged is a file that was not read: see ReadOptions.Unchanged.
	Unchanged *File
	// File is the file on disk that the event belongs to. It is nil for none, and without ReadOptions.Unchanged.
	File *File
	// Read is the number of source bytes read so far, before decompression.
	Read int64
}

// Opened describes an input.
type Opened struct {
	// Format is the name of its format, File its name for reports.
	Format, File string
	// Title is the path of the input in the source, without extension. It is used for an untitled conversation that
	// is alone in its input.
	Title string
	// Beside and Bare are those of the input's format.
	Beside, Bare bool
}

// Opened describes the input as one of format f.
func (in *Input) Opened(f Format) *Opened {
	return &Opened{Format: f.Name, File: in.place(), Title: in.title(), Beside: f.Beside, Bare: f.Bare}
}

// reading reads a source.
type reading struct {
	opening
	forced bool
	take   func(Event) error
	bytes  int64
}

func newReading(ctx context.Context, o ReadOptions) (*reading, error) {
	formats, err := o.formats()
	if err != nil {
		return nil, err
	}
	r := &reading{opening: opening{ctx: ctx, formats: formats, limits: o.Limits.OrDefault(), rows: o.Rows, hold: o.Hold}, forced: o.Format != ""}
	if o.Unchanged != nil {
		r.opening.begin = func(f *File) (bool, error) {
			if o.Unchanged(f) {
				return false, r.send(Event{Unchanged: f})
			}
			return true, nil
		}
	}
	return r, nil
}

func (r *reading) run(src Source) error {
	r.opening.passed = func(n int64) { r.bytes += n }
	r.opening.skip = func(d *Damage) { _ = r.send(Event{Damage: d}) }
	r.opening.read = r.input
	return r.opening.source(src)
}

func (r *reading) send(e Event) error {
	e.Read, e.File = r.bytes, r.opening.current
	return r.take(e)
}

// input reads an input.
func (r *reading) input(in *Input) error {
	f, ok := r.formats[0], r.forced
	if !ok {
		f, ok = detect(r.formats, in)
	}
	if !ok {
		for _, f := range r.formats {
			if f.IsBeside != nil && f.IsBeside(in) {
				return r.send(Event{Input: in.Opened(f)})
			}
		}
		if _, err := in.reader.Peek(1); err == nil {
			return r.send(Event{Ignored: cmp.Or(in.place(), "input")})
		}
		return context.Cause(r.ctx) // an empty file, or cancelled
	}
	if err := r.send(Event{Input: in.Opened(f)}); err != nil {
		return err
	}
	found, kept, reported := false, false, false
	for c, err := range f.Conversations(r.ctx, in) {
		var damage *Damage
		switch {
		case errors.As(err, &damage):
			reported = true
			err = r.send(Event{Damage: damage})
		case err == nil:
			found = found || len(c.Empty) > 0 || c.Says()
			kept = kept || len(c.Nodes) > 0 || c.Rest != nil
			reported = reported || len(c.Skipped) > 0
			err = r.send(Event{Conversation: c})
		}
		if err != nil {
			return err
		}
	}
	if err := context.Cause(r.ctx); err != nil {
		return err // the apparent end may be a cancellation
	}
	switch {
	case found || reported:
		return nil
	case kept:
		return r.send(Event{Repair: Damaged(Position{File: in.place()}, fmt.Errorf("%w: read as %s; its records are kept", ErrNoMessages, f.Name))})
	}
	return r.send(Event{Damage: Damaged(Position{File: in.place()}, fmt.Errorf("%w: read as %s", ErrNoMessages, f.Name))})
}
