package backendtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// tree is a store of runs that fork in the middle, at the end and at the first span of
// other runs, and of runs without a parent.
func tree() []structure.Record {
	records := []structure.Record{thread("t"), run("a", structure.SpanRef{})}
	records = append(records, told("a", 1, "a1", "a2", "a3", "a4")...)
	records = append(records, run("b", at("a", 2)))
	records = append(records, told("b", 1, "b1", "b2", "b3")...)
	records = append(records, run("c", at("b", 3)))
	records = append(records, told("c", 1, "c1")...)
	records = append(records, run("d", at("c", 1)), run("e", at("d", 0)), run("f", at("b", 1)))
	records[len(records)-2] = run("e", at("a", 1)) // d stays empty
	records = append(records, told("f", 1, "a1", "f2")...)
	records = append(records, run("g", structure.SpanRef{}))
	return append(records, told("g", 1, "a1")...)
}

// testWindows reads windows of every shape from a tree of forks.
func testWindows(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(tree()...)
	s.apply(told("b", 4, "b4")...)
	s.apply(erase("a2"))
	tips := slices.Clone(s.seen.spans.list())
	tips = append(tips, structure.SpanRef{}, at("a", 5), structure.SpanRef{Run: id[structure.RunID]("a")}, at("d", 1))
	for _, tip := range tips {
		for from := uint64(0); from <= 7; from++ {
			for to := uint64(0); to <= 7; to++ {
				for last := uint64(0); last <= 2; last++ {
					w := structure.Window{From: from, To: to, Last: last}
					same(t, s.model.path(tip, w), path(t, s, tip, w))
				}
			}
		}
	}
	for one, err := range s.Path(background, at("f", 2), structure.Window{Last: 1}, backend.PathOptions{}) {
		require.NoError(t, err)
		require.Empty(t, one.Blocks, "bodies without the option")
		require.Equal(t, at("f", 2), one.Span.Ref)
	}
}

// testLongRun reads a run that is longer than the likely size of any index block, from
// commits of many sizes.
func testLongRun(t *testing.T, c Config) {
	c.Reopen = false
	s := newStore(t, c)
	const length = 700
	s.applyOnly(s.commit(thread("t"), run("long", structure.SpanRef{})), backend.Options{})
	for from := uint64(1); from <= length; {
		var bodies []string
		for range min(from%90+1, length-from+1) {
			bodies = append(bodies, fmt.Sprint("body ", (from+uint64(len(bodies)))%450))
		}
		s.applyOnly(s.commit(told("long", from, bodies...)...), backend.Options{})
		from += uint64(len(bodies))
	}
	for i, seq := range []uint64{1, 63, 64, 65, 128, 500, length} {
		name := fmt.Sprint("fork ", i)
		s.applyOnly(s.commit(append([]structure.Record{run(name, at("long", seq))}, told(name, 1, name)...)...), backend.Options{})
	}
	for range 2 {
		want := map[structure.SpanRef]structure.Digest{}
		var d structure.Digest
		for _, p := range s.model.history(at("long", length)) {
			d = structure.NextDigest(d, p.Span.Usages)
			want[p.Span.Ref] = d
		}
		for seq := uint64(length); seq > 0; seq-- { // backwards, so that no cache of earlier positions helps
			got, err := s.Digest(background, at("long", seq))
			require.NoError(t, err)
			require.Equal(t, want[at("long", seq)], got, "at %d", seq)
		}
		for _, w := range []structure.Window{{}, {Last: 1}, {From: 60, To: 70}, {From: 255, To: 257}, {From: 300, Last: 65}} {
			same(t, s.model.path(at("long", length), w), path(t, s, at("long", length), w))
		}
		same(t, s.model.path(at("fork 5", 1), structure.Window{}), path(t, s, at("fork 5", 1), structure.Window{}))
		require.Equal(t, s.model.forks(id[structure.RunID]("long")), forks(t, s, id[structure.RunID]("long")))
		s.restart()
	}
	s.applyOnly(s.commit(told("long", length+1, "after")...), backend.Options{})
	d, err := s.Digest(background, at("long", length+1))
	require.NoError(t, err)
	require.Equal(t, s.model.digest(at("long", length+1)), d)
}

