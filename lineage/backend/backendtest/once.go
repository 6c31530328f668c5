package backendtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// testOnce sends the requests of sessions repeatedly, in any order, and compares the store
// with the commits applied.
func testOnce(t *testing.T, c Config) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &onceModel{t: rt, store: openStore(rt, c, t), sessions: map[byte]*onceSession{}}
		defer func() { require.NoError(rt, m.store.Close()) }()
		rt.Repeat(map[string]func(*rapid.T){
			"request": m.request,
			"again":   m.again,
			"refused": m.refused,
			"nothing": m.nothing,
			"outcome": m.outcome,
			"forget":  m.forget,
			"another": func(*rapid.T) { m.store.applyOnly(m.store.commit(thread("another")), backend.Options{}) },
			"restart": m.restart,
			"":        m.check,
		})
	})
}

// onceModel is the expected state of a store.
type onceModel struct {
	t        *rapid.T
	store    *store
	sessions map[byte]*onceSession
	bodies   int
}

type onceSession struct {
	id      [16]byte
	since   backend.Cursor
	applied map[uint64]backend.Cursor
	bodies  map[uint64]string
	highest uint64
	ended   bool // forgotten, after it applied something
	// reopened is set if the store was reopened since: it may have forgotten the whole
	// session, but not a part of it.
	reopened bool
}

// forgotten reports whether an error, permitted here, says that the session is unknown.
func (s *onceSession) forgotten(err error) bool {
	s.ended = s.ended || s.reopened && errors.Is(err, backend.ErrUncertain)
	return s.ended
}

func (m *onceModel) restart(*rapid.T) {
	m.store.restart()
	for _, s := range m.sessions {
		s.reopened = true
	}
}

func (m *onceModel) session(t *rapid.T) *onceSession {
	name := rapid.SampledFrom([]byte{1, 2, 3}).Draw(t, "session")
	s := m.sessions[name]
	if s == nil || s.ended {
		head, err := m.store.Head(background)
		require.NoError(t, err)
		s = &onceSession{since: head, applied: map[uint64]backend.Cursor{}, bodies: map[uint64]string{}}
		m.bodies++
		copy(s.id[:], fmt.Sprintf("%c %d", name, m.bodies))
		m.sessions[name] = s
	}
	return s
}

func (s *onceSession) once(sequence uint64) *backend.Once {
	return &backend.Once{Session: s.id, Since: s.since, Sequence: sequence}
}

// tooOld reports whether a sequence is outside the window.
func (s *onceSession) tooOld(sequence uint64) bool {
	return s.highest >= backend.OnceWindow && sequence <= s.highest-backend.OnceWindow
}

// send sends a new request.
func (m *onceModel) send(t *rapid.T, s *onceSession, sequence uint64) {
	m.bodies++
	body := fmt.Sprint("request ", m.bodies)
	commit := m.store.commit(text(body))
	o := backend.Options{Once: s.once(sequence), Durability: backend.Normal}
	if s.ended || s.tooOld(sequence) {
		_, err := m.store.Apply(background, commit, o)
		require.ErrorIs(t, err, backend.ErrUncertain)
		return
	}
	if s.reopened {
		if _, err := m.store.Outcome(background, *o.Once); s.forgotten(err) {
			_, err := m.store.Apply(background, commit, o)
			require.ErrorIs(t, err, backend.ErrUncertain)
			return
		}
	}
	receipt := m.store.applyOnly(commit, o)
	require.False(t, receipt.Repeated)
	s.applied[sequence], s.bodies[sequence], s.highest = receipt.Cursor, body, max(s.highest, sequence)
}

func (m *onceModel) request(t *rapid.T) {
	s := m.session(t)
	sequence := s.highest + rapid.SampledFrom([]uint64{1, 1, 1, 2, 5, 40, 90}).Draw(t, "ahead")
	if back := rapid.Uint64Range(0, 80).Draw(t, "back"); back > 60 && back < sequence {
		sequence -= back // out of order, or too old
	} else if back < 10 && back < sequence {
		sequence -= back
	}
	if _, ok := s.applied[sequence]; ok || sequence == 0 {
		return
	}
	m.send(t, s, sequence)
}

