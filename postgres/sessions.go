package postgres

import (
	"encoding/binary"
	"slices"
	"sync"
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

// clock is the time of the server: the clocks of processes differ.
type clock struct {
	mu     sync.Mutex
	server uint64 // seconds, as they were read
	at     time.Time
}

// set records the current time of the server.
func (c *clock) set(server uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.at = server, time.Now().Round(0) // the monotonic clock stops while a machine sleeps
}

// now returns the time of the server, 0 while it is not known.
func (c *clock) now() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == 0 {
		return 0
	}
	return c.server + uint64(max(time.Since(c.at), 0)/time.Second)
}

// applied returns the commit of a request, or 0 if it was not applied. checkCursor is log.checkCursor.
func applied(state read.Getter, o *backend.Once, checkCursor func(backend.Cursor) error) (uint64, error) {
	s, known, err := sessionOf(state, o.Session)
	if err != nil || known {
		if err == nil {
			return s.Find(o.Session, o.Sequence)
		}
		return 0, err
	}
	v, ok, err := state.Get(keys.Of(keys.TableRequests))
	if err != nil {
		return 0, err
	}
	if horizon := keys.ReadVarints(v); ok && o.Since.Number < horizon.Next() {
		return 0, entries.Uncertain(o.Session, o.Sequence)
	}
	return 0, checkCursor(o.Since)
}

// request adds the entry for the request that a commit answers, and forgets old sessions.
func (j *judging) request(c embedded.Sequenced) error {
	switch {
	case c.Unknown: // it may have been a request
		return j.forget(func(string, session) bool { return true }, c.Number)
	case c.Once == nil:
		return nil
	}
	s, known, err := sessionOf(j.table, c.Once.Session)
	if err != nil {
		return err
	}
	if !known {
		s.Session = entries.Session{Whole: true, First: c.Number}
		if forgets(c.Once.Session) { // to look for them takes time
			if err := j.forgetOld(); err != nil {
				return err
			}
		}
	}
	s.Add(c.Once.Sequence, c.Number)
	s.used = j.clock.now()
	j.builder.Put(keys.Of(keys.TableRequests, c.Once.Session[:]), s.encode())
	return nil
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

// forgetOld forgets the sessions that were not used for long, and the oldest if there are many.
func (j *judging) forgetOld() error {
	all, err := sessionsOf(j.table)
	if err != nil {
		return err
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
	now, age, left := j.clock.now(), uint64(entries.SessionAge/time.Second), mostForgotten
	return j.forget(func(_ string, s session) bool {
		if left == 0 || s.Last >= before && s.used+age >= now {
			return false
		}
		left--
		return true
	}, 0)
}

// sessionsOf returns all sessions by their keys.
func sessionsOf(t *table) (map[string]session, error) {
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

// forget forgets sessions. The horizon is then at or after their first commits, and a number.
func (j *judging) forget(which func(key string, s session) bool, number uint64) error {
	gone, err := forgotten(j.table, which, number)
	for _, e := range gone {
		j.builder.Put(e.Key, e.Value)
	}
	return err
}

// forgotten returns the entries that forget sessions.
func forgotten(t *table, which func(key string, s session) bool, number uint64) (batch []index.Entry, err error) {
	all, err := sessionsOf(t)
	if err != nil {
		return nil, err
	}
	v, ok, err := t.Get(keys.Of(keys.TableRequests))
	if err != nil {
		return nil, err
	}
	stored := keys.ReadVarints(v)
	horizon := uint64(0)
	if ok {
		horizon = stored.Next()
	}
	forgotUpTo := max(horizon, number)
	for key, s := range all {
		if which(key, s) {
			batch = append(batch, index.Entry{Key: []byte(key)})
			forgotUpTo = max(forgotUpTo, s.First)
		}
	}
	if forgotUpTo != horizon {
		batch = append(batch, index.Entry{Key: keys.Of(keys.TableRequests), Value: binary.AppendUvarint(nil, forgotUpTo)})
	}
	return batch, nil
}
