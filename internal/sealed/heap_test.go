package sealed

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/varint"
)

// storedHeap returns the texts of a stored heap.
func storedHeap(b []byte) ([]byte, error) {
	r := varint.Reader{Rest: b}
	h := readHeap(&r)
	if r.Bad {
		return nil, ErrDamaged
	}
	return h.texts()
}

// texts draws what heaps have: ids, hashes, numbers and words with and without something between them,
// often several times, and escape bytes.
func drawTexts(t *rapid.T) []byte {
	part := rapid.OneOf(
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f-]{4}`),
		rapid.StringMatching(`[0-9a-f]{1,30}`), rapid.StringMatching(`[0-9]{8,20}`), rapid.StringMatching(`[0-9a-f]{250,600}`),
		rapid.SampledFrom([]string{"", "-", " ", "\x01", "\x01\x01", "\x00", "sha256:", "F", "a"}), rapid.StringN(0, 10, 30),
	)
	parts := rapid.SliceOfN(part, 1, 40).Draw(t, "parts")
	order := rapid.SliceOfN(rapid.IntRange(0, len(parts)-1), 0, 200).Draw(t, "order")
	var b []byte
	for _, i := range order {
		b = append(b, parts[i]...)
	}
	return b
}

func TestHeaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := drawTexts(t)
		skeleton, digits := splitDigits(texts)
		got, err := joinDigits(skeleton, digits, len(texts))
		require.NoError(t, err)
		require.Equal(t, string(texts), string(got))
		b := appendHeap([]byte("before"), texts)[len("before"):]
		got, err = storedHeap(b)
		require.NoError(t, err)
		require.Equal(t, string(texts), string(got))
		require.LessOrEqual(t, len(b), len(texts)+2*varintSize(len(texts)), "it is never larger than the texts")
	})
}

func varintSize(n int) int { return len(fmt.Appendf(nil, "%b", n))/7 + 1 }

// TestDigits has what is left out of a skeleton.
func TestDigits(t *testing.T) {
	const id = "f662da2b-a965-44da-a9f0-f6d6b4ad8c45"
	for texts, want := range map[string]string{
		"no id":                               "no id",
		"deadbeef9 deadbeef9":                 "deadbeef9 deadbeef9",
		"1700774757951":                       "1700774757951",
		"a 1\x01b":                            "a 1\x01\x00b",
		id:                                    "\x01\x01",
		"x" + id + "y" + id + "z":             "x\x01\x01y\x01\x80z",
		"abc" + id + id:                       "abc\x01\x01\x01\x80",
		"0123456789abcdef" + id:               "\x01\x08\x01\x01",
		"0123456789a 0123456789b":             "\x01\x05a \x01\x80b",
		strings.ToUpper(id):                   strings.ToUpper(id),
		id[:35]:                               id[:24] + "\x01\x05" + id[34:35],
		strings.Repeat("ab", 130):             "\x01\x7fababab",
		"a" + strings.Repeat("f0", 127) + ">": "\x01\x7f0>",
		"<" + strings.Repeat("f0", 127) + ">": "<\x01\x7f>",
	} {
		skeleton, digits := splitDigits([]byte(texts))
		require.Equal(t, fmt.Sprintf("%q", want), fmt.Sprintf("%q", skeleton), texts)
		got, err := joinDigits(skeleton, digits, len(texts))
		require.NoError(t, err)
		require.Equal(t, texts, string(got))
	}
}

// TestRunsFarBack repeats runs at all distances.
func TestRunsFarBack(t *testing.T) {
	var b []byte
	for i := range 300 {
		b = fmt.Appendf(b, "%040x,", uint64(i)*0x9e3779b97f4a7c15)
		for _, back := range []int{0, 1, 126, 127, 128, 129} {
			if j := i - back; j >= 0 {
				b = fmt.Appendf(b, "%040x;", uint64(j)*0x9e3779b97f4a7c15)
			}
		}
	}
	got, err := storedHeap(appendHeap(nil, b))
	require.NoError(t, err)
	require.True(t, bytes.Equal(b, got))
}

// TestHeapsAtTheLimit stores heaps whose compressed size is about that of a bomb.
//
//test:norace
func TestHeapsAtTheLimit(t *testing.T) {
	const id = "f662da2b-a965-44da-a9f0-f6d6b4ad8c45"
	random := rand.New(rand.NewPCG(1, 2))
	b := []byte(strings.Repeat(id, 2<<20/len(id)))
	for range 440 {
		b = append(b, byte(128+random.IntN(128)))
	}
	for range 50 {
		b = append(b, byte(128+random.IntN(128)))
		got, err := storedHeap(appendHeap(nil, b))
		require.NoError(t, err)
		require.True(t, bytes.Equal(b, got))
	}
}

// FuzzHeap reads anything as a heap.
func FuzzHeap(f *testing.F) {
	const id = "f662da2b-a965-44da-a9f0-f6d6b4ad8c45"
	f.Add(appendHeap(nil, []byte("a text")))
	f.Add(appendHeap(nil, []byte(strings.Repeat(id+" 0123456789abcdef \x01", 9))))
	f.Add([]byte("\x24\x10aaaaaaaaaaaaaaaa\x04\x01\x01\x01\x80"))
	f.Fuzz(func(t *testing.T, b []byte) {
		texts, err := storedHeap(b)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		require.False(t, bomb(len(b), len(texts)))
		again, err := storedHeap(appendHeap(nil, texts))
		require.NoError(t, err)
		require.True(t, bytes.Equal(texts, again))
	})
}
