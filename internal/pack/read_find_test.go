package pack

import (
	"testing"

	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Lookups in a pack agree with a walk over its commits.
func TestFind(t *testing.T) {
	shrink(t)
	rapid.Check(t, func(t *rapid.T) {
		commits := rapid.SliceOfN(structuretest.Commits(), 1, 20).Draw(t, "commits")
		commits = append(commits, commits[:len(commits)/2]...) // the same again
		frames := framesOf(t, 7, commits)
		p := write(t, frames, nil)
		require.NoError(t, check(p))
		before := uint64(rapid.IntRange(1, len(commits)+1).Draw(t, "before"))
		checkFound(t, p, frames, before)
		checkFound(t, p, frames, 1<<64-1)
		_, ok, err := p.Find(structure.KindBlock, []byte("no such content."), 1<<64-1)
		require.NoError(t, err)
		require.False(t, ok)
		none, err := p.Run(structure.RunID{1, 2, 3}, 1)
		require.NoError(t, err)
		require.Empty(t, none)
	})
}

func check(p *File) error {
	c, err := p.NewCheck()
	if err != nil {
		return err
	}
	for f, err := range p.Frames(0, 0) {
		if err == nil {
			err = c.Add(f.Number, recordsOf(f.Payload))
		}
		if err != nil {
			return err
		}
	}
	if err := c.Done(); err != nil {
		return err
	}
	return p.CheckSums()
}

type hashed struct {
	kind structure.Kind
	hash [32]byte
}

func checkFound(t require.TestingT, p *File, frames []Frame, before uint64) {
	want := map[hashed]Object{}
	spans := map[structure.SpanRef][]uint64{}
	for _, f := range frames {
		d, err := structure.NewDecoder(f.Payload)
		require.NoError(t, err)
		for d.More() {
			at, r, err := d.Next()
			require.NoError(t, err)
			if s, ok := r.(*structure.Span); ok {
				spans[s.Ref] = append(spans[s.Ref], f.Number)
			}
			if k := (hashed{r.Kind(), hashOf(r)}); f.Number < before && (k.kind == structure.KindBlock || k.kind == structure.KindChunk) {
				want[k] = Object{Commit: f.Number, Segment: f.Segment, Frame: f.Start, Offset: f.PayloadOffset + int64(at), Record: r}
			}
		}
	}
	for k, o := range want {
		got, ok, err := p.Find(k.kind, k.hash[:16], before)
		require.NoError(t, err)
		require.True(t, ok)
		requireSame(t, o.Record, got.Record)
		got.Record = o.Record
		require.Equal(t, o, got)
	}
	for ref, commits := range spans {
		found, err := p.Run(ref.Run, ref.Seq)
		require.NoError(t, err)
		var got []uint64
		for _, s := range found {
			if s.First <= ref.Seq && ref.Seq <= s.Last {
				got = append(got, s.Commit(ref.Seq))
			}
		}
		require.Equal(t, commits, got, "%v", ref)
	}
	for _, f := range frames {
		segment, offset, err := p.Position(f.Number)
		require.NoError(t, err)
		require.Equal(t, f.Segment, segment)
		require.Equal(t, f.Start, offset)
	}
}

// Runs that share a fingerprint are distinguished.
func TestSharedFingerprints(t *testing.T) {
	ids := [2]structure.RunID{{0xcc, 0xa4, 1}, {0xbd, 0xd8, 1}}
	require.Equal(t, lookup.RunFingerprint(ids[0]), lookup.RunFingerprint(ids[1]))
	var commits []*structure.Commit
	for _, c := range goldenCommits()[1:2] {
		for _, id := range ids {
			own := *c
			own.Records = nil
			for _, r := range c.Records {
				if s, ok := r.(*structure.Span); ok {
					r = &structure.Span{Ref: structure.SpanRef{Run: id, Seq: 1}, Usages: s.Usages}
					own.Records = append(own.Records, r)
				} else if r.Kind() == structure.KindBlock {
					own.Records = append(own.Records, r)
				}
			}
			commits = append(commits, &own)
		}
	}
	frames := framesOf(t, 7, commits)
	p := write(t, frames, nil)
	checkFound(t, p, frames, 1<<64-1)
}

// Damage in lookup tables is found and reported with its position, and the
// commits can still be read.
func TestDamageOfLookup(t *testing.T) {
	shrink(t)
	for _, m := range samples(t) {
		p, err := Open(m, int64(len(m.b)), "sound.pack", NewCache(1<<20))
		require.NoError(t, err)
		_, err = p.directory()
		require.NoError(t, err)
		from, to := int(p.foot.LookupAt()), int(p.foot.ParityAt(p.size))
		// Without the parity nothing is restored.
		m.b[to] ^= 1
		for at := from; at < to; at += 1 + (to-from)/60 {
			m.b[at] ^= 0x40
			damaged, err := Open(m, int64(len(m.b)), "damaged.pack", NewCache(1<<20))
			require.NoError(t, err)
			for range 2 {
				err = damaged.CheckSums()
				require.ErrorIs(t, err, ErrLookup)
				var where *backend.CorruptError
				require.ErrorAs(t, err, &where)
				require.Equal(t, "damaged.pack", where.File)
				require.LessOrEqual(t, where.Offset, int64(at))
			}
			for _, err := range damaged.Frames(0, 0) {
				require.NoError(t, err)
			}
			m.b[at] ^= 0x40
		}
	}
}

// Well-formed but wrong tables are found by comparison with the commits.
func TestCheck(t *testing.T) {
	shrink(t)
	frames := framesOf(t, 4, goldenCommits())
	for name, spoil := range map[string]func(*lookup.Builder){
		"nothing":    func(*lookup.Builder) {},
		"of content": func(l *lookup.Builder) { l.Content[1].Print ^= 1 },
		"of a number": func(l *lookup.Builder) {
			l.Content[0].Number, l.Content[1].Number = l.Content[1].Number, l.Content[0].Number
		},
		"of a run":         func(l *lookup.Builder) { l.IDs[0][5] ^= 1 },
		"of a place":       func(l *lookup.Builder) { l.Runs[0][0].First++ },
		"something missed": func(l *lookup.Builder) { l.Content = l.Content[1:] },
	} {
		m := &memory{}
		w := NewWriter(m, layout.Header{First: 1, Last: 2, FirstCommit: 1}, nil)
		for _, f := range frames {
			require.NoError(t, w.Add(f))
		}
		spoil(&w.lookup)
		_, err := w.Finish()
		require.NoError(t, err)
		w.Close()
		p, err := Open(m, int64(len(m.b)), "wrong.pack", NewCache(1<<20))
		require.NoError(t, err)
		require.NoError(t, p.CheckSums())
		if name == "nothing" {
			require.NoError(t, check(p))
		} else {
			require.ErrorIs(t, check(p), ErrLookup, name)
		}
	}
}
