package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
)

const abcID = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestID(t *testing.T) {
	id := Sum([]byte("abc"))
	require.Equal(t, abcID, id.String())
	require.Equal(t, abcID[:12], id.Short())
	require.False(t, id.IsZero())
	require.True(t, ID{}.IsZero())
	require.Zero(t, id.Compare(id))
	require.Equal(t, 1, id.Compare(ID{0xba}))
	require.Equal(t, -1, id.Compare(ID{0xbb}))

	parsed, err := ParseID(strings.ToUpper(abcID))
	require.NoError(t, err)
	require.Equal(t, id, parsed)

	text, err := id.AppendText([]byte("id "))
	require.NoError(t, err)
	require.Equal(t, "id "+abcID, string(text))
}

func TestKey(t *testing.T) {
	// The value is from BLAKE3's own test vectors, for one zero byte.
	const text = "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"
	key := KeyOf([]byte{0})
	require.Equal(t, text, key.String())
	require.False(t, key.IsZero())
	require.True(t, Key{}.IsZero())

	parsed, err := ParseKey(text)
	require.NoError(t, err)
	require.Equal(t, key, parsed)
}

func TestTextOfIDAndKey(t *testing.T) {
	type hashes struct {
		ID  ID
		Key Key
		Map map[ID]Key
	}
	want := hashes{ID: Sum([]byte("a")), Key: KeyOf([]byte("b")), Map: map[ID]Key{Sum(nil): KeyOf(nil)}}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	require.Contains(t, string(text), want.ID.String())

	var got hashes
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, want, got)

	before := got
	require.Error(t, got.ID.UnmarshalText([]byte("no")))
	require.Error(t, got.Key.UnmarshalText([]byte("no")))
	require.Equal(t, before, got, "a failure changes nothing")
}

func TestParseIDRefuses(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	for _, text := range []string{"", "ab", abcID[1:], abcID + "0", " " + abcID[1:], abcID[:63] + "g", long} {
		id, err := ParseID(text)
		require.True(t, id.IsZero())
		var parse *ParseError
		require.ErrorAs(t, err, &parse)
		require.Equal(t, "content id", parse.What)
		require.LessOrEqual(t, len(parse.Text), quotedLen+len("…"))
		require.True(t, strings.HasPrefix(text, strings.TrimSuffix(parse.Text, "…")))
		require.True(t, utf8.ValidString(parse.Text))
	}
	_, err := ParseKey("xyz")
	require.EqualError(t, err, `malformed chunk key "xyz"`)
}

func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"", abcID, strings.ToUpper(abcID), abcID[1:], abcID + "0", abcID[:62] + "é", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseID(text)
		if err == nil {
			require.Equal(t, strings.ToLower(text), id.String())
			return
		}
		require.True(t, id.IsZero())
		require.True(t, errors.As(err, new(*ParseError)))
		require.Less(t, len(err.Error()), 500)
	})
}

// The id of a body does not depend on how it is split.
func TestHasherAgreesWithSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 200)).Draw(t, "pieces")
		h := NewHasher()
		for i, p := range pieces {
			n, err := h.Write(p)
			require.NoError(t, err)
			require.Equal(t, len(p), n)
			require.Equal(t, Sum(bytes.Join(pieces[:i+1], nil)), h.ID())
		}
		require.Equal(t, Sum(bytes.Join(pieces, nil)), h.ID())
	})
}

func TestHashingAllocatesNothing(t *testing.T) {
	small, large := randomBytes(1, 100), randomBytes(1, MaxChunk)
	var id ID
	var key Key
	require.Zero(t, campaign.Allocs(10, func() { id = Sum(large) }))
	require.Zero(t, campaign.Allocs(10, func() { key = KeyOf(small) }))
	require.Zero(t, campaign.Allocs(10, func() { key = KeyOf(large) }))
	require.Equal(t, Sum(large), id)
	require.Equal(t, KeyOf(large), key)
}
