package embedded

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// pairs returns values with the same fingerprint, one after the other.
func pairs[T any](n int, make func(i int) T, print func(T) uint32) (all []T) {
	seen := map[uint32]int{}
	for i := 0; len(all) < n; i++ {
		v := make(i)
		p := print(v)
		if before, ok := seen[p]; ok {
			all = append(all, make(before), v)
			continue
		}
		seen[p] = i
	}
	return all
}

// alike are ids that packs and the sealed table can tell apart only by reading what has them.
var alike = sync.OnceValue(func() backendtest.Alike {
	body := func(i int) []byte { return fmt.Appendf(nil, "body %d of some words", i) }
	return backendtest.Alike{
		Bodies: pairs(20, body, func(b []byte) uint32 { id := content.Sum(b); return lookup.Fingerprint(id[:]) }),
		Chunks: pairs(10, body, func(b []byte) uint32 { key := content.KeyOf(b); return lookup.Fingerprint(key[:]) }),
		Runs: pairs(30, func(i int) structure.RunID { return structure.DeriveID[structure.RunID]("alike", fmt.Sprint(i)) },
			lookup.RunFingerprint),
		Sources: []string{
			"message 338708", "message 356821", "message 102300", "message 634286", "message 250325", "message 705814",
			"message 770143", "message 914569", "message 88372", "message 978207",
		},
	}
})

// firstHome is the home of runs of the first thread of an author.
var firstHome = structure.Home{Thread: structure.DeriveID[structure.ThreadID]("crash", "1"), Incarnation: 1}

func TestAlike(t *testing.T) {
	ids := alike()
	for pair := range slices.Chunk(ids.Sources, 2) {
		require.Equal(t, keys.LookupsIn(firstHome, pair[0]), keys.LookupsIn(firstHome, pair[1]))
	}
}

// Content, runs and source ids that begin alike are never confused: in the index, in its sealed table, in one pack and in
// several, deleted, erased and collected.
//
//test:norace
func TestAlikeModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "store")
		require.NoError(rt, err)
		s := newCollectStore(rt, dir, backendtest.Drawn{T: rt})
		defer func() { s.close() }()
		s.author.Alike = alike()
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				s.collect(rapid.IntRange(0, 20).Draw(rt, "keep"))
			case 1:
				s.rebuildIndex()
			case 2:
				s.close()
				s.open()
			case 3, 4:
				o := backend.PackOptions{All: rapid.Bool().Draw(rt, "all"), Dense: rapid.IntRange(0, 3).Draw(rt, "dense") == 0}
				_, err := s.engine.Pack(background, o)
				require.NoError(rt, err)
			case 5:
				require.NoError(rt, s.engine.compactIndex(background))
			default:
				for range rapid.IntRange(1, 12).Draw(rt, "commits") {
					s.commit()
				}
				continue
			}
			s.check()
			s.verify()
		}
		s.check()
		s.verify()
	})
}
