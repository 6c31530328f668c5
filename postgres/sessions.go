package postgres

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// session is a session, and the server's time of its last request in seconds. The entry begins with that.
type session struct {
	entries.Session
	used uint64
}

func (s *session) encode() []byte { return append(binary.AppendUvarint(nil, s.used), s.Encode()...) }

func decodeSession(b []byte) (s session, err error) {
	v := keys.ReadVarints(b)
	if s.used, err = v.Next(), v.Err(); err == nil {
		s.Session, err = entries.DecodeSession(v.Rest)
	}
	return s, err
}

// sessionOf returns what is known of a session.
func sessionOf(state read.Getter, id [16]byte) (s session, known bool, err error) {
	v, known, err := state.Get(keys.Of(keys.TableRequests, id[:]))
	if err == nil && known {
		s, err = decodeSession(v)
	}
	return s, known, err
}

// applied returns the commit of a request, or 0 if it was not applied. checkCursor is log.checkCursor.
func applied(state read.Getter, o *backend.Once, checkCursor func(backend.Cursor) error) (uint64, error) {
	s, known, err := sessionOf(state, o.Session)
	if err != nil {
		return 0, err
	}
	if known {
		return s.Find(o.Session, o.Sequence)
	}
	horizon, err := horizonOf(state)
	if err != nil {
		return 0, err
	}
	if o.Since.Number < horizon {
		return 0, entries.Uncertain(o.Session, o.Sequence)
	}
	return 0, checkCursor(o.Since)
}

// horizonOf returns the number of a commit: sessions that began up to it may have been forgotten.
func horizonOf(state read.Getter) (uint64, error) {
	v, ok, err := state.Get(keys.Of(keys.TableRequests))
	if err != nil || !ok {
		return 0, err
	}
	number := keys.ReadVarints(v)
	return number.Next(), nil
}

// requestEntries returns the entry for the request that a commit answers, and entries that forget old sessions.
func requestEntries(t *stateReader, c *clock, commit embedded.Sequenced) (batch []index.Entry, err error) {
	switch {
	case commit.Unknown: // it may have been a request
		return forgotten(t, func(string, session) bool { return true }, commit.Number)
	case commit.Once == nil:
		return nil, nil
	}
	s, known, err := sessionOf(t, commit.Once.Session)
	if err != nil {
		return nil, err
	}
	if !known {
		s.Session = entries.Session{Whole: true, First: commit.Number}
		if forgets(commit.Once.Session) { // to look for them takes time
			if batch, err = forgetOld(t, c.now()); err != nil {
				return nil, err
			}
		}
	}
	s.Add(commit.Once.Sequence, commit.Number)
	s.used = c.now()
	return append(batch, index.Entry{Key: keys.Of(keys.TableRequests, commit.Once.Session[:]), Value: s.encode()}), nil
}

const (
	// forgetEvery is the number of sessions one of which forgets old ones when it begins.
	forgetEvery = 16
	// mostForgotten limits what it forgets: the store is held.
	mostForgotten = 4096
)

// forgets reports whether a session forgets old ones when it begins. Their ids are random; numbers of commits are not.
func forgets(id [16]byte) bool {
	sum := byte(0)
	for _, b := range id {
		sum ^= b
	}
	return sum%forgetEvery == 0
}

// forgetOld returns the entries that remove sessions: those that were not used for long, and the oldest if there are too many.
func forgetOld(t *stateReader, now uint64) ([]index.Entry, error) {
	all, err := sessionsOf(t)
	if err != nil {
		return nil, err
	}
	last := make([]uint64, 0, len(all))
	for _, s := range all {
		last = append(last, s.Last)
	}
	slices.Sort(last)
	before := uint64(0)
	if many := len(last) - entries.MaxSessions + 1; many > 0 {
		before = last[many]
	}
	age, left := uint64(entries.SessionAge/time.Second), mostForgotten
	return forgotten(t, func(_ string, s session) bool {
		if left == 0 || s.Last >= before && s.used+age >= now {
			return false
		}
		left--
		return true
	}, 0)
}

// sessionsOf returns all sessions by their keys.
func sessionsOf(t *stateReader) (map[string]session, error) {
	all := make(map[string]session)
	prefix := keys.Of(keys.TableRequests)
	for e, err := range t.Scan(prefix, keys.PrefixEnd(prefix)) {
		if err != nil {
			return nil, err
		}
		if len(e.Key) > 1 {
			if all[string(e.Key)], err = decodeSession(e.Value); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// forgotten returns the entries that forget sessions. The horizon is then at or after their first commits, and a number.
func forgotten(t *stateReader, chosen func(key string, s session) bool, number uint64) (batch []index.Entry, err error) {
	all, err := sessionsOf(t)
	if err != nil {
		return nil, err
	}
	horizon, err := horizonOf(t)
	if err != nil {
		return nil, err
	}
	forgotUpTo := max(horizon, number)
	for key, s := range all {
		if chosen(key, s) {
			batch = append(batch, index.Entry{Key: []byte(key)})
			forgotUpTo = max(forgotUpTo, s.First)
		}
	}
	if forgotUpTo != horizon {
		batch = append(batch, index.Entry{Key: keys.Of(keys.TableRequests), Value: binary.AppendUvarint(nil, forgotUpTo)})
	}
	return batch, nil
}
