package bundle

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// craftedMemory limits what checking and importing a small bundle may allocate: a few decoders and
// frames of the largest size.
const craftedMemory = 256 << 20

type rawEntry struct {
	tag byte
	b   []byte
}

// TestCraftedFields changes fields, lengths and counts of bundles and gives the result valid
// checksums. It is refused with a typed error or imported, and the store is sound, also one that
// has the original.
func TestCraftedFields(t *testing.T) {
	var bundles [][]rawEntry
	for _, name := range []string{"store.bundle", "nothing-new.bundle"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		bundles = append(bundles, entriesOf(t, b))
	}
	rapid.Check(t, func(rt *rapid.T) {
		entries := slices.Clone(rapid.SampledFrom(bundles).Draw(rt, "bundle"))
		for range rapid.IntRange(1, 4).Draw(rt, "edits") {
			i := rapid.IntRange(0, len(entries)-1).Draw(rt, "entry")
			switch rapid.SampledFrom([]string{"field", "field", "field", "varint", "tag", "twice", "drop", "swap", "cut"}).Draw(rt, "edit") {
			case "field":
				entries[i].b = editEntry(rt, entries[i])
			case "varint":
				entries[i].b = editVarint(rt, entries[i].b)
			case "tag":
				entries[i].tag = byte(rapid.IntRange(0, 11).Draw(rt, "tag"))
			case "twice":
				entries = slices.Insert(entries, i, entries[i])
			case "drop":
				if len(entries) > 1 {
					entries = slices.Delete(entries, i, i+1)
				}
			case "swap":
				k := rapid.IntRange(0, len(entries)-1).Draw(rt, "with")
				entries[i], entries[k] = entries[k], entries[i]
			case "cut":
				entries[i].b = entries[i].b[:rapid.IntRange(0, len(entries[i].b)).Draw(rt, "to")]
			}
		}
		var b bytes.Buffer
		out, err := newWriter(&b)
		require.NoError(rt, err)
		defer out.close()
		for _, e := range entries {
			require.NoError(rt, out.entry(e.tag, e.b))
		}
		require.NoError(rt, out.end())

		for _, full := range []bool{false, true} {
			s := emptyStore(t)
			if full {
				_, err := Import(bg, s, bytes.NewReader(goldenBundle(t)), ImportOptions{})
				require.NoError(rt, err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Import(bg, s, bytes.NewReader(b.Bytes()), ImportOptions{})
			runtime.ReadMemStats(&after)
			require.True(rt, err == nil || isTyped(err), "%v", err)
			require.Less(rt, after.TotalAlloc-before.TotalAlloc, uint64(craftedMemory), "of a bundle of %d bytes: %v", b.Len(), err)
			for finding, err := range s.Verify(bg, lineage.VerifyOptions{Deep: true}) {
				require.NoError(rt, err)
				require.FailNow(rt, finding.String())
			}
			_, err = Write(bg, s, io.Discard, WriteOptions{})
			require.NoError(rt, err)
			require.NoError(rt, s.Close())
		}
	})
}

func entriesOf(t testing.TB, b []byte) (all []rawEntry) {
	t.Helper()
	in, err := newReader(bytes.NewReader(b))
	require.NoError(t, err)
	defer in.close()
	for {
		tag, e, err := in.next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		all = append(all, rawEntry{tag, bytes.Clone(e)})
	}
}

// hostile are numbers at the limits of lengths, counts and places.
var hostile = []uint64{0, 1, 2, 3, 127, 128, 1 << 16, maxEntry, maxFrame, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1}

// editVarint overwrites some bytes of an entry with a number.
func editVarint(t *rapid.T, b []byte) []byte {
	at := rapid.IntRange(0, len(b)).Draw(t, "at")
	over := rapid.IntRange(0, min(10, len(b)-at)).Draw(t, "over")
	return slices.Concat(b[:at], binary.AppendUvarint(nil, rapid.SampledFrom(hostile).Draw(t, "number")), b[at+over:])
}

// editEntry changes a field of an entry and encodes it again. If the result cannot be encoded, the
// entry is not changed.
func editEntry(t *rapid.T, e rawEntry) []byte {
	if e.tag == entryLeftKey {
		return editVarint(t, e.b)
	}
	if e.tag == entryRun {
		p, ok := decodePiece(e.b)
		if !ok {
			return e.b
		}
		switch rapid.IntRange(0, 5).Draw(t, "part") {
		case 0:
			p.from = rapid.SampledFrom(hostile).Draw(t, "from")
		case 1:
			p.last = rapid.SampledFrom(hostile).Draw(t, "last")
		case 2:
			p.left = !p.left
		case 3:
			p.before[0] ^= 1
		default:
			editField(t, reflect.ValueOf(&p.run).Elem())
		}
		if b, err := p.encode(); err == nil {
			return b
		}
		return e.b
	}
	c, err := structure.DecodeCommit(bytes.Clone(e.b))
	if err != nil {
		return e.b
	}
	editField(t, reflect.ValueOf(c).Elem())
	var enc structure.Encoder
	if b, _, err := enc.Encode(c); err == nil {
		return bytes.Clone(b)
	}
	return e.b
}

// editField changes one value in v.
func editField(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			editField(t, v.Elem())
		}
	case reflect.Struct:
		var fields []reflect.Value
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fields = append(fields, v.Field(i))
			}
		}
		if len(fields) > 0 {
			editField(t, rapid.SampledFrom(fields).Draw(t, "field"))
		}
	case reflect.Slice:
		n := v.Len()
		if n == 0 {
			return
		}
		i := rapid.IntRange(0, n-1).Draw(t, "index")
		switch rapid.IntRange(0, 5).Draw(t, "in list") {
		case 0:
			v.Set(v.Slice(0, i))
		case 1:
			v.Set(reflect.AppendSlice(v.Slice3(0, n, n), v.Slice(i, n)))
		default:
			editField(t, v.Index(i))
		}
	case reflect.Array:
		editField(t, v.Index(rapid.IntRange(0, v.Len()-1).Draw(t, "index")))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.CanSet() {
			v.SetUint(rapid.SampledFrom(hostile).Draw(t, "number"))
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if v.CanSet() {
			v.SetInt(int64(rapid.SampledFrom(hostile).Draw(t, "number")))
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "main", "\xff", "a\x00b", "../../x"}).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	}
}
