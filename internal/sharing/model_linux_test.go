package sharing

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// Handles of one store change, collect, pack and close it in any order. Each answers as a model does. A snapshot answers
// as the model did when it was taken, whatever the other handles do.
//
//test:norace
func TestHandlesModel(t *testing.T) {
	for i := range campaign.Rounds(2) {
		h := newHandles(t, rand.New(rand.NewPCG(campaign.Seed()+uint64(i), 1)))
		for range 40 {
			h.step()
		}
		h.end()
	}
}

// handles are engines of one store, with a model of it.
type handles struct {
	t      *testing.T
	choose *rand.Rand
	open   func() *Engine
	all    []*Engine
	author *backendtest.Author
	model  *backendtest.Model
	ever   []*structure.Commit
}

func newHandles(t *testing.T, choose *rand.Rand) *handles {
	dir, o := t.TempDir(), normal
	o.SegmentSize = 4 << 10
	h := &handles{t: t, choose: choose, author: &backendtest.Author{Chooser: choose}, model: backendtest.NewModel()}
	h.open = func() *Engine {
		e, err := Open(background, dir, o)
		require.NoError(t, err)
		return e
	}
	h.all = []*Engine{h.open(), h.open(), h.open()}
	return h
}

func (h *handles) any() *Engine { return h.all[h.choose.IntN(len(h.all))] }

// facts returns the answers of the model about every commit so far.
func (h *handles) facts() (*backendtest.Census, backendtest.Facts) {
	seen := backendtest.NewCensus()
	for _, c := range h.ever {
		seen.Add(c)
	}
	return seen, h.model.Facts(seen)
}

func (h *handles) check(r backend.Reader, about *backendtest.Census, want backendtest.Facts) {
	h.t.Helper()
	require.Empty(h.t, backendtest.Ask(h.t, r, about).Wrong(want, false))
}

func (h *handles) step() {
	switch h.choose.IntN(10) {
	case 0:
		i := h.choose.IntN(len(h.all))
		require.NoError(h.t, h.all[i].Close())
		h.all[i] = h.open()
	case 1:
		about, want := h.facts()
		h.check(h.any(), about, want)
	case 2:
		s, err := h.any().Snapshot(background)
		require.NoError(h.t, err)
		about, want := h.facts()
		for range h.choose.IntN(6) {
			h.change()
		}
		h.check(s, about, want)
		s.Close()
	default:
		h.change()
	}
}

func (h *handles) change() {
	switch h.choose.IntN(10) {
	case 0:
		now := h.author.Now()
		_, err := h.any().Collect(background, backend.CollectOptions{Now: now, KeepReflog: -1, KeepUnused: -1})
		require.NoError(h.t, err)
		h.model = h.model.Clone()
		h.model.Collect(now, 0)
	case 1:
		_, err := h.any().Pack(background, backend.PackOptions{All: true, Dense: h.choose.IntN(2) == 0})
		require.NoError(h.t, err)
	default:
		for range 1 + h.choose.IntN(5) {
			c := h.author.Next(h.model)
			h.ever = append(h.ever, c)
			receipt, err := h.any().Apply(background, c, backend.Options{})
			require.NoError(h.t, err)
			h.model.Apply(h.t, c)
			require.Equal(h.t, h.model.Number(), receipt.Number)
		}
	}
}

func (h *handles) end() {
	about, want := h.facts()
	for _, e := range h.all {
		h.check(e, about, want)
	}
	for found, err := range h.any().Verify(background, backend.VerifyOptions{Deep: true}) {
		require.NoError(h.t, err)
		h.t.Error(found)
	}
	for _, e := range h.all {
		require.NoError(h.t, e.Close())
	}
}
