package bundle

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

// craftedMemory limits what checking and importing a small bundle may allocate: a few decoders and
// frames of the largest size.
const craftedMemory = 256 << 20

type rawEntry struct {
	tag byte
	b   []byte
}

// TestCraftedFields changes fields, lengths, counts, references and records of bundles and gives the
// result valid checksums, most often digests too. It is imported, or refused with a typed error and
// leaves nothing. The store is sound, also one that has the original.
func TestCraftedFields(t *testing.T) {
	var bundles [][]rawEntry
	for _, name := range []string{"store.bundle", "nothing-new.bundle"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		bundles = append(bundles, entriesOf(t, b))
	}
	check := func(rt *rapid.T) {
		entries := slices.Clone(rapid.SampledFrom(bundles).Draw(rt, "bundle"))
		for range rapid.IntRange(1, 4).Draw(rt, "edits") {
			i := rapid.IntRange(0, len(entries)-1).Draw(rt, "entry")
			switch rapid.SampledFrom([]string{"reference", "record", "field", "drop", "reference", "record", "field", "reference", "varint", "tag", "twice", "drop", "swap", "cut"}).Draw(rt, "edit") {
			case "field":
				entries[i].b = editEntry(rt, entries[i])
			case "record":
				entries[i].b = editRecords(rt, entries[i])
			case "reference":
				entries[i].b = editReference(rt, entries[i])
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
		if rapid.IntRange(0, 3).Draw(rt, "raw") < 3 {
			entries = repaired(entries)
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
			s := storetest.New(t)
			if full {
				_, err := Import(bg, s, bytes.NewReader(goldenBundle(t)), ImportOptions{})
				require.NoError(rt, err)
			}
			left := exported(rt, s)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, refused := Import(bg, s, bytes.NewReader(b.Bytes()), ImportOptions{})
			runtime.ReadMemStats(&after)
			require.True(rt, refused == nil || isTyped(refused), "%v", refused)
			require.Less(rt, after.TotalAlloc-before.TotalAlloc, uint64(craftedMemory), "of a bundle of %d bytes: %v", b.Len(), refused)
			for finding, err := range s.Verify(bg, lineage.VerifyOptions{Deep: true}) {
				require.NoError(rt, err)
				require.FailNow(rt, finding.String())
			}
			if now := exported(rt, s); refused != nil {
				require.Equal(rt, left, now, "a bundle that is refused leaves nothing: %v", refused)
			}
			require.NoError(rt, s.Close())
		}
	}
	for range campaign.Rounds(1) {
		rapid.Check(t, check)
	}
}

// TestManyEntriesInLittle imports a small bundle with millions of entries. It is refused before they take
// time.
func TestManyEntriesInLittle(t *testing.T) {
	var b bytes.Buffer
	out, err := newWriter(&b)
	require.NoError(t, err)
	defer out.close()
	key := make([]byte, len(content.Key{}))
	const n = 1 << 20
	for range n {
		require.NoError(t, out.entry(entryLeftKey, key))
	}
	require.NoError(t, out.end())
	require.Less(t, b.Len(), 64<<10)
	in, err := newReader(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	defer in.close()
	read := 0
	err = in.each(bg, func(*decodedEntry) error { read++; return nil })
	require.ErrorIs(t, err, backend.ErrTooLarge)
	require.Less(t, read, n/4)
	_, err = Import(bg, storetest.New(t), bytes.NewReader(b.Bytes()), ImportOptions{})
	require.ErrorIs(t, err, backend.ErrTooLarge)
}

// An entry of millions of records, or usages of a message, is refused before they take memory. They have few bytes each, and
// few in the bundle.
func TestManyRecordsInLittle(t *testing.T) {
	encoded := func(records ...structure.Record) ([]byte, []int) {
		payload, offsets, err := new(structure.Encoder).Encode(&structure.Commit{Time: time.Unix(1, 0), Records: records})
		require.NoError(t, err)
		return payload, offsets
	}
	empty := structure.NewBlock("text/plain", content.BlockOrigin{}, time.Unix(1, 0), nil)
	payload, offsets := encoded(empty)
	record := payload[offsets[0]:]
	blocks := append(payload[:offsets[0]:offsets[0]], bytes.Repeat(record, (maxEntry-offsets[0])/len(record))...)
	span := &structure.Span{Ref: structure.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 1}, Usages: make([]structure.Usage, 1<<20)}
	for i := range span.Usages {
		span.Usages[i] = structure.Usage{Content: empty.ID, Kind: structure.MessageUsage, Role: "user"}
	}
	usages, _ := encoded(empty, span)
	for name, entry := range map[string][]byte{"blocks": blocks, "usages": usages} {
		var b bytes.Buffer
		out, err := newWriter(&b)
		require.NoError(t, err)
		require.NoError(t, out.entry(entryHistory, entry))
		require.NoError(t, out.end())
		out.close()
		require.Less(t, b.Len(), 64<<10, name)
		s := storetest.New(t)
		allocated := structuretest.Allocated(func() { _, err = Import(bg, s, bytes.NewReader(b.Bytes()), ImportOptions{}) })
		var corrupt *backend.CorruptError
		require.ErrorAs(t, err, &corrupt, name)
		require.ErrorContains(t, err, "too many records and usages")
		require.Less(t, allocated, uint64(craftedMemory), name)
	}
}

// A body of a few chunks that claims exabytes is refused before it is hashed. Bodies that repeat a chunk often are
// imported.
func TestEndlessBody(t *testing.T) {
	body := func(height uint8) (root content.Root, chunks []structure.Record) {
		chunk := []byte("repeated")
		root = content.Root{Key: content.KeyOf(chunk), Size: int64(len(chunk))}
		chunks = append(chunks, &structure.Chunk{Key: root.Key, Bytes: chunk})
		for range height {
			const children = 128
			root.Height++
			node := binary.AppendUvarint([]byte{1, root.Height}, children)
			for range children {
				node = binary.AppendUvarint(append(node, root.Key[:]...), uint64(root.Size))
			}
			root.Key, root.Size = content.KeyOf(node), children*root.Size
			chunks = append(chunks, &structure.Chunk{Key: root.Key, Bytes: node})
		}
		return root, chunks
	}
	bundle := func(id content.ID, root content.Root, chunks []structure.Record) []byte {
		c := craft(t)
		c.commit(entryBody, &structure.Block{Block: content.Block{ID: id, Size: root.Size}})
		c.commit(entryChunks, chunks...)
		return c.commit(entryHistory, &structure.Block{Block: content.Block{ID: id, Size: root.Size}, Tree: root}).end()
	}
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	root, chunks := body(8) // 2^59 bytes
	s := storetest.New(t)
	_, err := Import(ctx, s, bytes.NewReader(bundle(content.Sum([]byte("any")), root, chunks)), ImportOptions{})
	require.ErrorIs(t, err, backend.ErrTooLarge)
	head, err := s.View().Head(bg)
	require.NoError(t, err)
	require.Zero(t, head.Number)

	root, chunks = body(3) // 16 MiB
	whole := bytes.Repeat([]byte("repeated"), int(root.Size/8))
	_, err = Import(ctx, s, bytes.NewReader(bundle(content.Sum(whole), root, chunks)), ImportOptions{})
	require.NoError(t, err)
	requireSound(t, s)
}

// Many branches of one name take time and memory by their number, and not by its square.
func TestManyNamesAlike(t *testing.T) {
	const n = 3000
	names := naming{taken: make(map[string]bool), tried: make(map[string]int)}
	var last string
	allocated := structuretest.Allocated(func() {
		for range n {
			var err error
			last, err = names.free("branch", "main", func(string) error { return backend.ErrNotFound })
			require.NoError(t, err)
		}
	})
	require.Equal(t, fmt.Sprint("main-theirs-", n-1), last)
	require.Less(t, allocated, uint64(n*1024))
}

// contents is everything in a store, and its number of records.
type contents struct {
	bundle string
	stats  backend.Stats
}

// exported returns the contents of a store.
func exported(t require.TestingT, s *lineage.Store) contents {
	var b bytes.Buffer
	_, err := Write(bg, s, &b, WriteOptions{})
	require.NoError(t, err)
	stats, err := s.Stats(bg)
	require.NoError(t, err)
	stats.Chunks, stats.UniqueBytes = 0, 0 // chunks without a block may stay until the next collection
	return contents{b.String(), stats.Counts()}
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
			p.omitted = !p.omitted
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
	return editCommit(e, func(c *structure.Commit) { editField(t, reflect.ValueOf(c).Elem()) })
}

// editRecords drops, repeats or moves a record of an entry.
func editRecords(t *rapid.T, e rawEntry) []byte {
	return editCommit(e, func(c *structure.Commit) {
		i := rapid.IntRange(0, len(c.Records)-1).Draw(t, "record")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			c.Records = slices.Delete(c.Records, i, i+1)
		case 1:
			c.Records = slices.Insert(c.Records, i, c.Records[i])
		default:
			k := rapid.IntRange(0, len(c.Records)-1).Draw(t, "with")
			c.Records[i], c.Records[k] = c.Records[k], c.Records[i]
		}
	})
}

// editReference changes an id in an entry, so that it refers to something that is not there.
func editReference(t *rapid.T, e rawEntry) []byte {
	if e.tag == entryRun {
		if p, ok := decodePiece(e.b); ok {
			editID(t, reflect.ValueOf(&p.run).Elem())
			if b, err := p.encode(); err == nil {
				return b
			}
		}
		return e.b
	}
	return editCommit(e, func(c *structure.Commit) { editID(t, reflect.ValueOf(c).Elem()) })
}

// editCommit changes the commit of an entry. If the result cannot be encoded, the entry is not changed.
func editCommit(e rawEntry, edit func(*structure.Commit)) []byte {
	if e.tag == entryRun || e.tag == entryLeftKey {
		return e.b
	}
	c, err := structure.DecodeCommit(bytes.Clone(e.b))
	if err != nil || len(c.Records) == 0 {
		return e.b
	}
	edit(c)
	var enc structure.Encoder
	if b, _, err := enc.Encode(c); err == nil && len(c.Records) > 0 {
		return bytes.Clone(b)
	}
	return e.b
}

// editID changes one of the ids in v.
func editID(t *rapid.T, v reflect.Value) {
	var ids []reflect.Value
	var find func(v reflect.Value)
	find = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				find(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				find(v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				find(v.Index(i))
			}
		case reflect.Array:
			if v.CanSet() && !v.IsZero() {
				ids = append(ids, v)
			}
		}
	}
	find(v)
	if len(ids) > 0 {
		id := rapid.SampledFrom(ids).Draw(t, "id")
		if other := rapid.SampledFrom(ids).Draw(t, "other"); other.Type() == id.Type() && rapid.Bool().Draw(t, "known") {
			id.Set(other)
		} else {
			id.Index(9).SetUint(id.Index(9).Uint() ^ 1)
		}
	}
}

