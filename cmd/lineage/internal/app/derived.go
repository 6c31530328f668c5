package app

import (
	"errors"
	"io"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// WithDerived calls do with data that is derived from the store and kept in a file beside it. If that file cannot be
// written, or is of a newer program, a temporary one is created for this call. A progress line is shown while the data is updated.
func WithDerived[T io.Closer](s *OpenStore, what string, open func(dir string, progress func(done, total uint64)) (T, error), do func(T) error) (err error) {
	line := s.Progress(what, func(n int64) string { return amount.Plural(n, "commit") })
	defer line.Done()
	progress := func(done, total uint64) { line.Show(int64(done), int64(total)) }
	index, remove, err := OpenDerived(s.Dir, func(dir string) (T, error) { return open(dir, progress) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, index.Close(), remove()) }()
	return do(index)
}

// OpenDerived opens data that is derived from a store. Its file is in the store's directory or, if that cannot be
// written or has the file of a newer program, in a temporary one. The caller must call remove after closing the data.
func OpenDerived[T any](dir string, open func(dir string) (T, error)) (opened T, remove func() error, err error) {
	remove = func() error { return nil }
	opened, err = open(dir)
	if !vfs.IsUnwritable(err) && !errors.Is(err, backend.ErrNewerFormat) {
		return opened, remove, err
	}
	own, err := scratch.New()
	if err != nil {
		return opened, remove, err
	}
	remove = own.Remove
	if opened, err = open(own.Path); err != nil {
		err = errors.Join(err, remove())
	}
	return opened, remove, err
}
