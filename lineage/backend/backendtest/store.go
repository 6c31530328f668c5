package backendtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
	Logf(format string, args ...any)
}

var (
	_ tester = (*testing.T)(nil)
	_ tester = (*rapid.T)(nil)
)

// store is an engine under test and the model of its expected content.
type store struct {
	backend.Engine
	t       tester
	open    OpenFunc
	config  Config
	checked bool // since it was opened
	refused int  // commits
	model   *Model
	seen    *Census
	clock   int64
}

// newStore opens a new store and closes it at the end of the test.
func newStore(t *testing.T, c Config) *store {
	t.Helper()
	s := openStore(t, c, t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// openStore opens a new store that reports to t. The store is prepared with the
// testing.TB.
func openStore(t tester, c Config, room testing.TB) *store {
	t.Helper()
	s := &store{t: t, open: c.New(room), config: c, model: NewModel(), seen: NewCensus()}
	s.start()
	return s
}

func (s *store) start() {
	s.t.Helper()
	e, err := s.open(background)
	require.NoError(s.t, err)
	s.Engine, s.checked = e, false
}

// restart closes and reopens the store.
func (s *store) restart() {
	s.t.Helper()
	require.NoError(s.t, s.Close())
	s.start()
}

// commit returns a commit at the next moment.
func (s *store) commit(records ...structure.Record) *structure.Commit {
	s.clock++
	return &structure.Commit{Time: moment(s.clock), Records: records}
}

// apply applies records to the engine and to the model and compares the results.
func (s *store) apply(records ...structure.Record) backend.Receipt {
	s.t.Helper()
	return s.applyCommit(s.commit(records...), backend.Options{})
}

func (s *store) applyCommit(c *structure.Commit, o backend.Options) backend.Receipt {
	s.t.Helper()
	got := s.applyOnly(c, o)
	s.check()
	if s.config.Reopen {
		s.restart()
		s.check()
	}
	return got
}

// applyBriefly is apply that compares only the answers about the commit.
func (s *store) applyBriefly(records ...structure.Record) {
	s.t.Helper()
	c := s.commit(records...)
	s.applyOnly(c, backend.Options{})
	s.checkAbout(c)
	if s.config.Reopen {
		s.restart()
		s.checkAbout(c)
	}
}

// applyOnly applies a commit without comparing the stored state.
func (s *store) applyOnly(c *structure.Commit, o backend.Options) backend.Receipt {
	s.t.Helper()
	s.seen.Add(c)
	want, err := s.model.apply(c, o)
	require.NoError(s.t, err, "the model refuses")
	got, err := s.Apply(background, c, o)
	require.NoError(s.t, err)
	require.Equal(s.t, want.number, got.Number)
	require.Subset(s.t, got.Known, want.known)
	require.Subset(s.t, want.repeatedly(), got.Known)
	require.LessOrEqual(s.t, want.knownChunks, got.KnownChunks)
	require.LessOrEqual(s.t, got.KnownChunks, want.knownChunks+want.repeatedChunks)
	return got
}

// refuse applies records that must be refused with the given error and change
// nothing.
func (s *store) refuse(want error, records ...structure.Record) error {
	s.t.Helper()
	return s.refuseCommit(want, s.commit(records...), backend.Options{})
}

// A refusal is a case: commits that are refused with the same error. The last one has the records of the others too.
type refusal struct {
	name    string
	want    error
	commits [][]structure.Record
}

// refuses has a new store refuse all cases, and returns it. After each case, only the answers about its last commit are compared;
// after several cases, the whole state. If that differs, each of them is refused again by a store of its own, so that the
// failure names the one that changed something.
func refuses(t *testing.T, c Config, begin func(*store), cases []refusal) *store {
	t.Helper()
	const together = 16
	s := newStore(t, c)
	begin(s)
	for some := range slices.Chunk(cases, together) {
		for _, r := range some {
			t.Run(r.name, func(t *testing.T) {
				s.t = t
				s.checkAbout(s.refuseCase(r))
			})
		}
		if t.Run("state", func(t *testing.T) {
			s.t = t
			s.check()
		}) {
			continue
		}
		for _, r := range some {
			t.Run(r.name+" alone", func(t *testing.T) {
				s := newStore(t, c)
				begin(s)
				s.refuseCase(r)
				s.check()
			})
		}
		t.FailNow()
	}
	s.t = t
	return s
}

// refuseCase has the commits of a case refused and returns the last.
func (s *store) refuseCase(r refusal) (c *structure.Commit) {
	s.t.Helper()
	for _, records := range r.commits {
		c = s.commit(records...)
		s.refuseOnly(r.want, c, backend.Options{})
	}
	return c
}

// refuseCommit is refuse for a commit. Without want, any refusal is accepted: a
// commit with several errors may be refused for any of them. With -short, only
// each fourth refusal is followed by a check, and what the others left is found
// later.
func (s *store) refuseCommit(want error, c *structure.Commit, o backend.Options) error {
	s.t.Helper()
	err := s.refuseOnly(want, c, o)
	if s.refused++; !testing.Short() || s.refused%4 == 0 {
		s.check()
	}
	return err
}

// refuseOnly is refuseCommit without comparing the stored state.
func (s *store) refuseOnly(want error, c *structure.Commit, o backend.Options) error {
	s.t.Helper()
	s.seen.Add(c)
	_, err := s.model.apply(c, o)
	requireRefusal(s.t, want, err)
	_, err = s.Apply(background, c, o)
	requireRefusal(s.t, want, err)
	return err
}

func requireRefusal(t tester, want, got error) {
	t.Helper()
	if want != nil {
		require.ErrorIs(t, got, want)
		return
	}
	known := slices.ContainsFunc([]error{
		backend.ErrNotFound, backend.ErrExists, backend.ErrConflict, backend.ErrInvalid,
	}, func(e error) bool { return errors.Is(got, e) })
	require.True(t, known, "refused with %v", got)
}

// check compares all query results with the model.
func (s *store) check() {
	s.t.Helper()
	s.checkOn(s.seen)
}

// checkAbout compares the query results about the ids of a commit and about what it changes.
func (s *store) checkAbout(c *structure.Commit) {
	s.t.Helper()
	seen := &Census{}
	seen.Add(c)
	seen.addSubjects(c)
	s.checkOn(seen)
}

func (s *store) checkOn(seen *Census) {
	s.t.Helper()
	var r backend.Reader = s.Engine
	if s.config.RoundTrips && s.checked {
		snapshot, err := s.Snapshot(background)
		require.NoError(s.t, err)
		defer snapshot.Close()
		r = snapshot
	}
	s.checked = true
	compareFacts(s.t, s.model.Facts(seen), readFacts(s.t, r, seen))
}

func compareFacts(t tester, want, got Facts) {
	t.Helper()
	var differ []string
	for subject := range want {
		if _, ok := got[subject]; !ok {
			differ = append(differ, subject)
		}
	}
	for subject, value := range got {
		if !equalFacts(want[subject], value) {
			differ = append(differ, subject)
		}
	}
	slices.Sort(differ)
	for _, subject := range differ[:min(len(differ), 4)] {
		found, should := explain(got[subject], want[subject])
		t.Logf("%s\nis     %s\nshould %s", subject, found, should)
	}
	if len(differ) > 0 {
		require.FailNow(t, fmt.Sprintf("%d answers are wrong: %q", len(differ), differ[:min(len(differ), 8)]))
	}
}

// same compares two results of one query.
func same(t tester, want, got any) {
	t.Helper()
	compareFacts(t, Facts{"it": want}, Facts{"it": got})
}

// refusals are the expected errors of a reader.
var refusals = []error{backend.ErrNotFound, backend.ErrErased}

// answer is the result of a query: a value, or one of the refusals.
func answer[T any](t tester, value T, err error) any {
	t.Helper()
	if err == nil {
		return value
	}
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return refusal.Error()
		}
	}
	fine(t, err)
	return nil
}
