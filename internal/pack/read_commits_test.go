package pack

import (
	"bytes"
	"testing"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Commits are what decoding the frames gives, from each commit on.
func TestCommitsAreWhatFramesHold(t *testing.T) {
	shrink(t)
	rapid.Check(t, func(t *rapid.T) {
		frames := framesOf(t, 7, rapid.SliceOfN(structuretest.Commits(), 1, 30).Draw(t, "commits"))
		from := uint64(rapid.IntRange(1, len(frames)).Draw(t, "from"))
		requireCommits(t, write(t, frames, nil), frames, from)
		// The same for a pack in which records were filtered out, which it also holds as they were.
		p := write(t, frames, func(c *structure.Commit) error {
			for i, r := range c.Records {
				if b, ok := r.(*structure.Block); ok && c.Number%3 == 0 && b.Tree.Size == 0 && b.Size > 0 {
					c.Records[i] = &structure.Block{Block: b.Block}
				} else if c.Number%2 == 1 && i%2 == 0 && r.Kind() != structure.KindBlock {
					c.Records[i] = nil
				}
			}
			return nil
		})
		var left []Frame
		for f, err := range p.Frames(0, 0) {
			require.NoError(t, err)
			left = append(left, f)
		}
		requireCommits(t, p, left, from)
	})
}

// requireCommits checks that a pack has the commits of frames from a number on. Frames and commits can be read together.
func requireCommits(t require.TestingT, p *File, frames []Frame, from uint64) {
	next := from
	for c, err := range p.Commits(from) {
		require.NoError(t, err)
		f := frames[next-1]
		want, err := structure.DecodeCommit(f.Payload)
		require.NoError(t, err)
		require.Equal(t, f.Number, c.Number)
		require.Equal(t, f.ID, c.ID)
		require.Equal(t, want.Time, c.Time)
		require.Len(t, c.Records, len(want.Records))
		for i := range want.Records {
			requireSame(t, want.Records[i], c.Records[i])
		}
		require.Equal(t, want.Records == nil, c.Records == nil)
		got, err := p.Frame(f.Segment, f.Start)
		require.NoError(t, err)
		require.Equal(t, f, got)
		next++
	}
	require.EqualValues(t, len(frames)+1, next)
}

// A damaged part ends the commits with an error. What was there before is whole.
func TestCommitsOfDamage(t *testing.T) {
	shrink(t)
	for _, m := range samples(t) {
		sound, err := Open(m, int64(len(m.b)), "a.pack", NewCache(1<<20))
		require.NoError(t, err)
		frames := framesIn(t, sound)
		rows, err := sound.table()
		require.NoError(t, err)
		for n, r := range rows {
			for _, at := range r.Parts {
				if at.Size == 0 {
					continue
				}
				b := bytes.Clone(m.b)
				b[at.Offset+at.Size/2] ^= 4
				whole, err := Open(&memory{b}, int64(len(b)), "a.pack", NewCache(1<<20))
				require.NoError(t, err)
				requireCommits(t, whole, frames, 1) // one block is restored
				b[sound.foot.ParityAt(sound.size)] ^= 1
				p, err := Open(&memory{b}, int64(len(b)), "a.pack", NewCache(1<<20))
				require.NoError(t, err)
				next, failed := 0, false
				for c, err := range p.Commits(1) {
					if err != nil {
						require.ErrorIs(t, err, backend.ErrCorrupt)
						failed = true
						continue
					}
					want, err := structure.DecodeCommit(frames[next].Payload)
					require.NoError(t, err)
					for i := range want.Records {
						requireSame(t, want.Records[i], c.Records[i])
					}
					next++
				}
				require.True(t, failed, "chapter %d", n)
				require.LessOrEqual(t, uint64(next), r.Commit-1+uint64(r.Commits), "chapter %d", n)
			}
		}
	}
}

func BenchmarkCommits(b *testing.B) {
	p := writeAs(b, framesOf(b, 500, historyOf(20_000, 20)), nil, false)
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range p.Commits(1) {
			require.NoError(b, err)
		}
	}
}
