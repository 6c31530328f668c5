package embedded

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func TestHashSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b hashSet
		sets := [2]map[uint64]bool{{}, {}}
		hashes := rapid.SliceOf(rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64())).Draw(t, "hashes")
		for range rapid.IntRange(0, 3).Draw(t, "growth") {
			for range 2000 {
				hashes = append(hashes, rand.Uint64()&^1023) // these collide in the table
			}
		}
		for i, h := range hashes {
			set, model := &a, sets[0]
			if i%3 == 0 {
				set, model = &b, sets[1]
			}
			if set.add(h) == model[h] {
				t.Fatalf("adding %#x, which was there %v", h, model[h])
			}
			model[h] = true
		}
		var both hashSet
		both.addAll(&a, &b)
		for _, h := range append(hashes, 0, 1, 1<<63) {
			in := [3]bool{sets[0][h], sets[1][h], sets[0][h] && !sets[1][h]}
			if got := [3]bool{a.has(h), b.has(h), both.has(h)}; got != in {
				t.Fatalf("%#x is in the sets: %v, not %v", h, got, in)
			}
		}
	})
}

// Filtering is idempotent, and the result can be encoded.
func TestFilterTwice(t *testing.T) {
	s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(3, 3)))
	defer s.close()
	for range 200 {
		s.commit()
	}
	c := s.begin()
	require.NoError(t, c.mark())
	var first, again collected
	for f, err := range c.marker.view.commits(200) {
		require.NoError(t, err)
		c.marker.live.filter(f.Commit, &first)
		var left []structure.Record
		for _, r := range f.Records {
			if r != nil {
				left = append(left, r)
			}
		}
		f.Records = slices.Clone(left)
		require.False(t, c.marker.live.filter(f.Commit, &again))
		require.Equal(t, left, f.Records)
		payload, _, err := new(structure.Encoder).Encode(f.Commit)
		require.NoError(t, err)
		back, err := structure.DecodeCommit(payload)
		require.NoError(t, err)
		require.Len(t, back.Records, len(left))
	}
	require.NotZero(t, first.records)
	require.NotZero(t, first.erased)
	require.Zero(t, again)
}

func FuzzReadManifest(f *testing.F) {
	whole, err := json.Marshal(manifest{Format: 1, Store: "00", Commit: 3, Files: []manifestFact{{Name: "0000000001.seg", Size: 64, SHA256: "00"}}})
	require.NoError(f, err)
	f.Add(whole)
	f.Add([]byte(`{"format":1,"files":[{"name":"../0000000001.seg","size":-1}]}`))
	f.Add([]byte(`{"format":9}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, journalDir), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, journalDir, "0000000001.seg"), make([]byte, 64), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, manifestFile), b, 0o600))
		names, facts, _, err := readManifest(dir)
		if err != nil {
			return
		}
		for i, name := range names {
			require.Equal(t, filepath.Join(dir, journalDir), filepath.Dir(name))
			require.Equal(t, facts[i].Name, filepath.Base(name))
		}
		_, err = Restore(background, dir, filepath.Join(t.TempDir(), "restored"), RestoreOptions{})
		require.Error(t, err)
		if len(names) > 0 {
			require.ErrorIs(t, err, backend.ErrCorrupt)
		}
	})
}
