package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// roll seals the last segment and creates the next. The old one is made durable
// first, so that no commit can survive without an earlier one.
func (j *Journal) roll(old *segment) (*segment, error) {
	trimmed, err := j.trim(old)
	switch {
	case err != nil:
		return nil, err
	case trimmed: // its size must be durable too
		err = j.sync.again()
	default:
		err = j.Sync(j.tail.last)
	}
	if err != nil {
		return nil, err
	}
	next, err := j.create(old.segment+1, j.tail.last+1)
	if err != nil {
		return nil, err
	}
	j.segmentsMu.Lock()
	j.use(append(slices.Clip(j.segments), next))
	j.segmentsMu.Unlock()
	j.releaseOld()
	j.sync.switchTo(next.file)
	j.tail.mapped.none, j.tail.stated = false, false
	return next, nil
}

// create creates an empty, durable segment. The header is durable before any
// frame follows it.
func (j *Journal) create(number uint32, first uint64) (*segment, error) {
	h := header{segment: number, first: first, store: j.store, created: time.Now()}
	rand.Read(h.salt[:])
	s := &segment{name: filepath.Join(j.dir, segmentName(number))}
	s.init(h)
	s.end.Store(headerSize)
	f, err := j.opt.FS.Create(s.name)
	if errors.Is(err, fs.ErrExist) {
		// It was left by an earlier attempt: all current segments have smaller
		// numbers.
		if err = j.opt.FS.Remove(s.name); err == nil {
			f, err = j.opt.FS.Create(s.name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	if _, err = f.WriteAt(h.encode(), 0); err == nil {
		if err = f.Sync(); err == nil {
			err = j.opt.FS.SyncDir(j.dir)
		}
	}
	if err != nil {
		f.Close()
		// Opening the journal removes a segment without frames.
		if removeErr := j.opt.FS.Remove(s.name); removeErr != nil {
			j.opt.Logger.Warn("unused segment is not removed", "file", s.name, "err", removeErr)
		}
		return nil, fmt.Errorf("create segment %s: %w", s.name, err)
	}
	s.file = f
	return s, nil
}