func testAlternatives(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(set("s", at("r", 3)), set("none", at("r", 1)))
	alternative := func(name, body string) []structure.Record {
		span := says(at(name, 1), body)
		span.Set = id[structure.SpanSetID]("s")
		return []structure.Record{run(name, at("r", 3)), text(body), span}
	}
	// In one commit they have the order of the records, independent of their ids.
	for i, n := range []int{5, 1, 7} {
		var records []structure.Record
		for j := range n {
			records = append(records, alternative(fmt.Sprintf("run %d%d", i, j), fmt.Sprint("body ", i, j))...)
		}
		s.apply(records...)
	}
	second := says(at("run 10", 2), "one")
	second.Set = id[structure.SpanSetID]("s")
	first := says(at("run 00", 2), "one")
	first.Set = second.Set
	s.apply(second, first)
	require.Len(t, list(t, s.Alternatives(background, second.Set)), 15)
	filled := view("filled", "t", at("r", 3))
	filled.Set = second.Set
	s.apply(filled)
}

// testWhere uses blocks in the commit that adds them and later, in runs whose
// ids are in no order.
func testWhere(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(thread("t"), text("x"), run("r0", structure.SpanRef{}), says(at("r0", 1), "x", "x"), says(at("r0", 2), "x"))
	for i := range 12 {
		name := fmt.Sprint("r", i+1)
		s.apply(text("x"), run(name, at("r0", 2)), says(at(name, 1), "x"), text(name), says(at(name, 2), name, "x", name, "x"))
	}
	s.apply(says(at("r0", 3), "x"), says(at("r3", 3), "x"), says(at("r0", 4), "x"))
	require.Len(t, list(t, s.Where(background, content.Sum([]byte("x")))), 3+12*3+3)
	kinds := says(at("r0", 5), "x", "x", "x")
	kinds.Usages[0] = structure.Usage{Kind: structure.DocumentUsage, Content: kinds.Usages[0].Content, Document: "doc", Revision: 3, CreatedAt: moment(1)}
	kinds.Usages[1] = structure.Usage{
		Kind: structure.AssetUsage, Content: kinds.Usages[1].Content, Filename: "x.png", Type: content.TypePNG,
		Origin: &content.BlockOrigin{Kind: content.OriginImport, ParentID: content.Sum([]byte("r1"))}, Metadata: []byte(`{}`), CreatedAt: moment(2),
	}
	kinds.Usages[2].Name, kinds.Usages[2].Role = "Ada", "critic"
	s.apply(kinds)
	pieces := says(at("r0", 6), "x", "r1", "x")
	first, part := &pieces.Usages[0], &pieces.Usages[1]
	first.Form, first.Extras, first.MetadataContent = content.Sum([]byte("r2")), [][]byte{[]byte("call-1"), {}}, content.Sum([]byte("r3"))
	*part = structure.Usage{Kind: structure.PartUsage, Piece: structure.InputPiece, Content: part.Content, Name: "search", MetadataContent: content.Sum([]byte("x")), CreatedAt: moment(3)}
	pieces.Usages[2].Opaque = true
	s.apply(pieces)
	// The form, the metadata and the content are added in the same commit and used
	// twice.
	own := says(at("r0", 7), "said")
	own.Usages[0].Form, own.Usages[0].MetadataContent = content.Sum([]byte("form")), content.Sum([]byte("aside"))
	again := says(at("r0", 8), "said")
	again.Usages[0].Form, again.Usages[0].MetadataContent = own.Usages[0].Form, own.Usages[0].MetadataContent
	s.apply(text("form"), text("aside"), text("said"), own, again)
	later := says(at("r0", 9), "said")
	later.Usages[0].Form, later.Usages[0].MetadataContent = own.Usages[0].Form, own.Usages[0].MetadataContent
	s.apply(later)
	s.restart()
	s.check()
}

// testOrder adds the elements of every listing out of order. The whole state is compared after each third of them.
func testOrder(t *testing.T, c Config) {
	s := newStore(t, c)
	apply := func(i int, records ...structure.Record) {
		t.Helper()
		if i%3 == 2 {
			s.apply(records...)
		} else {
			s.applyBriefly(records...)
		}
	}
	s.apply(tree()...)
	for i := range 9 {
		name := fmt.Sprint("thread ", i)
		apply(i, thread(name), view(name+" a", name, at("a", 1)), view(name+" b", name, structure.SpanRef{}))
	}
	child := view("child", "thread 1", at("a", 1))
	child.Parent = id[structure.ContextID]("thread 0 a")
	loose := view("loose", "thread 1", at("a", 1))
	loose.Thread, loose.Parent = structure.ThreadID{}, child.Parent
	s.apply(child, loose)
	for i, name := range []string{"zeta", "a", "main", "Main", "ma", "é", "a b", "\xff", "m"} {
		apply(i, branch("thread 3", name, "thread 3 b"), branch("t", name, "child"), checkpoint("t", name, at("b", 1)))
	}
	for i := range 4 {
		for j, context := range []string{"child", "loose"} {
			apply(2*i+j,
				summary(fmt.Sprint(context, 9-i, "a"), context, "a1", at("a", 1)), reflog(context, at("a", 1), at("b", uint64(i%3)+1)),
				summary(fmt.Sprint(context, 9-i, "b"), context, "a2", at("a", 1)), reflog(context, at("c", 1), structure.SpanRef{}),
			)
		}
	}
	s.restart()
	s.check()
}

