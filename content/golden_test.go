package content

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireGolden compares text with a file of testdata. These files freeze what is
// on the disks of every store: a difference is a change of format.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// randomBytes returns n bytes that depend only on the seed.
func randomBytes(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func TestGoldenGear(t *testing.T) {
	h := sha256.New()
	for _, v := range gear {
		h.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
	requireGolden(t, "gear", fmt.Sprintf("first %016x\nlast %016x\nsha256 %x\n", gear[0], gear[255], h.Sum(nil)))
}

func TestGoldenSizes(t *testing.T) {
	requireGolden(t, "sizes", fmt.Sprintf("inline %d\nchunk %d %d %d\nmask %016x %016x\nchildren %d %d\nend mask %d\nheight %d\n",
		InlineLimit, MinChunk, AverageChunk, MaxChunk, maskBelowAverage, maskAboveAverage,
		minChildren, maxChildren, endMask, MaxHeight))
}

func TestGoldenCut(t *testing.T) {
	body := randomBytes(1, 2<<20)
	store := make(chunkMap)
	id, root := store.cut(t, body)

	var text strings.Builder
	fmt.Fprintf(&text, "id %v\nroot %v height %d size %d\n", id, root.Key, root.Height, root.Size)
	for chunk := range chunksOf(t, body) {
		fmt.Fprintf(&text, "%d %v\n", len(chunk), KeyOf(chunk))
	}
	requireGolden(t, "cut", text.String())
}

func TestGoldenTree(t *testing.T) {
	// Very small chunks give a tree of three levels from little data.
	store := make(chunkMap)
	root := store.build(t, tinyChunks(40_000))

	var text strings.Builder
	fmt.Fprintf(&text, "root %v height %d size %d\n", root.Key, root.Height, root.Size)
	require.NoError(t, Walk(t.Context(), root, store.get, func(key Key, isNode bool) error {
		if isNode {
			fmt.Fprintf(&text, "node %v height %d, %d bytes\n", key, store[key][1], len(store[key]))
		}
		return nil
	}))
	requireGolden(t, "tree", text.String())
}

func TestGoldenNode(t *testing.T) {
	var text strings.Builder
	for _, node := range []struct {
		height   uint8
		children []child
	}{
		{1, []child{{KeyOf([]byte("a")), 1}}},
		{1, []child{{KeyOf([]byte("a")), 127}, {KeyOf([]byte("b")), 128}, {KeyOf([]byte("c")), MaxChunk}}},
		{MaxHeight, []child{{KeyOf([]byte("a")), 1 << 40}, {KeyOf([]byte("b")), 1<<63 - 1 - 1<<40}}},
	} {
		b := appendNode(nil, node.height, node.children)
		fmt.Fprintf(&text, "%s %v\n", hex.EncodeToString(b), KeyOf(b))
	}
	requireGolden(t, "node", text.String())
}

func TestGoldenHashes(t *testing.T) {
	var text strings.Builder
	for _, s := range []string{"", "abc", strings.Repeat("lineage ", 5000)} {
		fmt.Fprintf(&text, "%d bytes\nid %v\nkey %v\n", len(s), Sum([]byte(s)), KeyOf([]byte(s)))
	}
	requireGolden(t, "hashes", text.String())
}

func TestGoldenCodes(t *testing.T) {
	var text strings.Builder
	for code := range 256 {
		if mediaType, ok := TypeOfCode(uint8(code)); ok {
			fmt.Fprintf(&text, "type %d %s\n", code, mediaType)
		}
	}
	for kind := OriginKind(0); kind.IsValid(); kind++ {
		fmt.Fprintf(&text, "origin %d %v\n", kind, kind)
	}
	requireGolden(t, "codes", text.String())
}
