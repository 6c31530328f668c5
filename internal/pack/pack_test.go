package pack

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// memory is a file in memory.
type memory struct{ b []byte }

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	if n := int(at) + len(b); n > len(m.b) {
		m.b = append(m.b, make([]byte, n-len(m.b))...)
	}
	return copy(m.b[at:], b), nil
}

func (m *memory) ReadAt(b []byte, at int64) (int, error) { return bytes.NewReader(m.b).ReadAt(b, at) }

var _ io.ReaderAt = (*memory)(nil)

// framesOf lays out commits as segments of a journal.
func framesOf(t require.TestingT, perSegment int, commits []*structure.Commit) []Frame {
	var out []Frame
	segment, at := uint32(1), int64(columns.SegmentHeader)
	for i, c := range commits {
		if i > 0 && i%perSegment == 0 {
			segment, at = segment+1, columns.SegmentHeader
		}
		var e structure.Encoder
		payload, _, err := e.Encode(c)
		require.NoError(t, err)
		number := uint64(i + 1)
		start := at
		body := start + int64(columns.FrameHeader+len(binary.AppendUvarint(nil, number<<1))+1+i%2)
		at = body + int64(len(payload))
		id := uint64(0)
		if number%7 == 1 {
			id = number<<40 | 5
		}
		out = append(out, Frame{Segment: segment, Start: start, End: at, Number: number, ID: id, Payload: bytes.Clone(payload), PayloadOffset: body})
		if i%5 == 4 {
			at += 12 // a mark
		}
	}
	return out
}

// write writes a pack, which is dense if the number of frames is even.
func write(t require.TestingT, frames []Frame, filter Edit) *File {
	return writeAs(t, frames, filter, len(frames)%2 == 0)
}

func writeAs(t require.TestingT, frames []Frame, filter Edit, dense bool) *File {
	m := &memory{}
	h := layout.Header{First: 1, Last: frames[len(frames)-1].Segment, FirstCommit: 1, Store: [16]byte{7}, Dense: dense}
	w := NewWriter(m, h, filter)
	defer w.Close()
	for _, f := range frames {
		require.NoError(t, w.Add(f))
	}
	size, err := w.Finish()
	require.NoError(t, err)
	require.EqualValues(t, len(m.b), size)
	require.NoError(t, w.Prove(context.Background(), m, "test.pack"))
	given, giveUp := context.WithCancel(context.Background())
	giveUp()
	require.ErrorIs(t, w.Prove(given, m, "test.pack"), context.Canceled)
	p, err := Open(m, size, "test.pack", NewCache(1<<20))
	require.NoError(t, err)
	return p
}

// shrink makes chapters small for a test.
func shrink(t *testing.T) {
	c, d, f, q := chapterLimits, denseLimits, firstLimits, quickLimits
	firstLimits, chapterLimits, denseLimits, quickLimits = smallFirst, smallOthers, smallOthers, smallOthers
	t.Cleanup(func() { chapterLimits, denseLimits, firstLimits, quickLimits = c, d, f, q })
}

var (
	smallFirst  = limits{commits: 3, records: 20, bodies: 500, text: 500}
	smallOthers = limits{commits: 2, records: 8, bodies: 300, text: 300}
)

func TestPackReadsBack(t *testing.T) {
	shrink(t)
	rapid.Check(t, func(t *rapid.T) {
		commits := rapid.SliceOfN(structuretest.Commits(), 1, 30).Draw(t, "commits")
		frames := framesOf(t, 7, commits)
		p := write(t, frames, nil)
		i := 0
		for f, err := range p.Frames(0, 0) {
			require.NoError(t, err)
			require.Equal(t, frames[i], f)
			i++
		}
		require.Len(t, frames, i)
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(frames)-1), 0, 10).Draw(t, "which") {
			f, err := p.Frame(frames[i].Segment, frames[i].Start)
			require.NoError(t, err)
			require.Equal(t, frames[i], f)
			checkObjects(t, p, frames[i])
		}
		// A pack of a pack is the same.
		again := write(t, frames, func(*structure.Commit) error { return nil })
		require.Equal(t, p.size, again.size)
	})
}

