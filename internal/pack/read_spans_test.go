package pack

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Spans agree with decoding the whole payload.
func TestSpansReadWhatFramesHold(t *testing.T) {
	shrink(t)
	rapid.Check(t, func(t *rapid.T) {
		frames := framesOf(t, 7, rapid.SliceOfN(structuretest.Commits(), 1, 30).Draw(t, "commits"))
		p := write(t, frames, nil)
		which := rapid.SliceOfN(rapid.IntRange(0, len(frames)-1), 1, 10).Draw(t, "which")
		for _, i := range which {
			checkSpans(t, p, frames[i])
		}
		// The same for a pack in which records of odd commits were filtered out.
		p = write(t, frames, func(c *structure.Commit) error {
			for i, r := range c.Records {
				if b, ok := r.(*structure.Block); ok && c.Number%3 == 0 && b.Tree.Size == 0 && b.Size > 0 {
					c.Records[i] = &structure.Block{Block: b.Block}
				} else if c.Number%2 == 1 && i%2 == 0 && r.Kind() != structure.KindBlock {
					c.Records[i] = nil
				}
			}
			return nil
		})
		for _, i := range which {
			f, err := p.Frame(frames[i].Segment, frames[i].Start)
			require.NoError(t, err)
			checkSpans(t, p, f)
		}
	})
}

func checkSpans(t require.TestingT, p *File, f Frame) {
	var l structure.Layout
	require.NoError(t, l.Reset(f.Payload))
	var want, got structure.Reading
	count := map[structure.SpanRef]int{}
	for i := range l.Len() {
		count[l.Ref(i)]++
	}
	for i := range l.Len() {
		s, err := p.Spans(f.Segment, f.Start, l.Ref(i))
		require.NoError(t, err)
		require.Equal(t, f.Number, s.Number)
		require.Contains(t, []int64{f.Start, f.End}, s.Next)
		at := s.Find(l.Ref(i))
		require.GreaterOrEqual(t, at, 0)
		require.Equal(t, l.Ref(i), s.Ref(at))
		if count[l.Ref(i)] > 1 { // possible in a random commit
			continue
		}
		require.NoError(t, l.Read(i, true, &want))
		require.NoError(t, s.Read(at, true, &got))
		require.Equal(t, want.Span, got.Span)
		require.Len(t, got.Local, len(want.Local))
		for k, b := range want.Local {
			if b == nil { // a block that the payload names by its id may be in the pack
				continue
			}
			if got.Local[k] == nil { // it is in an earlier chapter
				require.NotNil(t, s.at.x.Rest)
				continue
			}
			requireSame(t, b, got.Local[k])
		}
	}
}

// The caller owns the result of a read.
func TestSpansShareNothing(t *testing.T) {
	frames := framesOf(t, 7, historyOf(40, 4))
	p := write(t, frames, nil)
	read := func() *structure.Reading {
		s, err := p.Spans(frames[5].Segment, frames[5].Start, structure.SpanRef{})
		require.NoError(t, err)
		r := &structure.Reading{}
		require.NoError(t, s.Read(2, false, r))
		return r
	}
	first := read()
	want := string(first.Local[0].Body)
	clear(first.Local[0].Body)
	require.Equal(t, want, string(read().Local[0].Body))
}

// historyOf returns the commits of one run with so many messages, some per commit.
func historyOf(messages, together int) []*structure.Commit {
	words := strings.Fields("the of and to in that is was he for it with as his on be at by this had not are but from or have an they which one you were her all she there would their we him been has when who will more no if out so said what up its about into than them can only other new some could time these two may then do first any my now such like our over man me even most made after also did many before must through back years where much your way well down should because each just those people mister how too little state good very make world still own see men work long get here between both life being under never day same another know while last might us great old year off come since against go came right used take three")
	random := rand.New(rand.NewPCG(1, 2))
	run, tip := structure.NewID[structure.RunID](), structure.NewID[structure.ContextID]()
	var commits []*structure.Commit
	for n := 0; n < messages; {
		c := &structure.Commit{Time: time.UnixMilli(1_700_000_000_000 + 1000*int64(n)).UTC()}
		var ref structure.SpanRef
		for range together {
			var text strings.Builder
			for text.Len() < 480 {
				text.WriteString(words[int(random.ExpFloat64()*20)%len(words)])
				text.WriteByte(' ')
			}
			fmt.Fprintf(&text, "%d", n)
			n++
			role, kind := "user", content.OriginUser
			if n%2 == 0 {
				role, kind = "assistant", content.OriginAssistant
			}
			b := structure.NewBlock(content.TypeText, content.BlockOrigin{Kind: kind}, c.Time, []byte(text.String()))
			ref = structure.SpanRef{Run: run, Seq: uint64(n)}
			c.Records = append(c.Records, b, &structure.Span{Ref: ref, Usages: []structure.Usage{
				{Kind: structure.MessageUsage, Content: b.ID, Role: role, CreatedAt: c.Time},
			}})
		}
		c.Records = append(c.Records, &structure.Tip{Context: tip, Span: ref})
		commits = append(commits, c)
	}
	return commits
}

// BenchmarkColdMessage reads messages with nothing cached but the first chapter: by
// span, and with the whole payload of the commit.
func BenchmarkColdMessage(b *testing.B) {
	for _, dense := range []bool{false, true} {
		for _, together := range []int{1, 128, 1000} {
			b.Run(fmt.Sprintf("dense=%v/%d together", dense, together), func(b *testing.B) {
				messages := 4_000 // more than a first chapter has
				if dense {
					messages = campaign.BenchMessages(b, 10_000)
				}
				commits := historyOf(messages, together)
				run := commits[0].Records[1].(*structure.Span).Ref.Run
				frames := framesOf(b, 1<<30, commits)
				m := &memory{}
				w := NewWriter(m, layout.Header{First: 1, Last: 1, FirstCommit: 1, Dense: dense}, nil)
				defer w.Close()
				for _, f := range frames {
					require.NoError(b, w.Add(f))
				}
				size, err := w.Finish()
				require.NoError(b, err)
				p, err := Open(m, size, "test.pack", NewCache(1<<20))
				require.NoError(b, err)
				rows, err := p.table()
				require.NoError(b, err)
				first := 0
				if !dense { // after the dictionary
					first = rows[0].Commits
				}
				random := rand.New(rand.NewPCG(3, 4))
				next := func() (Frame, int) {
					p.cache.DropContent()
					return frames[first+random.IntN(len(frames)-first)], random.IntN(together)
				}
				b.Run("span", func(b *testing.B) {
					var r structure.Reading
					b.ReportAllocs()
					for b.Loop() {
						f, i := next()
						ref := structure.SpanRef{Run: run, Seq: (f.Number-1)*uint64(together) + uint64(i) + 1}
						s, err := p.Spans(f.Segment, f.Start, ref)
						if err == nil {
							err = s.Read(s.Find(ref), true, &r)
						}
						if err != nil || len(r.Local[0].Body) < 480 {
							b.Fatal(err)
						}
					}
				})
				b.Run("frame", func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						f, _ := next()
						if _, err := p.Frame(f.Segment, f.Start); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		}
	}
}