// repaired returns entries in which the digests and ends of pieces are those of their spans.
func repaired(entries []rawEntry) []rawEntry {
	entries = slices.Clone(entries)
	type open struct {
		entry int
		piece runPiece
	}
	digests := make(map[structure.SpanRef]structure.Digest)
	pieces := make(map[structure.RunID]*open)
	end := func(o *open) {
		if b, err := o.piece.encode(); err == nil {
			entries[o.entry].b = b
		}
	}
	for i, e := range entries {
		switch e.tag {
		case entryRun:
			p, ok := decodePiece(e.b)
			if !ok {
				continue
			}
			if o := pieces[p.run.ID]; o != nil {
				end(o)
			}
			if d, ok := digests[p.run.Parent]; ok {
				p.base = d
			}
			p.before = p.base
			if d, ok := digests[structure.SpanRef{Run: p.run.ID, Seq: p.from}]; ok {
				p.before = d
			}
			p.last, p.digest = p.from, p.before
			pieces[p.run.ID] = &open{i, p}
		case entryHistory:
			c, err := structure.DecodeCommit(bytes.Clone(e.b))
			if err != nil {
				continue
			}
			for _, r := range c.Records {
				s, ok := r.(*structure.Span)
				if !ok || pieces[s.Ref.Run] == nil || pieces[s.Ref.Run].piece.last+1 != s.Ref.Seq {
					continue
				}
				p := &pieces[s.Ref.Run].piece
				p.last, p.digest = s.Ref.Seq, structure.NextDigest(p.digest, s.Usages)
				digests[s.Ref] = p.digest
			}
		}
	}
	for _, o := range pieces {
		end(o)
	}
	return entries
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