// Times that messages spell are not stored once more.
func TestTimesInExtrasTakeNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	size := func(spell func(at time.Time) string) int64 {
		c := &structure.Commit{Time: time.UnixMilli(1_700_000_000_000).UTC()}
		b := structure.NewBlock(content.TypeText, content.BlockOrigin{}, c.Time, []byte("hi"))
		c.Records = append(c.Records, b)
		at := c.Time
		for i := range 2000 {
			at = at.Add(time.Duration(1+rng.IntN(90)) * time.Second)
			c.Records = append(c.Records, &structure.Span{Ref: structure.SpanRef{Run: structure.RunID{1}, Seq: uint64(i + 1)}, Usages: []structure.Usage{{
				Kind: structure.MessageUsage, Role: "user", Content: b.ID, CreatedAt: at, Form: content.Sum([]byte("form")), Extras: [][]byte{[]byte(spell(at))},
			}}})
		}
		frames := framesOf(t, 7, []*structure.Commit{c})
		p := write(t, frames, nil)
		f, err := p.Frame(frames[0].Segment, frames[0].Start)
		require.NoError(t, err)
		require.Equal(t, frames[0], f)
		return p.size
	}
	none := size(func(time.Time) string { return "0" })
	for _, spell := range []func(time.Time) string{
		func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) },
		func(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) },
		func(at time.Time) string { return at.Format(`"2006-01-02T15:04:05.000Z"`) },
	} {
		require.InDelta(t, none, size(spell), 300)
	}
	require.Greater(t, size(func(at time.Time) string { return at.Format(`"2006-01-02T15:04:05.000000Z"`) }), none+3000)
}

// Histories that repeat others, and forms that messages share, take next to nothing for what they name, in one commit and in many.
func TestRepeatedHistoriesTakeNothing(t *testing.T) {
	const length, repeats = 300, 40
	rng := rand.New(rand.NewPCG(3, 4))
	at := time.UnixMilli(1_700_000_000_000).UTC()
	base := make([]*structure.Block, length)
	for i := range base {
		base[i] = structure.NewBlock(content.TypeText, content.BlockOrigin{}, at, fmt.Appendf(nil, "text %x", rng.Uint64()))
	}
	forms := make([]*structure.Block, 6)
	for i := range forms {
		forms[i] = structure.NewBlock(content.TypeText, content.BlockOrigin{}, at, fmt.Appendf(nil, "form %d", i))
	}
	size := func(n, perCommit int) int64 {
		known := map[content.ID]bool{}
		c := &structure.Commit{Time: at}
		commits := []*structure.Commit{c}
		for run := range n {
			if run%perCommit == 0 && run > 0 {
				c = &structure.Commit{Time: at}
				commits = append(commits, c)
			}
			for i := range 1 + rand.New(rand.NewPCG(uint64(run), 5)).IntN(length) {
				form := forms[i%2+i/50%3*2]
				for _, b := range []*structure.Block{base[i], form} {
					if !known[b.ID] {
						known[b.ID] = true
						c.Records = append(c.Records, b)
					}
				}
				c.Records = append(c.Records, &structure.Span{Ref: structure.SpanRef{Run: structure.RunID{1, byte(run)}, Seq: uint64(i + 1)}, Usages: []structure.Usage{{
					Kind: structure.MessageUsage, Role: "user", Content: base[i].ID, CreatedAt: at, Form: form.ID, Extras: [][]byte{[]byte("1")},
				}}})
			}
		}
		return writeAs(t, framesOf(t, 1<<20, commits), nil, true).size
	}
	for _, perCommit := range []int{1, repeats} {
		few, many := size(20, perCommit), size(20+repeats, perCommit)
		require.Less(t, many-few, int64(repeats*35)) // of some 150 messages each
	}
}

