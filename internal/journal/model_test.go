package journal

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// model drives a journal and knows its expected contents.
type model struct {
	t    require.TestingT
	fsys *crashfs.FS
	// j is nil after a failed Open.
	j *Journal
	// payloads are those of all appended commits, and ends the ends of their
	// frames.
	payloads [][]byte
	ends     []Position
	// durable is the number of commits that no crash may lose.
	durable uint64
	// maybe has the payloads of failed appends that were not undone. One of them
	// may be found after the others.
	maybe [][]byte
	// bodies makes payloads unique.
	bodies int
	// through is how commits are written.
	through through
}

// through is how a model's commits are written.
type through int

const (
	calls  through = iota // with a system call each
	memory                // through memory, like commits that nobody waits for
	both                  // alternating
)

func newModel(t require.TestingT, fsys *crashfs.FS, how through) *model {
	m := &model{t: t, fsys: fsys, through: how}
	m.open(0)
	return m
}

// open opens the journal with the position of an index that has known durable
// commits.
func (m *model) open(known uint64) {
	o := options(m.fsys)
	if known = min(known, m.durable); known > 0 {
		o.Durable, o.DurableEnd = known, m.ends[known-1]
	}
	j, err := Open(dir, o)
	if err != nil {
		require.NotErrorIs(m.t, err, backend.ErrCorrupt)
		require.NotErrorIs(m.t, err, backend.ErrNewerFormat)
		m.j = nil
		return
	}
	m.j = j
}

// dead reports whether the power is off.
func (m *model) dead() bool {
	_, err := m.fsys.Stat("")
	return errors.Is(err, crashfs.ErrCrashed)
}

func (m *model) append(n int) error {
	if m.j == nil {
		return nil
	}
	m.bodies++
	body := payload(m.bodies, n)
	f, err := m.j.Append(body, nil, m.through == memory || m.through == both && m.bodies%2 == 0)
	switch {
	case err == nil:
		require.Equal(m.t, uint64(len(m.payloads)+1), f.Number)
		m.payloads = append(m.payloads, body)
		m.ends = append(m.ends, Position{Segment: f.Position.Segment, Offset: f.End})
		m.maybe = nil
	case m.j.tail.torn || m.dead():
		m.maybe = append(m.maybe, body)
	default:
		m.maybe = nil
	}
	m.see()
	return err
}

// see records what the journal reports as durable.
func (m *model) see() {
	durable := m.j.Durable()
	require.GreaterOrEqual(m.t, durable, m.durable, "durable once, durable for ever")
	require.LessOrEqual(m.t, durable, uint64(len(m.payloads)))
	require.Equal(m.t, uint64(len(m.payloads)), m.j.Last())
	m.durable = durable
}

func (m *model) prepareSpace() {
	if m.j != nil {
		m.j.prepareSpace(false)
		m.see()
	}
}

func (m *model) sync(number uint64) error {
	if m.j == nil {
		return nil
	}
	err := m.j.Sync(number)
	if err == nil {
		require.GreaterOrEqual(m.t, m.j.Durable(), min(number, uint64(len(m.payloads))))
	}
	m.see()
	return err
}

// reopen closes and opens the journal. Nothing crashes, so nothing may be lost.
func (m *model) reopen(known uint64) {
	if m.j != nil {
		err := m.j.Close()
		if err == nil {
			require.Equal(m.t, uint64(len(m.payloads)), m.j.Durable(), "closed without an error")
			m.maybe = nil
		}
		m.see()
	}
	m.open(known)
	if m.j != nil {
		m.check(uint64(len(m.payloads)))
	}
}

// check compares the found commits with the model, requires at least so many,
// and adopts what was found.
func (m *model) check(least uint64) {
	var found [][]byte
	m.ends = nil
	for f, err := range m.j.Frames(Position{}) {
		require.NoError(m.t, err)
		require.GreaterOrEqual(m.t, f.Number, f.Durable)
		if f.Mark {
			continue
		}
		require.Equal(m.t, uint64(len(found)+1), f.Number)
		found = append(found, bytes.Clone(f.Payload))
		m.ends = append(m.ends, Position{Segment: f.Position.Segment, Offset: f.End})
	}
	require.GreaterOrEqual(m.t, uint64(len(found)), least, "commits are lost")
	if len(found) == len(m.payloads)+1 {
		last := found[len(m.payloads)]
		require.True(m.t, slices.ContainsFunc(m.maybe, func(b []byte) bool { return bytes.Equal(b, last) }), "a commit that was never written")
		m.payloads = append(m.payloads[:len(m.payloads):len(m.payloads)], last)
	}
	require.LessOrEqual(m.t, len(found), len(m.payloads))
	requirePayloads(m.t, m.payloads[:len(found)], found)
	m.payloads, m.maybe = found, nil
	require.Equal(m.t, uint64(len(found)), m.j.Last())
	require.Equal(m.t, uint64(len(found)), m.j.Durable(), "found, so durable")
	m.durable = uint64(len(found))
}

// crash returns the model after one of the possible crashes. m is not changed.
func (m *model) crash(c crashfs.Crash, killed bool, known uint64) *model {
	if m.j != nil {
		m.j.sync.stop() // its timer would retain abandoned memory
	}
	after := *m
	after.fsys = m.fsys.Crash(c)
	after.open(known)
	require.NotNil(m.t, after.j, "must open after any crash")
	least := m.durable
	if killed {
		least = uint64(len(m.payloads))
	}
	after.check(least)
	return &after
}

// pack seals the last segment and replaces some files by a pack.
func (m *model) pack(first, last int, dense bool) {
	if m.j == nil {
		return
	}
	if m.j.Seal() == nil {
		files := m.j.Segments()
		if n := len(files) - 1; n > 0 {
			first, last = min(first, last)%n, max(first, last)%n
			_, err := m.j.Rewrite(context.Background(), files[min(first, last)].First, files[max(first, last)].Last, RewriteOptions{Dense: dense})
			require.NotErrorIs(m.t, err, backend.ErrCorrupt)
		}
	}
	m.see()
}
