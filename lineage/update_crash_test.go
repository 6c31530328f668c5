package lineage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage"
)

// crashSteps create a store, crashChanges are applied to it in one transaction.
var (
	crashSteps = []txStep{
		{kind: "create thread", thread: "a", text: "old"},
		{kind: "extend", thread: "a", branch: "main", text: "1"},
		{kind: "branch", thread: "a", branch: "main", name: "x", at: 1},
		{kind: "checkpoint", thread: "a", branch: "main", name: "k", at: 1},
		{kind: "set in thread", thread: "a", branch: "main", name: "k", text: "1"},
	}
	crashChanges = []txStep{
		{kind: "create thread", thread: "b", text: "new"},
		{kind: "extend", thread: "b", branch: "main", text: "2"},
		{kind: "title", thread: "a", branch: "main", text: "changed"},
		{kind: "extend", thread: "a", branch: "x", text: strings.Repeat("long ", 30_000)},
		{kind: "replace", thread: "a", branch: "main", text: "3", at: 1},
		{kind: "rename", thread: "a", branch: "x", name: "y"},
		{kind: "uncheckpoint", thread: "a", branch: "main", name: "k"},
		{kind: "set in thread", thread: "a", branch: "main", name: "k", text: "2"},
		{kind: "set", name: "k", text: "3"},
		{kind: "hang", thread: "a", branch: "main", at: 1, text: "2"},
		{kind: "switch", thread: "a", branch: "y", name: "y"},
	}
)

func doSteps(in *lineage.Store, steps []txStep) error {
	for _, s := range steps {
		if err := s.do(in); err != nil {
			return fmt.Errorf("%s: %w", s.kind, err)
		}
	}
	return nil
}

// crashed opens stores whose journals are on simulated disks that crash.
type crashed struct {
	t       *testing.T
	dir     string // of the index, which is rebuilt from the journal each time
	segment int64
}

func (c *crashed) open(disk *crashfs.FS) *lineage.Store {
	c.t.Helper()
	require.NoError(c.t, os.RemoveAll(c.dir))
	require.NoError(c.t, os.Mkdir(c.dir, 0o700))
	engine, err := embedded.Open(bg, c.dir, embedded.Options{FS: disk, SegmentSize: c.segment, SyncInterval: time.Hour, NoPacking: true})
	require.NoError(c.t, err)
	return lineage.New(engine)
}

// After a crash or fault at any write of a transaction, all of its changes are there or none. If it
// succeeded, all are.
//
//test:norace
func TestCrashInUpdate(t *testing.T) {
	for _, segment := range []int64{0, 1} {
		t.Run(fmt.Sprint(segment), func(t *testing.T) {
			base, at := crashfs.New(), &crashed{t, filepath.Join(t.TempDir(), "store"), segment}
			s := at.open(base)
			require.NoError(t, doSteps(s, crashSteps))
			before := described(t, s)
			require.NoError(t, s.Close())

			update := func(s *lineage.Store) error {
				return s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error { return doSteps(tx.Store, crashChanges) })
			}
			disk := base.Crash(crashfs.KeepAll())
			s = at.open(disk)
			begin := disk.Ops()
			require.NoError(t, update(s))
			writes, after := disk.Ops()-begin, described(t, s)
			require.NoError(t, s.Close())
			require.NotEqual(t, before, after)
			require.Positive(t, writes)

			seen := map[bool]int{}
			check := func(disk *crashfs.FS, mustBe bool, what string) {
				s := at.open(disk)
				defer s.Close()
				found := described(t, s)
				all := len(found) == len(after) && strings.Join(found, "\n") == strings.Join(after, "\n")
				if seen[all]++; all {
					requireSound(t, s)
					return
				}
				require.False(t, mustBe, "%s: it is lost, though it succeeded", what)
				require.Equal(t, before, found, what)
				require.NoError(t, update(s), what)
				require.Equal(t, after, described(t, s), what)
				requireSound(t, s)
			}
			for _, n := range append(campaign.Sample(writes, 4), 1, writes) {
				for _, torn := range append(campaign.Sample(4096, 1), 1<<30) {
					disk := base.Crash(crashfs.KeepAll())
					s := at.open(disk)
					disk.CrashAfter(n, torn)
					err := update(s)
					_ = s.Close()
					random := rand.Uint64()
					for what, crash := range map[string]crashfs.Crash{
						"kill": crashfs.KeepAll(), "power": crashfs.KeepNone(), "random": crashfs.Random(rand.New(rand.NewPCG(random, 1))),
					} {
						check(disk.Crash(crash), err == nil, fmt.Sprintf("%s at write %d, torn at %d, seed %d", what, n, torn, random))
					}
				}
				disk := base.Crash(crashfs.KeepAll())
				s := at.open(disk)
				disk.ShortWrite(n, rand.IntN(200), os.ErrDeadlineExceeded)
				err := update(s)
				_ = s.Close()
				check(disk.Crash(crashfs.KeepAll()), err == nil, fmt.Sprintf("fault at write %d", n))
			}
			require.Positive(t, seen[true], "no crash after the commit")
			require.Positive(t, seen[false], "no crash before it")
		})
	}
}
