package embedded

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

var errDisk = errors.New("input/output error")

// crashStore is an engine whose journal is on a disk that crashes, together with a
// model of it. The index and the lock are in a real directory.
type crashStore struct {
	t      tester
	dir    string
	disk   *crashfs.FS
	opt    Options
	engine *Engine // nil while the store is not open
	author *backendtest.Author

	written []*structure.Commit // in the journal, as far as the process knows
	refused []*structure.Commit // failed attempts at the next commit
	ever    []*structure.Commit // all attempts, including lost ones
	acked   int                 // number of written commits that survive a kill
	durable int                 // number of written commits that survive power loss
	saved   []byte              // an earlier index
}

// newCrashStore opens a store in a new directory below room.
func newCrashStore(t tester, room string, choose backendtest.Chooser, disk *crashfs.FS, o Options) *crashStore {
	t.Helper()
	dir, err := os.MkdirTemp(room, "store")
	require.NoError(t, err)
	o.FS = disk
	o.SyncInterval = time.Hour // the test decides when to sync
	s := &crashStore{t: t, dir: dir, disk: disk, opt: o, author: &backendtest.Author{Chooser: choose}}
	_ = s.open()
	return s
}

// open opens the store. It may fail only if the disk fails.
func (s *crashStore) open() (err error) {
	s.t.Helper()
	s.engine, err = Open(context.Background(), s.dir, s.opt)
	require.NotErrorIs(s.t, err, backend.ErrCorrupt)
	require.NotErrorIs(s.t, err, backend.ErrLocked)
	return err
}

// dead reports whether the power is off.
func (s *crashStore) dead() bool {
	_, err := s.disk.List(".")
	return errors.Is(err, crashfs.ErrCrashed)
}

// commit applies a commit by the author.
func (s *crashStore) commit(d backend.Durability) error {
	s.t.Helper()
	return s.apply(s.author.Next(backendtest.ModelOf(s.t, s.written...)), d)
}

// apply applies a valid commit. A failed commit does not exist, unless the error says
// that it may.
func (s *crashStore) apply(c *structure.Commit, d backend.Durability) error {
	s.t.Helper()
	if s.engine == nil {
		return errDisk
	}
	s.ever = append(s.ever, c)
	receipt, err := s.engine.Apply(context.Background(), c, backend.Options{Durability: d})
	switch {
	case err == nil:
		s.written, s.refused = append(s.written, c), nil
		require.EqualValues(s.t, len(s.written), receipt.Number)
		s.acked = len(s.written)
		if d == backend.Full {
			s.durable = len(s.written)
		}
	case errors.Is(err, backend.ErrUncertain):
		s.written = append(s.written, c)
	default:
		for _, refusal := range []error{backend.ErrNotFound, backend.ErrExists, backend.ErrConflict, backend.ErrInvalid, backend.ErrCorrupt} {
			require.NotErrorIs(s.t, err, refusal)
		}
		s.refused = append(s.refused, c)
	}
	head, headErr := s.engine.Head(context.Background())
	require.NoError(s.t, headErr)
	require.EqualValues(s.t, len(s.written), head.Number, "%v", err)
	return err
}

func (s *crashStore) sync() error {
	if s.engine == nil {
		return errDisk
	}
	err := s.engine.Sync(context.Background())
	if err == nil {
		s.acked, s.durable = len(s.written), len(s.written)
	}
	return err
}

// checkpoint folds everything into the index file and may keep a copy of it.
func (s *crashStore) checkpoint(keep bool) error {
	s.t.Helper()
	if s.engine == nil {
		return errDisk
	}
	if err := s.engine.index.Checkpoint(); err != nil {
		return err
	}
	// The index must never have more commits than the journal.
	require.EqualValues(s.t, len(s.written), s.engine.journal.Durable())
	s.acked, s.durable = len(s.written), len(s.written)
	if keep {
		s.saved = s.readIndex()
	}
	return nil
}

func (s *crashStore) indexPath() string { return filepath.Join(s.dir, indexFile) }

func (s *crashStore) readIndex() []byte {
	b, err := os.ReadFile(s.indexPath())
	require.NoError(s.t, err)
	return b
}

// close closes the store cleanly.
func (s *crashStore) close() error {
	if s.engine == nil {
		return errDisk
	}
	err := s.engine.Close()
	s.engine = nil
	if err == nil {
		s.acked, s.durable = len(s.written), len(s.written)
	}
	return err
}

// reopen closes the store, ignoring errors, and opens it again.
func (s *crashStore) reopen() {
	s.t.Helper()
	if err := s.close(); err != nil {
		s.crash(crashfs.KeepAll(), true, indexAsItIs)
		return
	}
	_ = s.open()
}

// indexAfter is the state of the index after a crash.
type indexAfter int

