package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded/salvage"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// wreck is a closed store that will be damaged, and its contents.
type wreck struct {
	dir     string
	commits []*structure.Commit
	frames  []journal.Frame // of the commits
}

// newWreck creates a store of random commits in small segments, the first of which may
// be packed.
func newWreck(t *testing.T, choose *rand.Rand, n int, packed bool) *wreck {
	t.Helper()
	w := &wreck{dir: filepath.Join(t.TempDir(), "store")}
	e, err := Open(background, w.dir, Options{SegmentSize: 4 << 10, Durability: backend.Normal, NoPacking: true})
	require.NoError(t, err)
	a, model := &backendtest.Author{Chooser: choose}, backendtest.NewModel()
	for i := range n {
		c := a.Next(model)
		model.Apply(t, c)
		_, err := e.Apply(background, c, backend.Options{})
		require.NoError(t, err)
		w.commits = append(w.commits, c)
		if packed && i == n*2/3 {
			_, err := e.Pack(background, backend.PackOptions{})
			require.NoError(t, err)
		}
	}
	require.NoError(t, e.Close())
	w.findFrames(t)
	require.Len(t, w.frames, n)
	return w
}

// findFrames finds the frames of the undamaged store.
func (w *wreck) findFrames(t *testing.T) {
	t.Helper()
	last, err := journal.Salvage(vfs.OS(), filepath.Join(w.dir, journalDir), func(_ [16]byte, f journal.Frame) error {
		w.frames = append(w.frames, f)
		return nil
	}, func(l journal.LostPart) { t.Error(l) })
	require.NoError(t, err)
	require.EqualValues(t, len(w.frames), last)
}