// again repeats an applied request, with the same commit or another.
func (m *onceModel) again(t *rapid.T) {
	s := m.session(t)
	if len(s.applied) == 0 {
		return
	}
	sequence := rapid.SampledFrom(slices.Sorted(maps.Keys(s.applied))).Draw(t, "sequence")
	o := backend.Options{Once: s.once(sequence)}
	if rapid.Bool().Draw(t, "stale") { // its expectations no longer hold
		o.Threads = []backend.ExpectThread{{ID: id[structure.ThreadID]("another"), Was: thread("nobody")}}
	}
	receipt, err := m.store.Apply(background, m.store.commit(text(s.bodies[sequence])), o)
	if s.tooOld(sequence) || s.forgotten(err) {
		require.ErrorIs(t, err, backend.ErrUncertain)
		return
	}
	require.NoError(t, err)
	require.Equal(t, backend.Receipt{Cursor: s.applied[sequence], Repeated: true}, receipt)
}

// refused sends a request that is refused and leaves no trace.
func (m *onceModel) refused(t *rapid.T) {
	s := m.session(t)
	if _, err := m.store.Outcome(background, *s.once(s.highest + 1)); s.forgotten(err) {
		return
	}
	for sequence, want := range map[uint64]error{0: backend.ErrInvalid, s.highest + 1: backend.ErrNotFound} {
		_, err := m.store.Apply(background, m.store.commit(view("v", "missing", structure.SpanRef{})), backend.Options{Once: s.once(sequence)})
		require.ErrorIs(t, err, want)
	}
	_, err := m.store.Outcome(background, *s.once(s.highest + 1))
	require.ErrorIs(t, err, backend.ErrNotFound)
}

// nothing sends a request that adds nothing: it never creates a commit, however often it is
// sent.
func (m *onceModel) nothing(t *rapid.T) {
	s := m.session(t)
	if len(s.bodies) == 0 {
		return
	}
	head := m.store.head()
	body := rapid.SampledFrom(slices.Sorted(maps.Values(s.bodies))).Draw(t, "body")
	for range 2 {
		receipt, err := m.store.Apply(background, m.store.commit(text(body)), backend.Options{Once: s.once(s.highest + 1)})
		if s.forgotten(err) {
			return
		}
		require.NoError(t, err)
		require.Equal(t, head, receipt.Number)
	}
}

func (m *onceModel) outcome(t *rapid.T) {
	s := m.session(t)
	sequence := rapid.Uint64Range(1, s.highest+3).Draw(t, "sequence")
	receipt, err := m.store.Outcome(background, *s.once(sequence))
	at, applied := s.applied[sequence]
	switch {
	case s.tooOld(sequence), s.forgotten(err):
		require.ErrorIs(t, err, backend.ErrUncertain)
	case applied:
		require.NoError(t, err)
		require.Equal(t, backend.Receipt{Cursor: at, Repeated: true}, receipt)
	default:
		require.ErrorIs(t, err, backend.ErrNotFound)
	}
}

// forget ends a session. None of its requests is applied again.
func (m *onceModel) forget(t *rapid.T) {
	s := m.session(t)
	require.NoError(t, m.store.Forget(background, s.id))
	require.NoError(t, m.store.Forget(background, s.id), "again")
	if s.reopened = true; len(s.applied) == 0 {
		return
	}
	s.ended = true
	for _, sequence := range []uint64{1, s.highest, s.highest + 1} {
		m.send(t, s, sequence)
		_, err := m.store.Outcome(background, *s.once(sequence))
		require.ErrorIs(t, err, backend.ErrUncertain)
	}
	// An earlier session that has not applied anything may have to be restarted.
	for name, other := range m.sessions {
		if len(other.applied) == 0 && other != s {
			delete(m.sessions, name)
		}
	}
}

func (m *onceModel) check(t *rapid.T) {
	require.Equal(t, m.store.model.number, m.store.head(), "each request once")
}

// testOnceTogether sends the same requests from many goroutines: each is applied once, and
// all senders get the same receipt.
func testOnceTogether(t *testing.T, c Config) {
	c.Reopen = false
	s := newStore(t, c)
	const senders, requests = 8, 40
	receipts := make([][requests]backend.Receipt, senders)
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			for k := range requests {
				sequence := uint64((k+i*5)%requests + 1) // each sender has another order
				o := backend.Options{Once: &backend.Once{Session: [16]byte{1}, Sequence: sequence}}
				if i%2 == 0 {
					o.Durability = backend.Normal
				}
				receipt, err := s.Apply(background, &structure.Commit{Records: []structure.Record{thread(fmt.Sprint(sequence))}}, o)
				if err != nil {
					t.Error(err)
				}
				receipts[i][sequence-1] = receipt
			}
		})
	}
	all.Wait()
	require.EqualValues(t, requests, s.head())
	for k := range requests {
		first := 0
		for i := range senders {
			require.Equal(t, receipts[0][k].Cursor, receipts[i][k].Cursor)
			if !receipts[i][k].Repeated {
				first++
			}
		}
		require.Equal(t, 1, first, "request %d", k+1)
	}
}
