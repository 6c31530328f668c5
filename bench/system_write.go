package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/lineage"
)

// writeSystem is the lower limit: one write per operation, with as many bytes as this store writes,
// and for full durability a data sync.
func (r *run) writeSystem(durability string) system {
	return system{name: nameWrite, durability: durability, bare: true, open: func(ctx context.Context, dir string) (store, error) {
		if err := r.calibrate(ctx); err != nil {
			return nil, err
		}
		f, err := os.Create(filepath.Join(dir, "bare"))
		if err != nil {
			return nil, err
		}
		return &bareFile{file: f, sync: durability == full, extra: r.extendBytes - int64(r.config.MessageBytes), forkBytes: r.forkBytes}, nil
	}}
}

// calibrate measures the bytes that an extend and a fork add to the journal.
func (r *run) calibrate(ctx context.Context) error {
	if r.extendBytes != 0 {
		return nil
	}
	dir, err := os.MkdirTemp(r.dir, "calibrate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := lineage.Open(ctx, dir, lineage.Options{Durability: lineage.Normal})
	if err != nil {
		return err
	}
	defer s.Close()
	journal := func() (int64, error) {
		stats, err := s.Stats(ctx)
		return int64(stats.StoredBytes - stats.IndexBytes), err
	}
	h, err := (&lineageStore{store: s}).start(ctx)
	if err != nil {
		return err
	}
	const times = 100
	all := newMessages(&r.config, streamCalibrate).some(times + 1)
	if err := h.extend(ctx, all[times]); err != nil {
		return err
	}
	at, err := journal()
	if err != nil {
		return err
	}
	for _, m := range all[:times] {
		if err := h.extend(ctx, m); err != nil {
			return err
		}
	}
	extended, err := journal()
	if err != nil {
		return err
	}
	for range times {
		if _, err := h.fork(ctx, 0); err != nil {
			return err
		}
	}
	forked, err := journal()
	r.extendBytes, r.forkBytes = (extended-at)/times, (forked-extended)/times
	return err
}

type bareFile struct {
	file             *os.File
	sync             bool
	extra, forkBytes int64
	buf              []byte
}

func (f *bareFile) write(b []byte) error {
	if _, err := f.file.Write(b); err != nil {
		return err
	}
	if f.sync {
		return dataSync(f.file)
	}
	return nil
}

func (f *bareFile) start(context.Context) (history, error) { return f, nil }

func (f *bareFile) size() (int64, error) {
	info, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *bareFile) close() error { return f.file.Close() }

func (f *bareFile) extend(_ context.Context, message []byte) error {
	f.buf = append(append(f.buf[:0], message...), make([]byte, f.extra)...)
	return f.write(f.buf)
}

func (f *bareFile) load(context.Context, [][]byte) error { return nil } // there are no histories

func (f *bareFile) fork(context.Context, int) (history, error) {
	return f, f.write(append(f.buf[:0], make([]byte, f.forkBytes)...))
}

func (f *bareFile) read(context.Context, int) (int, error) { return 0, errors.ErrUnsupported }
