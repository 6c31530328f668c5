package index

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/structure/structuretest"
	"pgregory.net/rapid"
)

// encodeLeaf encodes a leaf of a model's entries.
func encodeLeaf(m model, low, high []byte) []byte {
	var w leafWriter
	for _, k := range m.keys() {
		w.add([]byte(k), []byte(m[k]))
	}
	return w.finish(low, high)
}

// reseal corrects the checksum of a changed leaf.
func reseal(low, b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) >= 4 {
		binary.LittleEndian.PutUint32(b, crc32.Update(crc32.Update(0, castagnoli, low), castagnoli, b[4:]))
	}
	return b
}

func TestLeafGolden(t *testing.T) {
	m := model{"s/run-1/0001": "one", "s/run-1/0002": "", "s/run-2/0001": strings.Repeat("x", 130), "t": "\x00"}
	var all []byte
	for _, b := range [][]byte{
		encodeLeaf(m, []byte("s/"), []byte("u")),
		encodeLeaf(m, nil, nil),
		encodeLeaf(nil, nil, []byte{}),
	} {
		all = append(binary.LittleEndian.AppendUint32(all, uint32(len(b))), b...)
	}
	golden(t, "leaf", all)
}

func TestLeafRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{}
		for range rapid.IntRange(0, 60).Draw(t, "entries") {
			m[string(drawKey(t, m))] = string(drawValue(t))
		}
		var low, high []byte
		keys := m.keys()
		if len(keys) > 0 && rapid.Bool().Draw(t, "bounded") {
			low, high = []byte(keys[0]), []byte(keys[len(keys)-1]+"\x00")
		}
		b := encodeLeaf(m, low, high)
		l, err := decodeLeaf(low, b)
		require.NoError(t, err)
		require.Equal(t, high, l.high)

		entries, err := l.list(low, nil)
		require.NoError(t, err)
		require.Len(t, entries, len(m))
		for i, e := range entries {
			require.Equal(t, keys[i], string(e.Key))
			require.Equal(t, m[keys[i]], string(e.Value))
			require.NotNil(t, e.Value)
			v, ok, err := l.get(e.Key)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, m[keys[i]], string(v))
			last, ok, err := l.before(append(bytes.Clone(e.Key), 0))
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, e, last)
		}
		for range 20 {
			key := drawKey(t, m)
			if cut := rapid.IntRange(0, len(key)).Draw(t, "cut"); rapid.Bool().Draw(t, "shorten") {
				key = key[:cut]
			}
			if l.covers(key) {
				v, ok, err := l.get(key)
				require.NoError(t, err)
				want, has := m[string(key)]
				require.Equal(t, has, ok)
				require.Equal(t, want, string(v))
			}
		}
	})
}

// A leaf that was changed anywhere, truncated, extended, or is under another key, is
// refused.
func TestLeafDamage(t *testing.T) {
	low := []byte("s/")
	b := encodeLeaf(model{"s/1": "one", "s/2": "two"}, low, []byte("t"))
	for i := range b {
		for _, x := range []byte{0x01, 0x80, 0xff} {
			damaged := bytes.Clone(b)
			damaged[i] ^= x
			_, err := decodeLeaf(low, damaged)
			require.ErrorIs(t, err, errLeaf, "byte %d", i)
		}
		_, err := decodeLeaf(low, b[:i])
		require.ErrorIs(t, err, errLeaf, "%d bytes", i)
	}
	_, err := decodeLeaf(low, append(bytes.Clone(b), 0))
	require.ErrorIs(t, err, errLeaf)
	for _, other := range []string{"", "s", "s0", "s/\x00", "t/"} {
		_, err := decodeLeaf([]byte(other), b)
		require.ErrorIs(t, err, errLeaf, "under %q", other)
	}
}

// A leaf that claims more data than it has is refused, or decodes to no more than its
// bytes.
func TestInflatedLeaf(t *testing.T) {
	low := []byte("s/")
	whole := encodeLeaf(model{"s/1": "one", "s/12": "", "s/2": strings.Repeat("x", 200)}, low, []byte("t"))
	for at := 4; at < len(whole); at++ {
		for b := range structuretest.Inflated(whole, at) {
			b = reseal(low, b)
			allocated := structuretest.Allocated(func() {
				l, err := decodeLeaf(low, b)
				if err != nil {
					require.ErrorIs(t, err, errLeaf)
					return
				}
				for c := l.cursor(); c.next(); {
					require.LessOrEqual(t, len(c.key)+len(c.value), len(b))
				}
				_, _, _ = l.get([]byte("s/2"))
			})
			require.LessOrEqual(t, allocated, uint64(64<<10), "%x", b)
		}
	}
}

// A leaf answers only for keys within its bounds.
func TestLeafBounds(t *testing.T) {
	l, err := decodeLeaf([]byte("c"), encodeLeaf(model{"c": "", "d": "4"}, []byte("c"), []byte("f")))
	require.NoError(t, err)
	for key, inside := range map[string]bool{"": false, "b\xff": false, "c": true, "c\x00": true, "e\xff": true, "f": false, "z": false} {
		require.Equal(t, inside, l.covers([]byte(key)), "%q", key)
		_, _, err := l.get([]byte(key))
		if inside {
			require.NoError(t, err, "%q", key)
		} else {
			require.ErrorIs(t, err, errBounds, "%q", key)
		}
	}
}

// FuzzDecodeLeaf decodes inputs that a checksum would normally stop.
func FuzzDecodeLeaf(f *testing.F) {
	f.Add([]byte("s/"), encodeLeaf(model{"s/1": "one", "s/12": "", "s/2": "two"}, []byte("s/"), []byte("t")), []byte("s/12"), true)
	f.Add([]byte{}, encodeLeaf(nil, nil, nil), []byte{}, true)
	f.Add([]byte("s"), []byte{0, 0, 0, 0, 0}, []byte("s"), false)
	huge := binary.AppendUvarint([]byte{0, 0, 0, 0}, 1<<63)
	f.Add([]byte{}, append(huge, 1, 2, 3), []byte("x"), true)
	entry := []byte{0, 0, 0, 0, 0}
	for range 3 {
		entry = binary.AppendUvarint(entry, 1<<64-1)
	}
	f.Add([]byte{}, entry, []byte("x"), true)
	f.Add([]byte{}, []byte{0, 0, 0, 0, 0, 0, 1, 1, 'k', 'v', 2, 0, 0}, []byte("k"), true)
	f.Fuzz(func(t *testing.T, low, b, key []byte, sealed bool) {
		if len(b) > 4<<10 {
			t.Skip("long")
		}
		if sealed {
			b = reseal(low, b)
		}
		l, err := decodeLeaf(low, b)
		if err != nil {
			require.ErrorIs(t, err, errLeaf)
			return
		}
		n := 0
		c := l.cursor()
		for c.next() {
			require.LessOrEqual(t, len(c.key)+len(c.value), len(b))
			n++
		}
		require.LessOrEqual(t, 3*n, len(b))
		v, ok, err := l.get(key)
		require.False(t, err != nil && ok)
		require.LessOrEqual(t, len(v), len(b))
		entries, err := l.list(low, nil)
		if err == nil {
			require.LessOrEqual(t, len(entries), n)
		}
		_, _, _ = l.before(key)
		_, _, _ = l.before(nil)
	})
}