// Usages of near or far content, in the same commit, in the same pack or elsewhere, can be
// read back, in one chapter and in many.
func TestNamesReadBack(t *testing.T) {
	shrink(t)
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(1_700_000_000_000).UTC()
		block := func(i int) *structure.Block {
			return structure.NewBlock(content.TypeText, content.BlockOrigin{}, at, fmt.Appendf(nil, "text %d", i))
		}
		contents := rapid.IntRange(1, 700).Draw(t, "contents")
		before := &structure.Commit{Time: at}
		for i := range contents / 3 {
			before.Records = append(before.Records, block(i))
		}
		c := &structure.Commit{Time: at}
		ref := structure.SpanRef{Run: structure.RunID{1}}
		step := rapid.IntRange(1, 3).Draw(t, "step")
		for i := range rapid.IntRange(1, 2*contents).Draw(t, "spans") {
			found := i * step % contents
			if found > contents/2 && i < contents {
				c.Records = append(c.Records, block(found))
			}
			if rapid.IntRange(0, 99).Draw(t, "new thread") == 0 { // where chapters prefer to end
				c.Records = append(c.Records, &structure.Thread{ID: structure.ThreadID{byte(i), byte(i >> 8)}, CreatedAt: at, UpdatedAt: at})
			}
			ref.Seq++
			u := structure.Usage{Kind: structure.MessageUsage, Role: "user", Content: block(found).ID, CreatedAt: at}
			if i%4 == 0 {
				u.Form = content.Sum([]byte("form"))
			}
			c.Records = append(c.Records, &structure.Span{Ref: ref, Usages: []structure.Usage{u}})
		}
		frames := framesOf(t, 7, []*structure.Commit{before, c, c})
		p := write(t, frames, nil)
		for i := range frames {
			f, err := p.Frame(frames[i].Segment, frames[i].Start)
			require.NoError(t, err)
			require.Equal(t, frames[i], f)
		}
		var whole structure.Layout
		require.NoError(t, whole.Reset(frames[1].Payload))
		var want, got structure.Reading
		for range 20 {
			i := rapid.IntRange(0, whole.Len()-1).Draw(t, "span")
			require.NoError(t, whole.Read(i, true, &want))
			s, err := p.Spans(frames[1].Segment, frames[1].Start, whole.Ref(i))
			require.NoError(t, err)
			require.NoError(t, s.Read(s.Find(whole.Ref(i)), true, &got))
			require.Equal(t, want.Span, got.Span)
		}
	})
}

// checkObjects reads the content of a frame by position.
func checkObjects(t require.TestingT, p *File, f Frame) {
	d, err := structure.NewDecoder(f.Payload)
	require.NoError(t, err)
	for d.More() {
		at, r, err := d.Next()
		require.NoError(t, err)
		if k := r.Kind(); k != structure.KindBlock && k != structure.KindChunk {
			continue
		}
		got, err := p.Object(f.Segment, f.Start, f.PayloadOffset+int64(at))
		require.NoError(t, err)
		requireSame(t, r, got)
	}
}

func requireSame(t require.TestingT, want, got structure.Record) {
	if b, ok := want.(*structure.Block); ok {
		g := got.(*structure.Block)
		require.Equal(t, b.Block, g.Block)
		require.Equal(t, b.Tree, g.Tree)
		require.True(t, bytes.Equal(b.Body, g.Body))
		return
	}
	require.Equal(t, want, got)
}

func TestFilterKeepsPlaces(t *testing.T) {
	shrink(t)
	rapid.Check(t, func(t *rapid.T) {
		frames := framesOf(t, 7, rapid.SliceOfN(structuretest.Commits(), 1, 30).Draw(t, "commits"))
		dropped := map[content.ID]bool{}
		drop := rapid.IntRange(2, 5).Draw(t, "every")
		n := 0
		p := write(t, frames, func(c *structure.Commit) error {
			for i, r := range c.Records {
				if n++; n%drop != 0 {
					continue
				}
				switch r := r.(type) {
				case *structure.Block:
					if r.Tree.Size == 0 && r.Size > 0 && n%2 == 0 {
						c.Records[i] = &structure.Block{Block: r.Block}
						continue
					}
					dropped[r.ID] = true
					c.Records[i] = nil
				default:
					c.Records[i] = nil
				}
			}
			return nil
		})
		n = 0
		i := 0
		for f, err := range p.Frames(0, 0) {
			require.NoError(t, err)
			want := frames[i]
			require.Equal(t, []any{want.Segment, want.Start, want.End, want.Number, want.PayloadOffset}, []any{f.Segment, f.Start, f.End, f.Number, f.PayloadOffset})
			was, err := structure.NewDecoder(want.Payload)
			require.NoError(t, err)
			found, err := structure.DecodeCommit(f.Payload)
			require.NoError(t, err)
			for at := 0; was.More(); {
				offset, r, err := was.Next()
				require.NoError(t, err)
				n++
				if n%drop == 0 {
					b, ok := r.(*structure.Block)
					if !ok || b.Tree.Size > 0 || b.Size == 0 || n%2 != 0 {
						continue
					}
					r = &structure.Block{Block: b.Block}
				}
				if f.Offsets != nil {
					require.Equal(t, offset, f.Offsets[at])
				}
				if k := r.Kind(); k == structure.KindBlock || k == structure.KindChunk {
					got, err := p.Object(f.Segment, f.Start, f.PayloadOffset+int64(offset))
					require.NoError(t, err)
					requireSame(t, r, got)
				}
				require.Equal(t, r.Kind(), found.Records[at].Kind())
				at++
			}
			i++
		}
		require.Len(t, frames, i)
	})
}

