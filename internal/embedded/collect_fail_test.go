package embedded

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

// The disk is full or fails during a collection, and works again afterwards. The store takes commits, is packed,
// reopened, or loses power. It is as before the collection or as after it, and the next collection finishes the work.
//
//test:norace
func TestCollectOnFailingDisk(t *testing.T) {
	for i := range campaign.Rounds(2) {
		seed := campaign.Seed() + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { failCollecting(t, seed) })
	}
}

func failCollecting(t *testing.T, seed uint64) {
	disk := crashfs.New()
	s := fillForCollection(t, disk, seed)
	begin := disk.Ops()
	s.collectRest()
	ops := disk.Ops() - begin
	s.close()
	choose := rand.New(rand.NewPCG(seed, 7))
	steps := 4
	if campaign.Runs() {
		steps = 12
	}
	for n := 1 + choose.IntN(3); n <= ops; n += 1 + choose.IntN(max(ops/steps, 1)) {
		disk := crashfs.New()
		s := fillForCollection(t, disk, seed)
		how := choose.IntN(4)
		switch at := n + begin - disk.Ops(); how {
		case 0:
			disk.SetCapacity(disk.Used() + int64(choose.IntN(20000)))
		case 1:
			disk.FailSyncs(syscall.EIO)
		default:
			disk.ShortWrite(at, choose.IntN(5000), syscall.ENOSPC)
		}
		s.failedCollection(choose, fmt.Sprintf("operation %d of %d, %d", n, ops, how))
	}
}

// failedCollection begins a collection on a failing disk, uses the store, and finishes the collection.
func (s *collectStore) failedCollection(choose *rand.Rand, what string) {
	s.t.Helper()
	o := s.collectOptions(0)
	uncollected := s.state.Clone()
	_, err := s.engine.Collect(background, o)
	what = fmt.Sprintf("%s: %v", what, err)
	disk := s.opt.FS.(*crashfs.FS)
	disk.SetCapacity(0)
	disk.FailSyncs(nil)
	if err == nil || s.engine.collecting.Barrier.Load() != nil {
		s.modelCollects(o)
	} else {
		s.requireEither(o)
	}
	for range choose.IntN(4) * 3 {
		if !s.commitOrReopen(uncollected) {
			break
		}
	}
	switch choose.IntN(6) {
	case 0:
		s.close()
		s.open()
	case 1:
		s.rebuildIndex()
	case 2:
		_, err := s.engine.Pack(background, backend.PackOptions{All: true, Dense: choose.IntN(2) == 0})
		require.NoError(s.t, err, what)
	case 3:
		s = s.crashed([]crashfs.Crash{crashfs.KeepNone(), crashfs.KeepAll(), crashfs.Random(choose)}[choose.IntN(3)])
		got := ask(s.t, s.engine, s.ever)
		delete(got, "feed")
		isNot, was := got.Wrong(s.state.Facts(censusOf(s.ever)), false), got.Wrong(uncollected.Facts(censusOf(s.ever)), false)
		require.True(s.t, len(isNot) == 0 || len(was) == 0, "%s\n%v\n%v", what, isNot, was)
		if len(isNot) > 0 {
			s.state = uncollected
		}
	}
	s.verify()
	s.endsCollected(what)
}

// commitOrReopen commits to the store, its model and another model, and returns true. If the store takes no commits
// since the disk failed, it is reopened.
func (s *collectStore) commitOrReopen(also *backendtest.Model) bool {
	s.t.Helper()
	c := s.author.Next(s.state)
	if _, err := s.engine.Apply(background, c, backend.Options{}); err != nil {
		require.ErrorIs(s.t, err, backend.ErrReadOnly)
		_ = s.engine.Close()
		s.open()
		return false
	}
	s.ever = append(s.ever, c)
	s.state.Apply(s.t, c)
	also.Apply(s.t, c)
	return true
}
