package follow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
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

// add records the new and changed rows.
func (s *sessionRows) add(ctx context.Context, session string, thread lineage.ThreadID, rows []archive.Row) error {
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
func rowsInStore(ctx context.Context, store *lineage.Store, m Machine, about SourceOf) (*sessionRows, error) {
	s := &sessionRows{states: make(map[rowHash]rowHash)}
	found, err := FindSource(ctx, store, m.ID, about.Path)
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
	s.record = record(store, m, about, known, sum)
	if s.record.seen = true; known == nil && found != nil {
		s.record.was = found.tip
	}
	return s, nil
}