// salvage salvages the store and returns the result, which must be sound, and the
// losses.
func (w *wreck) salvage(t *testing.T) (*Engine, SalvageReport, []LostPart) {
	t.Helper()
	var losses []LostPart
	to := filepath.Join(t.TempDir(), "salvaged")
	report, err := Salvage(background, w.dir, to, SalvageOptions{Lost: func(l LostPart) { losses = append(losses, l) }})
	require.NoError(t, err)
	require.Equal(t, report.Losses, uint64(len(losses)))
	e, err := Open(background, to, Options{MustExist: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.Empty(t, complaints(t, e))
	return e, report, losses
}

// requireSaved requires everything outside lost commits, and notes in the place of
// lost messages.
func (w *wreck) requireSaved(t *testing.T, e *Engine, lost map[uint64]bool) {
	t.Helper()
	all := backendtest.ModelOf(t, w.commits...)
	gone := map[content.ID]bool{}
	for i, c := range w.commits {
		for _, r := range c.Records {
			if b, ok := r.(*structure.Block); ok && lost[uint64(i+1)] {
				gone[b.ID] = true
			}
		}
	}
	for ref, was := range all.Spans() {
		var got *backend.Step
		var err error
		for step, stepErr := range e.Path(background, ref, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
			got, err = step, stepErr
		}
		if lost[was.Commit] {
			if err == nil {
				require.Equal(t, salvage.Note, string(got.Blocks[0].Body), ref)
			} else {
				require.ErrorIs(t, err, backend.ErrNotFound, ref)
			}
			continue
		}
		require.NoError(t, err, ref)
		require.Len(t, got.Span.Usages, len(was.Span.Usages), ref)
		for i, u := range got.Span.Usages {
			said := was.Span.Usages[i]
			require.Equal(t, []any{said.Content, said.Role, said.SourceID}, []any{u.Content, u.Role, u.SourceID}, ref)
			if b, ok := all.Block(u.Content); ok && !gone[u.Content] && b.Tree.IsZero() {
				require.Equal(t, string(b.Body), string(got.Blocks[i].Body), ref)
			}
		}
	}
	for i, c := range w.commits {
		for _, r := range c.Records {
			if r, ok := r.(*structure.Context); ok && !lost[uint64(i+1)] && all.HasContext(r.ID) && len(lost) < 2 {
				_, err := e.Context(background, r.ID)
				require.NoError(t, err, r.ID)
			}
		}
	}
}

// A salvage of an undamaged store is complete.
//
//test:norace
func TestSalvageOfAnUndamagedStore(t *testing.T) {
	for _, packed := range []bool{false, true} {
		w := newWreck(t, rand.New(rand.NewPCG(1, 2)), 150, packed)
		before := tree(t, w.dir)
		e, report, losses := w.salvage(t)
		require.Equal(t, before, tree(t, w.dir), "the salvaged store is not changed")
		require.Empty(t, losses)
		require.Equal(t, SalvageReport{Commits: 150}, report)
		require.True(t, report.Whole())
		require.Empty(t, ask(t, e, w.commits).Wrong(expected(t, w.commits, w.commits), false))
	}
}

// One damaged commit loses its own contents and nothing after it.
//
//test:norace
func TestSalvageAroundADamagedCommit(t *testing.T) {
	for seed := range uint64(3) {
		choose := rand.New(rand.NewPCG(seed, 3))
		w := newWreck(t, choose, 60, false)
		notes := uint64(0)
		for i := range w.frames {
			if i%3 != int(seed) {
				continue
			}
			f := w.frames[i]
			name := filepath.Join(w.dir, journalDir, fmt.Sprintf("%010d.seg", f.Position.Segment))
			at := f.Position.Offset + int64(choose.IntN(int(f.End-f.Position.Offset)))
			flip(t, name, at)
			e, report, losses := w.salvage(t)
			require.Len(t, losses, 1)
			require.Equal(t, name, losses[0].File)
			require.LessOrEqual(t, losses[0].Offset, at)
			require.EqualValues(t, len(w.frames)-1, report.Commits)
			require.EqualValues(t, 1, report.Missing, "the mark after the last commit proves it")
			w.requireSaved(t, e, map[uint64]bool{f.Number: true})
			notes += report.Messages
			flip(t, name, at)
		}
		require.Positive(t, notes)
	}
}

// After any damage, the salvaged store is sound.
//
//test:norace
func TestSalvageOfRandomDamage(t *testing.T) {
	saved, rounds := 0, campaign.Rounds(30)
	for seed := range uint64(rounds) {
		choose := rand.New(rand.NewPCG(seed, 4))
		w := newWreck(t, choose, 50+choose.IntN(60), seed%2 == 0)
		files, err := filepath.Glob(filepath.Join(w.dir, journalDir, "*"))
		require.NoError(t, err)
		for range 1 + choose.IntN(4) {
			name := files[choose.IntN(len(files))]
			b, err := os.ReadFile(name)
			if errors.Is(err, os.ErrNotExist) || len(b) == 0 {
				continue
			}
			at := choose.IntN(len(b))
			switch choose.IntN(5) {
			case 0:
				b[at] ^= byte(1 + choose.IntN(255))
			case 1:
				clear(b[at:min(len(b), at+choose.IntN(2000))])
			case 2:
				b = b[:at]
			case 3:
				b = append(b[:at:at], b[min(len(b), at+choose.IntN(300)):]...)
			case 4:
				require.NoError(t, os.Remove(name))
				continue
			}
			require.NoError(t, os.WriteFile(name, b, 0o600))
		}
		there := map[uint64]bool{}
		known, err := journal.Salvage(vfs.OS(), filepath.Join(w.dir, journalDir), func(_ [16]byte, f journal.Frame) error {
			there[f.Number] = true
			return nil
		}, func(journal.LostPart) {})
		require.NoError(t, err)
		lost := map[uint64]bool{}
		for n := range uint64(len(w.commits)) {
			if !there[n+1] {
				lost[n+1] = true
			}
		}
		e, report, _ := w.salvage(t)
		require.EqualValues(t, len(there), report.Commits)
		w.requireSaved(t, e, lost)
		require.NoError(t, e.Close()) // not at the end of the test: address space
		saved += len(there)
		// A missing end is unknown if nothing after it is left.
		require.LessOrEqual(t, known, uint64(len(w.commits)))
		require.Equal(t, known-uint64(len(there)), report.Missing)
	}
	require.Greater(t, saved, 15*rounds)
}

// If a crash left a pack and its source segments, data lost in one is read from the
// other.
//
//test:norace
func TestSalvageFromAPackAndItsSegments(t *testing.T) {
	for seed := range uint64(5) {
		choose := rand.New(rand.NewPCG(seed, 5))
		w := newWreck(t, choose, 80, false)
		before := tree(t, filepath.Join(w.dir, journalDir))
		e := reopen(t, w.dir, Options{SegmentSize: 4 << 10, NoPacking: true})
		_, err := e.Pack(background, backend.PackOptions{})
		require.NoError(t, err)
		require.NoError(t, e.Close())
		packs, err := filepath.Glob(filepath.Join(w.dir, journalDir, "*.pack"))
		require.NoError(t, err)
		require.Len(t, packs, 1)
		info, err := os.Stat(packs[0])
		require.NoError(t, err)
		flip(t, packs[0], info.Size()/4+int64(choose.IntN(int(info.Size()/4))))
		spoilParity(t, packs[0])
		for name, b := range before {
			if _, err := os.Stat(name); os.IsNotExist(err) {
				require.NoError(t, os.WriteFile(name, []byte(b), 0o600))
			}
		}
		to, report, losses := w.salvage(t)
		require.NotEmpty(t, losses)
		require.EqualValues(t, 80, report.Commits)
		require.Zero(t, report.Missing+report.Messages+report.Contents+report.Names+report.Records)
		require.Empty(t, ask(t, to, w.commits).Wrong(expected(t, w.commits, w.commits), false))
	}
}

// Collected and erased content does not prevent a salvage, and does not reappear.
func TestSalvageAfterACollection(t *testing.T) {
	dir := made(t, Options{SegmentSize: 4 << 10}, 40)
	e := reopen(t, dir, Options{SegmentSize: 4 << 10})
	secret := "a secret that is erased"
	thread, in, run := structure.ThreadID{9}, structure.ContextID{9}, structure.RunID{9}
	b := structure.NewBlock("text/plain", content.BlockOrigin{}, time.UnixMilli(1), []byte(secret))
	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{
		&structure.Thread{ID: thread}, &structure.Context{ID: in, Thread: thread}, b, &structure.Run{ID: run},
		&structure.Span{Ref: structure.SpanRef{Run: run, Seq: 1}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: b.ID}}},
		&structure.Tip{Context: in, Span: structure.SpanRef{Run: run, Seq: 1}},
	}}, backend.Options{})
	require.NoError(t, err)
	_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{
		&structure.Deletion{Subject: structure.KindBlock, Content: b.ID},
	}}, backend.Options{})
	require.NoError(t, err)
	_, err = e.Collect(background, backend.CollectOptions{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	w := &wreck{dir: dir}
	to, report, losses := w.salvage(t)
	require.Empty(t, losses)
	require.Zero(t, report.Messages+report.Contents+report.Records, "%+v", report)
	stats, err := to.Stats(background)
	require.NoError(t, err)
	require.EqualValues(t, 41, stats.Usages)
	for step, err := range to.Path(background, structure.SpanRef{Run: run, Seq: 1}, structure.Window{}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		require.True(t, step.Blocks[0].Gone())
	}
}

func TestSalvageRefuses(t *testing.T) {
	dir := made(t, Options{}, 3)
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "mine"), nil, 0o600))
	_, err := Salvage(background, dir, full, SalvageOptions{})
	require.ErrorIs(t, err, backend.ErrExists)
	_, err = Salvage(background, t.TempDir(), filepath.Join(t.TempDir(), "to"), SalvageOptions{})
	require.ErrorIs(t, err, backend.ErrNotFound)

	e := reopen(t, dir, Options{})
	_, err = Salvage(background, dir, filepath.Join(t.TempDir(), "to"), SalvageOptions{})
	require.ErrorIs(t, err, backend.ErrLocked)
	require.NoError(t, e.Close())

	canceled, cancel := context.WithCancel(background)
	cancel()
	to := filepath.Join(t.TempDir(), "to")
	_, err = Salvage(canceled, dir, to, SalvageOptions{})
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Empty(t, left)

	for _, name := range segments(t, dir) {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		b[8] = 99 // a future version
		require.NoError(t, os.WriteFile(name, b, 0o600))
	}
	_, err = Salvage(background, dir, to, SalvageOptions{})
	require.ErrorIs(t, err, backend.ErrNewerFormat)
	require.True(t, strings.Contains(err.Error(), "format"), err)
}