// Reading frames in order decodes each chapter once, even if many usages name content of far
// chapters, and the first chapter stays cached.
func TestChaptersAreDecodedOnce(t *testing.T) {
	shrink(t)
	run := structure.NewID[structure.RunID]()
	var commits []*structure.Commit
	var known []content.ID
	for i := range 300 {
		c := &structure.Commit{Time: time.UnixMilli(int64(i)).UTC()}
		b := structure.NewBlock("text/plain", content.BlockOrigin{}, c.Time, fmt.Appendf(nil, "message %d says something", i))
		known = append(known, b.ID)
		s := &structure.Span{Ref: structure.SpanRef{Run: run, Seq: uint64(i + 1)}}
		for _, id := range []content.ID{b.ID, known[i/2], known[i/3], known[0]} {
			s.Usages = append(s.Usages, structure.Usage{Kind: structure.MessageUsage, Role: "user", Content: id, CreatedAt: c.Time})
		}
		c.Records = []structure.Record{b, s}
		commits = append(commits, c)
	}
	p := write(t, framesOf(t, 50, commits), nil)
	chapters := int64(len(p.rows))
	if chapters == 0 {
		rows, err := p.table()
		require.NoError(t, err)
		chapters = int64(len(rows))
	}
	require.Greater(t, chapters, int64(50))
	for _, err := range p.Frames(0, 0) {
		require.NoError(t, err)
	}
	require.Equal(t, chapters, p.decoded.Load())
	for _, err := range p.Commits(1) {
		require.NoError(t, err)
	}
	require.Equal(t, 2*chapters, p.decoded.Load())

	small, err := Open(p.src, p.size, "small cache", NewCache(1))
	require.NoError(t, err)
	for i := range chapters {
		_, err := small.chapter(int(i))
		require.NoError(t, err)
	}
	require.Equal(t, chapters, small.decoded.Load())
}

// Messages that name content of several chapters are read in order with few chapters in the cache: what they name does not
// take the place of the chapters that are read.
func TestContentOfFarChapters(t *testing.T) {
	shrink(t)
	run := structure.NewID[structure.RunID]()
	var commits []*structure.Commit
	var blocks []*structure.Block
	for i := range 300 {
		c := &structure.Commit{Time: time.UnixMilli(int64(i)).UTC()}
		blocks = append(blocks, structure.NewBlock("text/plain", content.BlockOrigin{}, c.Time, fmt.Appendf(nil, "message %d says something", i)))
		s := &structure.Span{Ref: structure.SpanRef{Run: run, Seq: uint64(i + 1)}}
		for _, n := range []int{i, i / 2, i / 3, 0} {
			s.Usages = append(s.Usages, structure.Usage{Kind: structure.MessageUsage, Role: "user", Content: blocks[n].ID, CreatedAt: c.Time})
		}
		c.Records = []structure.Record{blocks[i], s}
		commits = append(commits, c)
	}
	frames := framesOf(t, 50, commits)
	p := writeAs(t, frames, nil, true)
	rows, err := p.table()
	require.NoError(t, err)
	last, err := p.chapter(len(rows) - 1)
	require.NoError(t, err)
	p, err = Open(p.src, p.size, "small cache", NewCache(5*last.cost()/2))
	require.NoError(t, err)
	var at []Object // of the blocks
	for i, f := range frames {
		s, err := p.Spans(f.Segment, f.Start, structure.SpanRef{Run: run, Seq: uint64(i + 1)})
		require.NoError(t, err)
		var r structure.Reading
		require.NoError(t, s.Read(0, false, &r))
		o, ok, err := p.Find(structure.KindBlock, blocks[i].ID[:], 1<<63)
		require.NoError(t, err)
		require.True(t, ok)
		at = append(at, o)
		for k, n := range []int{i, i / 2, i / 3, 0} {
			require.Equal(t, blocks[n].ID, r.Span.Usages[k].Content)
			got, err := p.Object(at[n].Segment, at[n].Frame, at[n].Offset)
			require.NoError(t, err)
			requireSame(t, blocks[n], got.(*structure.Block))
		}
	}
	// Each chapter is decoded for its messages, and once more each for the two series of messages that name its content.
	require.LessOrEqual(t, int(p.decoded.Load()), 3*len(rows))
}

