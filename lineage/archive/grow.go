package archive

import (
	"bufio"
	"errors"
	"fmt"
)

// ErrCannotGrow is returned for an input that must be read whole.
var ErrCannotGrow = errors.New("the input cannot be read as it grows")

// Open returns the input and its format, or a nil input if there is nothing to read yet.
func (f *Feed) Open(name string, o ReadOptions) (*Input, Format, error) {
	formats, err := o.formats()
	if err != nil {
		return nil, Format{}, err
	}
	in := &Input{Name: name, reader: bufio.NewReaderSize(f, HeadSize), limits: o.Limits.OrDefault(), feed: f, path: o.Path}
	if _, err := in.reader.Peek(1); err != nil {
		return nil, Format{}, f.err
	}
	format, ok := formats[0], o.Format != ""
	if !ok {
		format, ok = detect(formats, in)
	}
	switch {
	case f.err != nil:
		return nil, Format{}, f.err
	case !ok:
		return nil, Format{}, fmt.Errorf("%s: %w", in.place(), ErrUnknownFormat)
	case !format.Grows:
		return nil, Format{}, fmt.Errorf("%s: format %s: %w", in.place(), format.Name, ErrCannotGrow)
	}
	return in, format, nil
}
