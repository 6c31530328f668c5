package embedded

import (
	"cmp"
	"container/list"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A session is forgotten when its client asks for it. The session with the oldest last request is
// also forgotten if there are more than maxSessions, or if that request is older than sessionAge.
const (
	maxSessions = 1024
	sessionAge  = 10 * time.Minute
)

// sessions knows which requests were applied. Frames contain their requests, but packs do not, so
// sessions are kept in the index. The horizon represents forgotten sessions. The write lock guards
// it.
type sessions struct {
	known map[[16]byte]*session
	last  map[uint64]*session // by the number of their last commit
	// order has the sessions ordered by their last requests.
	order *list.List
	now   func() time.Time
	// horizon is a commit at or after the first commit of every forgotten session. An unknown
	// session that began at the horizon or later has therefore applied nothing.
	horizon uint64
	changed bool // the index has an older horizon
}

// session is one session.
type session struct {
	id [16]byte
	// whole is set if all commits of the session are known. Otherwise an unknown request may have
	// been applied.
	whole    bool
	first    uint64 // first known commit
	last     uint64 // last commit
	sequence uint64 // of the last commit
	highest  uint64 // highest sequence
	// applied has the requests within the window below highest, ordered by sequence.
	applied []appliedRequest
	used    time.Time     // when it was last used or loaded by this process
	place   *list.Element // in sessions.order
}

type appliedRequest struct{ sequence, commit uint64 }

func bySequence(r appliedRequest, sequence uint64) int { return cmp.Compare(r.sequence, sequence) }

// add records the commit of a request.
func (s *session) add(sequence, commit uint64) {
	s.highest = max(s.highest, sequence)
	at, known := slices.BinarySearchFunc(s.applied, sequence, bySequence)
	if known {
		s.applied[at].commit = commit
	} else {
		s.applied = slices.Insert(s.applied, at, appliedRequest{sequence, commit})
	}
	old := 0
	for s.highest-s.applied[old].sequence >= backend.OnceWindow {
		old++
	}
	s.applied = slices.Delete(s.applied, 0, old)
}

func newSessions() sessions {
	return sessions{known: make(map[[16]byte]*session), last: make(map[uint64]*session), order: list.New(), now: time.Now}
}

// find returns the commit of a request, or 0 if it was not applied.
func (s *session) find(sequence uint64) (uint64, error) {
	if at, ok := slices.BinarySearchFunc(s.applied, sequence, bySequence); ok {
		return s.applied[at].commit, nil
	}
	if !s.whole || s.highest >= backend.OnceWindow && sequence <= s.highest-backend.OnceWindow {
		return 0, uncertain(s.id, sequence)
	}
	return 0, nil
}

func uncertain(id [16]byte, sequence uint64) error {
	return fmt.Errorf("request %d of session %x: %w", sequence, id, backend.ErrUncertain)
}

// applied returns the commit of a request, or 0 if it was not applied.
func (e *Engine) applied(o *backend.Once) (uint64, error) {
	if s := e.sessions.known[o.Session]; s != nil {
		return s.find(o.Sequence)
	}
	if o.Since.Number < e.sessions.horizon {
		return 0, uncertain(o.Session, o.Sequence)
	}
	return 0, e.follows(o.Since)
}

// repeated returns the cursor of a request's commit, if it was applied before.
func (e *Engine) repeated(o *backend.Once) (at backend.Cursor, err error) {
	number, err := e.applied(o)
	if err != nil || number == 0 {
		return at, err
	}
	v := e.now()
	defer v.Close()
	return v.At(number)
}

// onceWrite returns the trailer fields that identify a commit's session.
func (e *Engine) onceWrite(o *backend.Once) *journal.OnceWrite {
	if o == nil {
		return nil
	}
	w := &journal.OnceWrite{Session: o.Session, Sequence: o.Sequence}
	if s := e.sessions.known[o.Session]; s != nil {
		w.LastCommit, w.LastSequence = s.last, s.sequence
	}
	return w
}

// request records the request of a commit from its frame.
func (e *Engine) request(b *entries.Builder, f journal.Frame) {
	o := f.Once
	switch {
	case f.Packed, o != nil && o.Unknown: // it may have been a request
		for id := range e.sessions.known {
			e.sessions.forget(id, b.Put)
		}
		e.sessions.horizon, e.sessions.changed = max(e.sessions.horizon, f.Number), true
		if !f.Packed { // replay puts the horizon once, at its end
			e.sessions.putHorizon(b.Put)
		}
	case o == nil:
	case o.Back == 0:
		e.sessions.note(f.Number, o.Session, o.Sequence, o.First, b.Put)
	default:
		if s := e.sessions.last[f.Number-o.Back]; s != nil {
			e.sessions.note(f.Number, s.id, s.sequence+1+uint64(o.Step), false, b.Put)
		}
	}
}

// note records a request. first is set for the first request of a session.
func (x *sessions) note(number uint64, id [16]byte, sequence uint64, first bool, put func(key, value []byte)) {
	s := x.known[id]
	if s == nil || first {
		if s != nil {
			x.remove(s)
		}
		s = &session{id: id, whole: first, first: number}
		x.known[id] = s
		s.place = x.order.PushBack(s)
	}
	delete(x.last, s.last)
	x.last[number] = s
	s.last, s.sequence = number, sequence
	s.add(sequence, number)
	s.used = x.now()
	x.order.MoveToBack(s.place)
	put(keys.Of(keys.TableRequests, id[:]), s.encode())
	for oldest := x.oldest(); len(x.known) > maxSessions || s.used.Sub(oldest.used) > sessionAge; oldest = x.oldest() {
		x.forget(oldest.id, put)
	}
	x.putHorizon(put)
}

// putHorizon writes the horizon if the index has an older one.
func (x *sessions) putHorizon(put func(key, value []byte)) {
	if x.changed {
		put(keys.Of(keys.TableRequests), binary.AppendUvarint(nil, x.horizon))
		x.changed = false
	}
}

func (x *sessions) oldest() *session { return x.order.Front().Value.(*session) }

func (x *sessions) remove(s *session) {
	delete(x.known, s.id)
	delete(x.last, s.last)
	x.order.Remove(s.place)
}

func (x *sessions) forget(id [16]byte, put func(key, value []byte)) {
	s := x.known[id]
	x.remove(s)
	if x.horizon < s.first {
		x.horizon, x.changed = s.first, true
	}
	put(keys.Of(keys.TableRequests, id[:]), nil)
}

// encode returns the session's index entry.
func (s *session) encode() []byte {
	head := s.first << 1
	if s.whole {
		head |= 1
	}
	b := binary.AppendUvarint(make([]byte, 0, 24+6*len(s.applied)), head)
	b = binary.AppendUvarint(b, s.last-s.first)
	b = binary.AppendUvarint(b, s.sequence)
	var before uint64
	for _, r := range s.applied {
		b = binary.AppendUvarint(b, r.sequence-before)
		b = binary.AppendUvarint(b, r.commit-s.first)
		before = r.sequence
	}
	return b
}

func decodeSession(id [16]byte, b []byte) (*session, error) {
	v := keys.Varints{Rest: b}
	head := v.Next()
	s := &session{id: id, whole: head&1 != 0, first: head >> 1}
	s.last = s.first + v.Next()
	s.sequence = v.Next()
	var sequence uint64
	for v.Err() == nil && len(v.Rest) > 0 {
		sequence += v.Next()
		s.add(sequence, s.first+v.Next())
	}
	return s, v.Err()
}

// loadSessions reads the sessions from the index. Unreadable ones are forgotten.
func (e *Engine) loadSessions(state index.State) error {
	e.sessions = newSessions()
	s := e.index.Snapshot()
	defer s.Close()
	for entry, err := range s.Scan(keys.Of(keys.TableRequests), keys.PrefixEnd(keys.Of(keys.TableRequests))) {
		if err != nil {
			return err
		}
		if len(entry.Key) == 1 {
			v := keys.Varints{Rest: entry.Value}
			e.sessions.horizon = max(e.sessions.horizon, v.Next())
			err = v.Err()
		} else if len(entry.Key) == 17 {
			var one *session
			id := [16]byte(entry.Key[1:])
			if one, err = decodeSession(id, entry.Value); err == nil {
				one.used = e.sessions.now()
				e.sessions.known[id], e.sessions.last[one.last] = one, one
			}
		}
		if err != nil {
			e.sessions.horizon, e.sessions.changed = state.Number, true
		}
	}
	for _, one := range slices.SortedFunc(maps.Values(e.sessions.known), func(a, b *session) int { return cmp.Compare(a.last, b.last) }) {
		one.place = e.sessions.order.PushBack(one)
	}
	return nil
}

// saveHorizon writes entries to the index, and the horizon if the index has an older one. The write
// lock is held, or the store is being opened.
func (e *Engine) saveHorizon(batch []index.Entry) {
	e.sessions.putHorizon(func(key, value []byte) { batch = append(batch, index.Entry{Key: key, Value: value}) })
	if len(batch) > 0 {
		state := e.index.State()
		state.Counts = e.counts.Values()
		e.index.Apply(state, batch)
	}
}

// Outcome implements backend.Engine.
func (e *Engine) Outcome(_ context.Context, o backend.Once) (backend.Receipt, error) {
	if err := e.begin(); err != nil {
		return backend.Receipt{}, err
	}
	defer e.end()
	if err := o.Valid(); err != nil {
		return backend.Receipt{}, err
	}
	e.write.Lock()
	defer e.write.Unlock()
	at, err := e.repeated(&o)
	if err == nil && at.Number == 0 {
		err = fmt.Errorf("request %d of session %x: %w", o.Sequence, o.Session, backend.ErrNotFound)
	}
	if err != nil {
		return backend.Receipt{}, err
	}
	return backend.Receipt{Cursor: at, Repeated: true}, nil
}

// Forget implements backend.Engine.
func (e *Engine) Forget(_ context.Context, id [16]byte) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	if e.opt.ReadOnly {
		return fmt.Errorf("store: %w", backend.ErrReadOnly)
	}
	e.write.Lock()
	defer e.write.Unlock()
	if e.sessions.known[id] == nil {
		return nil
	}
	var batch []index.Entry
	e.sessions.forget(id, func(key, value []byte) { batch = append(batch, index.Entry{Key: key, Value: value}) })
	e.saveHorizon(batch)
	return nil
}
