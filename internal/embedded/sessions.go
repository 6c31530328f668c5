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

// sessions records which requests were applied. Frames contain their requests, but packs do not, so sessions are kept
// in the index. The horizon stands for the forgotten sessions. The write lock guards sessions.
//
// A session is forgotten when its client asks for it. The session with the oldest last request is also forgotten if there
// are more than entries.MaxSessions, or if that request is older than entries.SessionAge.
type sessions struct {
	known map[[16]byte]*session
	last  map[uint64]*session // by the number of the session's last commit
	// order has the sessions ordered by their last requests.
	order *list.List
	now   func() time.Time
	// horizon is a commit at or after the first commit of every forgotten session. So an unknown session that began
	// at the horizon or later has applied nothing.
	horizon uint64
	changed bool // the index has an older horizon
}

// session is one session.
type session struct {
	entries.Session
	id    [16]byte
	used  time.Time     // when it was last used or loaded by this process
	place *list.Element // in sessions.order
}

func newSessions() sessions {
	return sessions{known: make(map[[16]byte]*session), last: make(map[uint64]*session), order: list.New(), now: time.Now}
}

// applied returns the commit of a request, or 0 if it was not applied.
func (e *Engine) applied(o *backend.Once) (uint64, error) {
	if s := e.sessions.known[o.Session]; s != nil {
		return s.Find(o.Session, o.Sequence)
	}
	if o.Since.Number < e.sessions.horizon {
		return 0, entries.Uncertain(o.Session, o.Sequence)
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
		w.LastCommit, w.LastSequence = s.Last, s.Sequence
	}
	return w
}

// request records the request of a commit from its frame.
func (e *Engine) request(b *entries.Builder, f journal.Frame) {
	o := f.Once
	switch {
	case f.Packed, o != nil && o.Unknown: // the commit may have been a request
		for id := range e.sessions.known {
			e.sessions.forget(id, b.Put)
		}
		e.sessions.horizon, e.sessions.changed = max(e.sessions.horizon, f.Number), true
		if !f.Packed { // replay writes the horizon once, at its end
			e.sessions.putHorizon(b.Put)
		}
	case o == nil:
	case o.Back == 0:
		e.sessions.note(f.Number, o.Session, o.Sequence, o.First, b.Put)
	default:
		if s := e.sessions.last[f.Number-o.Back]; s != nil {
			e.sessions.note(f.Number, s.id, s.Sequence+1+uint64(o.Step), false, b.Put)
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
		s = &session{Session: entries.Session{Whole: first, First: number}, id: id}
		x.known[id] = s
		s.place = x.order.PushBack(s)
	}
	delete(x.last, s.Last)
	x.last[number] = s
	s.Add(sequence, number)
	s.used = x.now()
	x.order.MoveToBack(s.place)
	put(keys.Of(keys.TableRequests, id[:]), s.Encode())
	for oldest := x.oldest(); len(x.known) > entries.MaxSessions || s.used.Sub(oldest.used) > entries.SessionAge; oldest = x.oldest() {
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
	delete(x.last, s.Last)
	x.order.Remove(s.place)
}

func (x *sessions) forget(id [16]byte, put func(key, value []byte)) {
	s := x.known[id]
	x.remove(s)
	if x.horizon < s.First {
		x.horizon, x.changed = s.First, true
	}
	put(keys.Of(keys.TableRequests, id[:]), nil)
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
			v := keys.ReadVarints(entry.Value)
			e.sessions.horizon = max(e.sessions.horizon, v.Next())
			err = v.Err()
		} else if len(entry.Key) == 17 {
			one := &session{id: [16]byte(entry.Key[1:]), used: e.sessions.now()}
			if one.Session, err = entries.DecodeSession(entry.Value); err == nil {
				e.sessions.known[one.id], e.sessions.last[one.Last] = one, one
			}
		}
		if err != nil {
			e.sessions.horizon, e.sessions.changed = state.Number, true
		}
	}
	for _, one := range slices.SortedFunc(maps.Values(e.sessions.known), func(a, b *session) int { return cmp.Compare(a.Last, b.Last) }) {
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
