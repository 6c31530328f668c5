package index

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func damages(t *testing.T, path string) (all []Damage) {
	t.Helper()
	db, err := Open(path, Options{ReadOnly: true})
	require.NoError(t, err)
	for d, err := range db.CheckSums() {
		require.NoError(t, err)
		all = append(all, d)
	}
	require.NoError(t, db.Close())
	return all
}

func TestSumsGolden(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("0123456789abcdef"), 10_000), 0o600))
	require.NoError(t, writeSums(path))
	b, err := os.ReadFile(path + sumsSuffix)
	require.NoError(t, err)
	golden(t, "sums", b)
}

// Damage in unused bytes is found too.
func TestSumsFindDamage(t *testing.T) {
	path, m := small(t)
	require.Empty(t, damages(t, path))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	last := int64(len(b) - 1) // preallocated, in no page
	b[last] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.Equal(t, []Damage{{Offset: last / sumsBlock * sumsBlock, Length: last%sumsBlock + 1}}, damages(t, path))

	b[last] ^= 1
	require.NoError(t, os.WriteFile(path, append(b, 0), 0o600))
	require.NotEmpty(t, damages(t, path), "a file that grew")
	requireModel(t, m, open(t, path, Options{}))
}

// Torn, damaged or missing checksums are ignored.
func TestSumsUnusable(t *testing.T) {
	path, _ := small(t)
	whole, err := os.ReadFile(path + sumsSuffix)
	require.NoError(t, err)
	for n := range whole {
		require.NoError(t, os.WriteFile(path+sumsSuffix, whole[:n], 0o600))
		require.Empty(t, damages(t, path), "%d bytes", n)
		damaged := bytes.Clone(whole)
		damaged[n] ^= 0x10
		require.NoError(t, os.WriteFile(path+sumsSuffix, damaged, 0o600))
		require.Empty(t, damages(t, path), "byte %d", n)
	}
	require.NoError(t, os.Remove(path+sumsSuffix))
	require.Empty(t, damages(t, path))
}

// A process killed after writing to the index leaves no outdated checksums; nor
// does a new index get those of an old one.
func TestKillLeavesNoSums(t *testing.T) {
	path, _ := small(t)
	require.FileExists(t, path+sumsSuffix)
	db := open(t, path, Options{})
	db.Apply(at(2), batchOf(0, 200, same("newer")))
	require.FileExists(t, path+sumsSuffix)
	require.NoError(t, db.Checkpoint())
	require.NoFileExists(t, path+sumsSuffix)
	require.NoError(t, db.Close())
	require.FileExists(t, path+sumsSuffix)
	require.Empty(t, damages(t, path))

	require.NoError(t, os.Remove(path))
	open(t, path, Options{})
	require.NoFileExists(t, path+sumsSuffix)
}

// FuzzReadSums reads arbitrary checksum files.
func FuzzReadSums(f *testing.F) {
	path, _ := small(f)
	whole, err := os.ReadFile(path + sumsSuffix)
	require.NoError(f, err)
	f.Add(whole, false)
	f.Add(whole[:len(whole)-4], true)
	f.Add([]byte{}, false)
	f.Add([]byte(sumsMagic), true)
	f.Add([]byte(sumsMagic+"\x01\x00\x00\x00\x00\x00\x00\x00"+"sums\x00\x00"), true)
	f.Add([]byte(sumsMagic+"\xff\xff\xff\xff\xff\xff\xff\x7f"), true)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		}
		path := newPath(t)
		require.NoError(t, os.WriteFile(path+sumsSuffix, b, 0o600))
		sums, size, err := readSums(path)
		require.NoError(t, err)
		require.LessOrEqual(t, len(sums), len(b))
		require.Zero(t, len(sums)%4)
		if sums == nil {
			require.Zero(t, size)
		}
	})
}
