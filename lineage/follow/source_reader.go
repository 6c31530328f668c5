package follow

import (
	"errors"
	"io"

	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// lineReader reads the lines of a source.
type lineReader struct {
	next func() (SourceLine, error, bool)
	stop func()
	rest []byte // of the last line
}

func (l *lineReader) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err, more := l.next()
		if errors.Is(err, ErrNotExact) {
			return 0, err
		}
		if err != nil {
			return 0, &importer.StoreError{Err: err}
		}
		if !more {
			return 0, io.EOF
		}
		l.rest = line.Raw
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
