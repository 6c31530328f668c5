package app

import (
	"errors"
	"io"
	"os"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/vfs"
)

// WithDerived calls do with data that is derived from the store, in a file beside it. If that cannot be written, the file is
// made for this call only. While it is brought up to date, a progress line says what is done.
func WithDerived[T io.Closer](s *Session, what string, open func(dir string, progress func(done, total uint64)) (T, error), do func(T) error) (err error) {
	line := s.Progress(what, func(n int64) string { return screen.Plural(n, "commit") })
	defer line.Done()
	progress := func(done, total uint64) { line.Show(int64(done), int64(total)) }
	is, err := open(s.Dir, progress)
	if vfs.IsUnwritable(err) {
		var dir string
		if dir, err = os.MkdirTemp("", "lineage-derived-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		is, err = open(dir, progress)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, is.Close()) }()
	return do(is)
}
