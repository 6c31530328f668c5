package crashfs_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/vfs/crashfs"
)

const sectorSize = 512

// outcomes returns the descriptions of the outcomes of many random crashes of
// disk.
func outcomes(disk *crashfs.FS, describe func(*crashfs.FS) string) map[string]bool {
	found := map[string]bool{}
	for seed := range uint64(400) {
		after := disk.Crash(crashfs.Random(rand.New(rand.NewPCG(seed, 0))))
		found[describe(after)] = true
	}
	return found
}

// firstOfSectors returns the first byte of every sector of f.
func firstOfSectors(disk *crashfs.FS) string {
	content, err := disk.ReadFile("f")
	if err != nil {
		return err.Error()
	}
	var s strings.Builder
	for at := 0; at < len(content); at += sectorSize {
		s.WriteByte(max(content[at], '0'))
	}
	return s.String()
}

func set(members ...string) map[string]bool {
	s := map[string]bool{}
	for _, m := range members {
		s[m] = true
	}
	return s
}

func sectors(s string) string {
	var content strings.Builder
	for _, r := range s {
		content.WriteString(strings.Repeat(string(r), sectorSize))
	}
	return content.String()
}

func TestRandomSectorsSurviveInAnyOrder(t *testing.T) {
	disk, f := newDisk(t, sectors("aaa"))
	writeAt(t, f, sectors("bb"), 0)
	writeAt(t, f, sectors("c"), sectorSize)
	require.Equal(t,
		set("aaa", "baa", "aba", "bba", "aca", "bca"),
		outcomes(disk, firstOfSectors))
}

func TestRandomExtends(t *testing.T) {
	disk, f := newDisk(t, sectors("a"))
	writeAt(t, f, sectors("b"), sectorSize)
	writeAt(t, f, sectors("c"), 2*sectorSize)
	require.Equal(t,
		set("a", "ab", "abc", "a0", "a00", "a0c", "ab0"),
		outcomes(disk, firstOfSectors))
}

func TestRandomTruncates(t *testing.T) {
	disk, f := newDisk(t, sectors("ab"))
	require.NoError(t, f.Truncate(sectorSize))
	require.Equal(t, set("a", "ab"), outcomes(disk, firstOfSectors))

	disk, f = newDisk(t, sectors("a"))
	require.NoError(t, f.Truncate(1))
	whole := func(after *crashfs.FS) string { return contents(t, after)["f"] }
	require.Equal(t,
		set(sectors("a"), "a", "a"+strings.Repeat("\x00", sectorSize-1)),
		outcomes(disk, whole), "truncated bytes may become zeros before the size changes")

	disk, f = newDisk(t, sectors("a"))
	writeAt(t, f, sectors("b"), sectorSize)
	require.NoError(t, f.Truncate(0))
	require.NotContains(t, outcomes(disk, firstOfSectors), "0b", "a truncated sector does not survive alone")
}

func TestRandomNames(t *testing.T) {
	disk, _ := newDisk(t, "")
	require.NoError(t, disk.MkdirAll("d"))
	require.NoError(t, disk.SyncDir("."))
	touch(t, disk, "a")
	require.NoError(t, disk.Rename("a", "b"))
	require.NoError(t, disk.Remove("f"))
	touch(t, disk, "d/x")
	touch(t, disk, "d/y")

	var want []string
	for _, root := range []string{"f", "a f", "b f", "b"} {
		for _, below := range []string{"", " d/x", " d/x d/y"} {
			want = append(want, sortedWords(root+below))
		}
	}
	require.Equal(t, set(want...), outcomes(disk, func(after *crashfs.FS) string {
		return strings.Join(after.Names(), " ")
	}))
}

// sortedWords sorts names as Names does: d/… comes between b and f.
func sortedWords(s string) string {
	if names, below, found := strings.Cut(s, "f d/"); found {
		return names + "d/" + below + " f"
	}
	return s
}

func TestRandomIsRepeatable(t *testing.T) {
	disk, f := newDisk(t, sectors("aaaaaaaa"))
	writeAt(t, f, sectors("bbbbbbbb"), 0)
	for range 8 {
		touch(t, disk, "d")
		require.NoError(t, disk.Remove("d"))
	}
	crash := func() map[string]string {
		return contents(t, disk.Crash(crashfs.Random(rand.New(rand.NewPCG(1, 2)))))
	}
	require.Equal(t, crash(), crash())
}

// TestRandomIsExplainable checks that after a crash every sector of a file has a
// version that it had since the last Sync, and that no synced sector is lost
// unless it was overwritten.
func TestRandomIsExplainable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := crashfs.New()
		f, err := disk.Create("f")
		require.NoError(t, err)
		require.NoError(t, disk.SyncDir("."))

		seen := history{versions: [][]byte{{}}}
		offset := rapid.Int64Range(0, 4*sectorSize)
		for i := range rapid.IntRange(0, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"write", "write", "truncate", "sync"}).Draw(t, "step") {
			case "write":
				size := rapid.IntRange(1, 3*sectorSize).Draw(t, "size")
				_, err := f.WriteAt(bytes.Repeat([]byte{byte('a' + i)}, size), offset.Draw(t, "offset"))
				require.NoError(t, err)
			case "truncate":
				size := offset.Draw(t, "new size")
				require.NoError(t, f.Truncate(size))
				seen.cuts = append(seen.cuts, size)
			case "sync":
				require.NoError(t, f.Sync())
				seen = history{}
			}
			now, err := disk.ReadFile("f")
			require.NoError(t, err)
			seen.versions = append(seen.versions, now)
		}

		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range 8 {
			after, err := disk.Crash(crashfs.Random(rng)).ReadFile("f")
			require.NoError(t, err)
			seen.requireExplains(t, after)
		}
	})
}

// history is the versions of a file since its last Sync, the durable one first,
// and the sizes of its truncations.
type history struct {
	versions [][]byte
	cuts     []int64
}

func (h history) requireExplains(t *rapid.T, after []byte) {
	if len(h.versions) == 1 {
		require.Equal(t, h.versions[0], after, "all of it was durable")
		return
	}
	require.Contains(t, h.sizes(), len(after), "size")
	if len(h.cuts) == 0 {
		require.GreaterOrEqual(t, len(after), len(h.versions[0]), "size")
	}
	for start := 0; start < len(after); start += sectorSize {
		got := after[start:min(start+sectorSize, len(after))]
		require.True(t, h.explains(start, got), "sector at %d: %q", start, got)
	}
}

// sizes returns the possible sizes of the file: those it had, and those due to a
// surviving sector.
func (h history) sizes() map[int]bool {
	sizes := map[int]bool{}
	for _, v := range h.versions {
		sizes[len(v)] = true
		for end := sectorSize; end < len(v); end += sectorSize {
			sizes[end] = true
		}
	}
	return sizes
}

// explains reports whether got is a version of the sector at start, possibly
// truncated later.
func (h history) explains(start int, got []byte) bool {
	ends := []int{start + sectorSize}
	for _, cut := range h.cuts {
		if int(cut) >= start && int(cut) < start+sectorSize {
			ends = append(ends, int(cut))
		}
	}
	for _, v := range h.versions {
		for _, end := range ends {
			want := make([]byte, sectorSize)
			if start < len(v) {
				copy(want, v[start:max(start, min(end, len(v)))])
			}
			if bytes.Equal(got, want[:len(got)]) {
				return true
			}
		}
	}
	return false
}
