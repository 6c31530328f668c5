package embedded

import (
	"cmp"
	"container/list"
	"encoding/binary"
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

// trailer returns the trailer fields that identify a commit's session.
func (x *sessions) trailer(o *backend.Once) *journal.OnceWrite {
	if o == nil {
		return nil
	}
	w := &journal.OnceWrite{Session: o.Session, Sequence: o.Sequence}
	if s := x.known[o.Session]; s != nil {
		w.LastCommit, w.LastSequence = s.Last, s.Sequence
	}
	return w
}

// record records the request of a commit from its frame.
func (x *sessions) record(f journal.Frame, put func(key, value []byte)) {
	o := f.Once
	switch {
	case f.Packed, o != nil && o.Unknown: // the commit may have been a request
		for id := range x.known {
			x.forget(id, put)
		}
		x.horizon, x.changed = max(x.horizon, f.Number), true
		if !f.Packed { // replay writes the horizon once, at its end
			x.putHorizon(put)
		}
	case o == nil:
	case o.Back == 0:
		x.note(f.Number, o.Session, o.Sequence, o.First, put)
	default:
		if s := x.last[f.Number-o.Back]; s != nil {
			const first = false
			x.note(f.Number, s.id, s.Sequence+1+uint64(o.Step), first, put)
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

// load reads the sessions from the index, whose last commit has a number. Unreadable ones are forgotten.
func (x *sessions) load(s *index.Snapshot, number uint64) error {
	for entry, err := range s.Scan(keys.Of(keys.TableRequests), keys.PrefixEnd(keys.Of(keys.TableRequests))) {
		if err != nil {
			return err
		}
		if len(entry.Key) == 1 {
			v := keys.ReadVarints(entry.Value)
			x.horizon = max(x.horizon, v.Next())
			err = v.Err()
		} else if len(entry.Key) == 17 {
			loaded := &session{id: [16]byte(entry.Key[1:]), used: x.now()}
			if loaded.Session, err = entries.DecodeSession(entry.Value); err == nil {
				x.known[loaded.id], x.last[loaded.Last] = loaded, loaded
			}
		}
		if err != nil {
			x.horizon, x.changed = number, true
		}
	}
	for _, s := range slices.SortedFunc(maps.Values(x.known), func(a, b *session) int { return cmp.Compare(a.Last, b.Last) }) {
		s.place = x.order.PushBack(s)
	}
	return nil
}