// A message of a large commit is read without the rest, whichever way it is requested.
func TestLargeCommitIsReadInPieces(t *testing.T) {
	f, d := firstLimits, denseLimits
	defer func() { firstLimits, denseLimits = f, d }()
	firstLimits = limits{commits: 100, records: 1000, bodies: 1 << 18, text: 1 << 18}
	denseLimits = chapterLimits
	for _, dense := range []bool{false, true} {
		if dense && testing.Short() {
			continue // most of the time; other tests read dense packs
		}
		commits := historyOf(3_000, 1_000)
		run := commits[0].Records[1].(*structure.Span).Ref.Run
		frames := framesOf(t, 1<<30, commits)
		m := &memory{}
		w := NewWriter(m, layout.Header{First: 1, Last: 1, FirstCommit: 1, Dense: dense}, nil)
		defer w.Close()
		for _, f := range frames {
			require.NoError(t, w.Add(f))
		}
		size, err := w.Finish()
		require.NoError(t, err)
		p, err := Open(m, size, "test.pack", NewCache(1<<24))
		require.NoError(t, err)
		rows, err := p.table()
		require.NoError(t, err)
		require.Greater(t, len(rows), 10)
		for _, r := range p.rows[1:] {
			require.Less(t, r.Bodies, 2*uint64(chapterLimits.records))
		}
		decoded := func(read func(number int, r structure.Record, at int64)) {
			for _, n := range []int{1, 1_234, 1_700, 1_999, 2_500, 2_999} {
				f, i := frames[n/1_000], 2*(n%1_000)
				d, err := structure.NewDecoder(f.Payload)
				require.NoError(t, err)
				var at int
				var r structure.Record
				for range i + 1 {
					at, r, err = d.Next()
					require.NoError(t, err)
				}
				p.cache.DropContent()
				before := p.decoded.Load()
				read(n, r, f.PayloadOffset+int64(at))
				require.LessOrEqual(t, p.decoded.Load()-before, int64(2))
			}
		}
		decoded(func(n int, r structure.Record, _ int64) {
			f, ref := frames[n/1_000], structure.SpanRef{Run: run, Seq: uint64(n + 1)}
			s, err := p.Spans(f.Segment, f.Start, ref)
			require.NoError(t, err)
			var got structure.Reading
			require.NoError(t, s.Read(s.Find(ref), true, &got))
			requireSame(t, r, got.Local[0])
		})
		decoded(func(n int, r structure.Record, at int64) {
			f := frames[n/1_000]
			got, err := p.Object(f.Segment, f.Start, at)
			require.NoError(t, err)
			requireSame(t, r, got)
			_, err = p.Object(f.Segment, f.Start, at+1)
			require.ErrorIs(t, err, backend.ErrCorrupt)
		})
		decoded(func(n int, r structure.Record, at int64) {
			id := r.(*structure.Block).ID
			got, ok, err := p.Find(structure.KindBlock, id[:16], 1<<63)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, at, got.Offset)
			requireSame(t, r, got.Record)
		})
		decoded(func(n int, _ structure.Record, _ int64) {
			found, err := p.Run(run, uint64(n+1))
			require.NoError(t, err)
			segment, offset, err := p.Position(found[0].Commit(uint64(n + 1)))
			require.NoError(t, err)
			require.Equal(t, frames[n/1_000].Segment, segment)
			require.Equal(t, frames[n/1_000].Start, offset)
		})
		_, err = p.Object(frames[1].Segment, frames[1].Start, frames[1].End)
		require.ErrorIs(t, err, backend.ErrCorrupt)
	}
}

