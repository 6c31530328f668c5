package follow

import (
	"errors"
	"io/fs"
	"time"
)

// look examines a file that may have changed. If it has, it is read next.
func (r *run) look(f *file) {
	err := f.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.gone(f)
	case err != nil:
		r.fail(f, err)
	default:
		r.consider(f, true)
	}
}

// seen queues a file that a scan has found, if it has changed, behind the files that were found earlier.
func (r *run) seen(f *file) { r.consider(f, false) }

// consider queues a file if it has changed. It leaves out a file that is followed only without another one.
func (r *run) consider(f *file, first bool) {
	if !f.queued && f.folder != nil && f.folder.hasFuller(f.path) {
		if f.folder = nil; f.state == nil { // it was never read, and is not gone when it is deleted
			delete(r.files, RecordedPath(f.path))
			return
		}
	}
	if f.state == nil {
		f.state = &State{}
		f.state.setPath(f.path)
	}
	if !f.state.Gone.IsZero() {
		f.state.Gone = time.Time{}
		r.changed(f)
		r.beginAgain(f.state.Conversations, f)
	}
	again := f.state.LeftOut == OtherProject && !r.options.leavesOut(f.state.Project)
	if f.queued || f.folder == nil || f.folder.unread || f.unchanged() && !again || f.now == f.undecided {
		return
	}
	if r.clock.Now().Before(f.rest) {
		r.waiting[f] = f.rest
		return
	}
	f.queued = true
	r.total += f.now.size
	if first {
		r.queue = append([]*file{f}, r.queue...)
	} else {
		r.queue = append(r.queue, f)
	}
}

// gone records that a file is missing.
func (r *run) gone(f *file) {
	delete(r.waiting, f)
	f.partial = time.Time{}
	if other := f.otherPath(); f.folder != nil && exists(other) {
		f.move(other)
		r.look(f)
		return
	}
	if f.state == nil {
		delete(r.files, RecordedPath(f.path))
		return
	}
	if f.state.Gone.IsZero() {
		f.state.Gone = r.clock.Now()
		r.changed(f)
		r.options.Events(Event{Kind: Gone, Agent: f.state.Agent, Path: f.path})
		if r.heldBack(f) {
			r.outdated, r.waitingSent = append(r.outdated, f), false
		}
	}
}

// beginAgain has the files that wait for one of the conversations read again from their start. The conversations are those of a
// file that was read.
func (r *run) beginAgain(conversations []string, read *file) {
	for _, id := range conversations {
		waits := r.waits[id]
		delete(r.waits, id)
		for _, f := range waits {
			if f == read || f.state.Waits != id || !f.state.Gone.IsZero() {
				continue
			}
			r.dropReader(f)
			f.state.Bytes, f.begunAgain = 0, true
			r.changed(f)
			r.look(f)
			if !f.queued { // it is not followed now
				r.waits[id] = append(r.waits[id], f)
			}
		}
	}
}

// heldBack reports whether a file is gone of which a message may have been left out.
func (r *run) heldBack(f *file) bool {
	s := f.state
	if s.Gone.IsZero() || s.Modified != 0 || s.LeftOut != "" || len(s.Conversations) == 0 {
		return false
	}
	format := r.formatNamed(s.Format)
	if isDatabase(f.path) {
		return format.Rows
	}
	return len(s.Conversations) == 1 && format.Name != "" && !format.Grows
}
