package follow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A database is not recorded as a file: it has much else, and changes everywhere. Of each of its sessions a source has the rows,
// one on a line, in the order in which they were read: a row that has changed is there again. So the last state of every row is kept,
// also of those that the database has no longer, and what is written is what has changed.

// rowsOf caches the rows of a database's sessions that are in the store.
type rowsOf struct {
	sessions map[string]*sessionRows
	used     time.Time
}

// sessionRows are the rows of a session: a hash of the last state of each row, by a hash of its key.
type sessionRows struct {
	record *recorder // nil if no rows are recorded
	states map[rowHash]rowHash
}

// rowsPath returns the name of the source for the rows of a session.
func rowsPath(database, session string) string { return database + "/" + session }

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
		if s, err = r.rowsInStore(ctx, f, session); err != nil {
			return err
		}
		f.rows.sessions[session] = s
	}
	if s.record == nil {
		return nil
	}
	for i := range rows {
		key, state := hashOf([]byte(rows[i].Key)), hashOf(rows[i].JSON)
		if s.states[key] == state {
			continue
		}
		s.states[key] = state
		for part := range rowParts(append(rows[i].JSON, '\n')) {
			s.record.add(ctx, session, thread, []importer.Line{{RawLine: archive.RawLine{Raw: part}}})
		}
	}
	return s.record.err
}

// rowsInStore returns the stored rows of a session.
func (r *run) rowsInStore(ctx context.Context, f *file, session string) (*sessionRows, error) {
	about := r.sourceOf(f)
	about.Path, about.Rows = rowsPath(f.path, session), true
	s := &sessionRows{states: make(map[rowHash]rowHash)}
	found, err := FindSource(ctx, r.store, r.options.Machine.ID, about.Path)
	if err != nil && !errors.Is(err, lineage.ErrNotFound) {
		return nil, err
	}
	sum, known := sha256.New(), found
	if found != nil {
		for line, err := range found.rows(ctx) {
			switch {
			case errors.Is(err, lineage.ErrErased): // recording the rows again would bring it back
				return s, nil
			case errors.Is(err, ErrNotExact), errors.Is(err, lineage.ErrCorrupt),
				errors.Is(err, lineage.ErrNotFound): // its thread, which rows may be stored before
				known = nil
			case err != nil:
				return nil, err
			}
			if err != nil {
				break
			}
			row := bytes.TrimSuffix(line, []byte("\n"))
			s.states[hashOf([]byte(rowKey(row)))] = hashOf(row)
			sum.Write(line)
		}
	}
	if known == nil {
		clear(s.states)
		sum.Reset()
	}
	s.record = record(r.store, r.options.Machine, about, known, sum)
	if s.record.seen = true; known == nil && found != nil {
		s.record.was = found.tip
	}
	return s, nil
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