const (
	indexAsItIs indexAfter = iota
	indexFromBefore
	noIndex
	indexChoices
)

// crash ends the process, and unless killed is set the machine too. It opens and
// checks the store.
func (s *crashStore) crash(c crashfs.Crash, killed bool, i indexAfter) {
	s.t.Helper()
	s.outcome(c, killed, i).become(s)
}

func (s *crashStore) become(to *crashStore) { *to = *s }

// stop ends the process after its disk is gone. All that remains is to release the
// lock.
func (s *crashStore) stop() {
	if s.engine != nil {
		_ = s.engine.Close()
		s.engine = nil
	}
}

// outcome returns the store after a crash, opened and checked. It may be called again
// for another outcome once that store was stopped.
func (s *crashStore) outcome(c crashfs.Crash, killed bool, i indexAfter) *crashStore {
	s.t.Helper()
	after := *s
	after.disk = s.disk.Crash(c)
	after.opt.FS = after.disk
	s.stop()
	after.engine = nil
	known := after.leaveIndex(i)
	require.NoError(s.t, after.open())
	after.settle(killed, known)
	after.check()
	return &after
}

// leaveIndex puts the index into its state after a crash, and returns the last commit
// in it.
func (s *crashStore) leaveIndex(i indexAfter) uint64 {
	s.t.Helper()
	removed := os.Remove(s.indexPath() + ".sums") // not written by a process that dies
	if !errors.Is(removed, os.ErrNotExist) {
		require.NoError(s.t, removed)
	}
	switch {
	case i == noIndex:
		if err := os.Remove(s.indexPath()); !errors.Is(err, os.ErrNotExist) {
			require.NoError(s.t, err)
		}
		return 0
	case i == indexFromBefore && s.saved != nil:
		require.NoError(s.t, os.WriteFile(s.indexPath(), s.saved, 0o600))
	}
	db, err := index.Open(s.indexPath(), index.Options{ReadOnly: true})
	require.NoError(s.t, err)
	defer db.Close()
	return db.State().Number
}

// settle determines which prefix of the commits survived. It must contain all commits
// of the index.
func (s *crashStore) settle(killed bool, known uint64) {
	s.t.Helper()
	at, err := s.engine.Head(context.Background())
	require.NoError(s.t, err)
	head := at.Number
	require.GreaterOrEqual(s.t, head, known, "the index knew more than the journal")
	least := s.durable
	if killed {
		least = s.acked
	}
	require.GreaterOrEqual(s.t, int(head), least, "acknowledged commits are lost")
	if int(head) == len(s.written)+1 && len(s.refused) > 0 { // the process died before it could undo it
		s.written = append(slices.Clip(s.written), s.found(head))
	}
	require.LessOrEqual(s.t, int(head), len(s.written), "there are commits that were never written")
	s.written, s.refused = slices.Clip(s.written[:head]), nil
	s.acked, s.durable = int(head), int(head) // opening makes the found commits durable
}

// found returns the refused commit that is the last one in the store.
func (s *crashStore) found(number uint64) *structure.Commit {
	s.t.Helper()
	for c, err := range s.engine.Feed(context.Background(), backend.Cursor{Number: number - 1}) {
		require.NoError(s.t, err)
		c.Number = 0
		for _, r := range s.refused {
			if text(r) == text(c) {
				return r
			}
		}
	}
	s.t.Fatalf("commit %d was never attempted", number)
	return nil
}

// check compares everything that can be read with the model. Reading may start a fold
// in the background, which syncs the journal: if the power fails then, later queries
// return errors but never wrong answers.
func (s *crashStore) check() {
	s.t.Helper()
	if s.engine == nil {
		return
	}
	got := ask(s.t, s.engine, s.ever)
	require.Empty(s.t, got.Wrong(expected(s.t, s.written, s.ever), s.dead()))
}

// verify runs the store's verification.
func (s *crashStore) verify() {
	s.t.Helper()
	require.Empty(s.t, complaints(s.t, s.engine))
}

func complaints(t tester, e *Engine) (found []string) {
	t.Helper()
	for f, err := range e.Verify(context.Background(), backend.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		found = append(found, f.String())
	}
	return found
}

// outlive uses the store after a crash, through further crashes.
func (s *crashStore) outlive(choose *rand.Rand) {
	s.t.Helper()
	for range 3 {
		require.NoError(s.t, s.commit(backend.Full))
	}
	require.NoError(s.t, s.commit(backend.Normal))
	s.check()
	s.crash(crashfs.Random(choose), false, indexAfter(choose.IntN(int(indexChoices))))
	require.NoError(s.t, s.commit(backend.Full))
	require.NoError(s.t, s.checkpoint(false))
	s.verify()
	s.check()
}