// A commit has many blocks before the spans that use them.
func TestContentFarFromItsSpans(t *testing.T) {
	run := structure.NewID[structure.RunID]()
	commit := &structure.Commit{Time: time.UnixMilli(1)}
	var spans []structure.Record
	for i := range 300 {
		b := structure.NewBlock("text/plain", content.BlockOrigin{Kind: content.OriginUser}, commit.Time, fmt.Appendf(nil, "message %d", i))
		commit.Records = append(commit.Records, b)
		spans = append(spans, &structure.Span{
			Ref:    structure.SpanRef{Run: run, Seq: uint64(i + 1)},
			Usages: []structure.Usage{{Kind: structure.MessageUsage, Content: b.ID, Role: "user", CreatedAt: commit.Time}},
		})
	}
	commit.Records = append(commit.Records, spans...)
	for _, commits := range [][]*structure.Commit{{commit}, {commit, {Time: commit.Time}}} { // fast and dense
		frames := framesOf(t, 7, commits)
		f, err := write(t, frames, nil).Frame(frames[0].Segment, frames[0].Start)
		require.NoError(t, err)
		require.Equal(t, frames[0], f)
	}
}

// A dense chapter ends when decompressing it would take too long: similar bodies can fill it
// with more bytes.
func TestDenseChaptersEndByTheirPackedSize(t *testing.T) {
	was := denseLimits
	defer func() { denseLimits = was }()
	denseLimits.packed = 1 << 17
	random := rand.New(rand.NewPCG(1, 2))
	chapters := func(text func(i int) []byte) int {
		var commits []*structure.Commit
		for i := range 80 {
			b := structure.NewBlock(content.TypeText, content.BlockOrigin{}, sampleStart, text(i))
			commits = append(commits, &structure.Commit{Time: sampleStart, Records: []structure.Record{b}})
		}
		p := write(t, framesOf(t, 1<<30, commits), nil)
		require.True(t, p.Dense)
		rows, err := p.table()
		require.NoError(t, err)
		return len(rows)
	}
	var noise [1 << 14]byte
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	require.Equal(t, 1, chapters(func(i int) []byte { return fmt.Appendf(noise[:], "%d", i) }))
	n := chapters(func(int) []byte {
		b := make([]byte, len(noise))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	})
	require.InDelta(t, 80*len(noise)/denseLimits.packed, n, 2)
}

// exampleCommits returns the same commits each time.
func exampleCommits(n int) (commits []*structure.Commit) {
	for i := range n {
		commits = append(commits, structuretest.Commits().Example(i))
	}
	return commits
}

// Quick packs have half as many chapters after the first one.
func TestChaptersOfQuickPacks(t *testing.T) {
	frames := framesOf(t, 1<<30, historyOf(6_000, 10))
	chapters := func(quick bool) int {
		m := &memory{}
		w := NewWriter(m, layout.Header{First: 1, Last: 1, FirstCommit: 1}, nil)
		defer w.Close()
		w.Quick = quick
		for _, f := range frames {
			require.NoError(t, w.Add(f))
		}
		_, err := w.Finish()
		require.NoError(t, err)
		require.NoError(t, w.Prove(context.Background(), m, "test.pack"))
		return len(w.rows) - 1
	}
	require.InDelta(t, chapters(false), 2*chapters(true), 4)
}

// What a writer remembers of the bodies of a pack takes little memory for each.
func TestKnownBodiesAreSmall(t *testing.T) {
	const n = 400_000
	d := newDraft(nil, layout.Header{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var id content.ID
	for i := range n {
		binary.LittleEndian.PutUint64(id[:], uint64(i))
		d.known[d.hash(id)] = uint64(i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, (after.HeapAlloc-before.HeapAlloc)/n, uint64(40))
	require.Len(t, d.known, n)
	d.close()
}
