package follow

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// keepRows records the new and changed rows of a session.
func (r *run) keepRows(ctx context.Context, f *file, session string, thread lineage.ThreadID, rows []archive.Row) error {
	if session == "" || f.folder.agent.Name == "" {
		return nil
	}
	if f.rows == nil {
		f.rows = &rowsOf{sessions: make(map[string]*sessionRows)}
	}
	s := f.rows.sessions[session]
	if s == nil {
		var err error
		about := r.sourceOf(f)
		about.Path, about.Rows = rowsPath(f.path, session), true
		if s, err = rowsInStore(ctx, r.store, r.options.Machine, about); err != nil {
			return err
		}
		f.rows.sessions[session] = s
	}
	return s.add(ctx, session, thread, rows)
}

// flushRows commits the recorded rows of a database. again is set if another process recorded some meanwhile.
func (r *run) flushRows(ctx context.Context, f *file) (again bool, err error) {
	if f.rows == nil {
		return false, nil
	}
	for _, s := range f.rows.sessions {
		if s.record == nil || !s.record.pending() {
			continue
		}
		if err = s.record.flush(ctx); err != nil {
			r.dropRows(f)
			if isOvertaken(err) {
				return true, nil
			}
			return false, err
		}
	}
	f.rows.used = r.clock.Now()
	r.withRows = append(slices.DeleteFunc(r.withRows, func(other *file) bool { return other == f }), f) // the most recently used is last
	return false, nil
}

// dropRows drops the cached rows of a database.
func (r *run) dropRows(f *file) {
	f.rows = nil
	r.withRows = slices.DeleteFunc(r.withRows, func(other *file) bool { return other == f })
}
