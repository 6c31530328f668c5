package embedded

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A store is collected while it is verified, at any moment. Nothing is found, also not in large bodies that are gone.
//
//test:norace
func TestVerifyDuringCollect(t *testing.T) {
	for at := 1; ; at += 1 + at/3 {
		s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(uint64(at), 6)))
		for range 10 {
			s.commit()
		}
		for i := range 2 {
			var records []structure.Record
			id, tree, err := content.Cut(background, bytes.NewReader(bytes.Repeat([]byte{byte(i), 1, 2}, 100<<10)), func(k content.Key, b []byte) error {
				records = append(records, &structure.Chunk{Key: k, Bytes: bytes.Clone(b)})
				return nil
			})
			require.NoError(t, err)
			_, err = s.engine.Apply(background, &structure.Commit{Time: s.author.Now(), Records: append(records, &structure.Block{Block: content.Block{ID: id, Size: tree.Size}, Tree: tree})}, backend.Options{})
			require.NoError(t, err)
			if i == 0 && at%2 == 0 { // so that one is in a pack
				_, err := s.engine.Pack(background, backend.PackOptions{All: true})
				require.NoError(t, err)
			}
		}
		calls := 0
		o := backend.VerifyOptions{Deep: true, Progress: func(int64, int64) {
			if calls++; calls == at {
				_, err := s.engine.Collect(background, s.collectOptions(0))
				require.NoError(t, err)
			}
		}}
		for found, err := range s.engine.Verify(background, o) {
			require.NoError(t, err)
			t.Errorf("%d: %v", at, found)
		}
		s.close()
		if t.Failed() || calls < at {
			break
		}
	}
}