// testChunks stores chunked bodies, in one commit and in several, unchanged
// and edited.
func testChunks(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(thread("t"), run("r", structure.SpanRef{}))
	large := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	for i := range large {
		large[i] ^= byte(i >> 8 * 31)
	}
	edited := bytes.Replace(large, large[300_000:300_004], []byte("edit"), 1)
	small := large[:content.InlineLimit+1]
	var stored []content.ID
	for i, body := range [][]byte{large, edited, small} {
		records, block := cut(t, body)
		half := len(records) / 2
		s.apply(records[:half]...)
		s.apply(append(records[half:], block, &structure.Span{Ref: at("r", uint64(i)+1), Usages: []structure.Usage{{
			Kind: structure.AssetUsage, Content: block.ID, Filename: "large", CreatedAt: moment(1),
		}}})...)
		stored = append(stored, block.ID)
	}
	records, block := cut(t, edited)
	receipt := s.apply(append(records, block)...)
	require.Equal(t, []content.ID{block.ID}, receipt.Known)
	require.GreaterOrEqual(t, receipt.KnownChunks, len(s.chunksOf(t, block)))
	s.restart()
	for i, body := range [][]byte{large, edited, small} {
		blocks, err := s.Blocks(background, stored[i:i+1])
		require.NoError(t, err)
		require.Nil(t, blocks[0].Body)
		var got bytes.Buffer
		n, err := io.Copy(&got, content.OpenTree(background, blocks[0].Tree, s.Chunks))
		require.NoError(t, err)
		require.Equal(t, int64(len(body)), n)
		require.True(t, bytes.Equal(body, got.Bytes()))
	}
	stats, err := s.Stats(background)
	require.NoError(t, err)
	require.Less(t, stats.StoredBytes-stats.IndexBytes, uint64(len(large)+len(large)/2), "an edit costs a chunk")
	require.Empty(t, verify(t, s.Engine, true))
}

// cut returns the chunks and nodes of a body, and its block.
func cut(t tester, body []byte) ([]structure.Record, *structure.Block) {
	var records []structure.Record
	b := content.NewTreeBuilder(func(key content.Key, piece []byte) error {
		records = append(records, &structure.Chunk{Key: key, Bytes: bytes.Clone(piece)})
		return nil
	})
	for chunks := content.NewChunker(bytes.NewReader(body)); ; {
		piece, err := chunks.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.NoError(t, b.Add(piece))
	}
	root, err := b.Finish()
	require.NoError(t, err)
	return records, &structure.Block{
		Block: content.Block{ID: content.Sum(body), Type: content.TypeBinary, Size: root.Size, CreatedAt: moment(0)},
		Tree:  root,
	}
}

// chunksOf lists the chunks and nodes of a block in the model.
func (s *store) chunksOf(t tester, b *structure.Block) map[content.Key]bool {
	seen := map[content.Key]bool{}
	get := content.GetFunc(func(_ context.Context, keys []content.Key) (all [][]byte, err error) {
		for _, key := range keys {
			seen[key] = true
			all = append(all, []byte(s.model.chunks[key]))
		}
		return all, nil
	})
	_, err := io.Copy(io.Discard, content.OpenTree(background, b.Tree, get))
	require.NoError(t, err)
	return seen
}

func verify(t tester, e backend.Engine, deep bool) []backend.Finding {
	t.Helper()
	return list(t, e.Verify(background, backend.VerifyOptions{Deep: deep}))
}

func testVerify(t *testing.T, c Config) {
	s := newStore(t, c)
	for range 2 {
		for _, deep := range []bool{false, true} {
			require.Empty(t, verify(t, s.Engine, deep))
		}
		s.restart()
	}
	s.apply(tree()...)
	s.apply(talk()...)
	s.apply(erase("a1"))
	s.apply(text("a1"), deleteName(structure.KindBranch, "t", "main"))
	for range 2 {
		for _, deep := range []bool{false, true} {
			done := int64(-1)
			for finding, err := range s.Verify(background, backend.VerifyOptions{Deep: deep, Progress: func(now, total int64) {
				require.LessOrEqual(t, done, now)
				require.LessOrEqual(t, now, total)
				done = now
			}}) {
				require.NoError(t, err)
				require.Fail(t, finding.String())
			}
			require.Positive(t, done, "progress was reported")
		}
		s.restart()
	}
}
