package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
	"github.com/stretchr/testify/require"
)

// samples returns packs of a few commits, dense and not, with small chapters. They are the caller's.
func samples(t require.TestingT) (out []*memory) {
	sampled.Do(func() { sampled.packs = writeSamples(t) })
	require.NotEmpty(t, sampled.packs)
	for _, b := range sampled.packs {
		out = append(out, &memory{bytes.Clone(b)})
	}
	return out
}

var sampled struct {
	sync.Once
	packs [][]byte
}

func writeSamples(t require.TestingT) (out [][]byte) {
	for n := range 4 {
		var commits []*structure.Commit
		for i := range 2 + 5*n { // the first has a first chapter only
			commits = append(commits, structuretest.Commits().Example(100*n+i))
		}
		m := &memory{}
		frames := framesOf(t, 4, commits)
		w := NewWriter(m, layout.Header{First: 1, Last: frames[len(frames)-1].Segment, FirstCommit: 1, Dense: n%2 == 0}, nil)
		for _, f := range frames {
			require.NoError(t, w.Add(f))
		}
		_, err := w.Finish()
		require.NoError(t, err)
		w.Close()
		out = append(out, m.b)
	}
	return out
}

// mend corrects all checksums, so that the code that they guard is tested.
func mend(b []byte) {
	if len(b) < layout.HeaderSize+layout.TailSize+layout.ParitySize(0)+4 {
		return
	}
	copy(b, "LINEAGEP")
	binary.LittleEndian.PutUint32(b[8:], layout.FormatVersion)
	binary.LittleEndian.PutUint32(b[60:], layout.Sum(b[:60]))
	h, err := layout.DecodeHeader(b)
	if err != nil {
		return
	}
	foot := b[len(b)-layout.FooterSize:]
	length, finds := binary.LittleEndian.Uint32(foot[8:])%uint32(len(b)), binary.LittleEndian.Uint32(foot[16:])%uint32(len(b))
	at := int64(binary.LittleEndian.Uint64(foot))
	spare := layout.ParitySize(0)
	for layout.ParitySize(int64(len(b)-layout.TailSize-4-spare)) > spare {
		spare *= 2
	}
	f := layout.Footer{TableAt: at, TableSize: length, DirectorySize: finds, ParitySize: uint32(spare), HeaderSum: layout.Sum(b[:layout.HeaderSize])}
	end := f.ParityAt(int64(len(b)))
	behind, to := at+int64(length), end-int64(finds)
	if at < layout.HeaderSize || at > int64(len(b)) || behind > to {
		return
	}
	table := b[at:][:length]
	f.TableSum = layout.Sum(table)
	copy(foot, f.Encode())
	sum := func(p layout.Range) {
		if p.Size >= 4 {
			end := p.Offset + p.Size - 4
			binary.LittleEndian.PutUint32(b[end:], layout.Sum(b[p.Offset:end]))
		}
	}
	sum(layout.Range{Offset: to, Size: int64(finds)})
	if d, err := lookup.ReadDirectory(b[to:][:max(finds, 4)-4], behind, to); err == nil {
		for _, t := range []*lookup.Buckets{&d.Content, &d.Runs} {
			for i := range t.Count() {
				sum(t.At(uint64(i)))
			}
		}
		for i := range d.ListCount() {
			sum(d.List(i))
		}
	}
	_, table, err = layout.ReadIdentities(table, h)
	if err != nil {
		return
	}
	rows, err := layout.ReadTable(table, h, at)
	if err != nil {
		return
	}
	for _, r := range rows {
		for _, p := range r.Parts {
			sum(p)
		}
	}
}

// readAll reads everything in a pack.
func readAll(b []byte) error {
	p, err := Open(&memory{b}, int64(len(b)), "fuzzed.pack", NewCache(1<<20))
	if err != nil {
		return err
	}
	for f, err := range p.Frames(0, 0) {
		if err != nil {
			return err
		}
		d, err := structure.NewDecoder(f.Payload)
		for err == nil && d.More() {
			var at int
			if at, _, err = d.Next(); err == nil {
				_, _ = p.Object(f.Segment, f.Start, f.PayloadOffset+int64(at))
			}
		}
	}
	for _, err := range p.Commits(p.FirstCommit) {
		if err != nil {
			return err
		}
	}
	for i := range 8 {
		_, _, _ = p.Find(structure.KindBlock, bytes.Repeat([]byte{byte(i << 5)}, 16), 1<<63)
	}
	for print := range p.Fingerprints() {
		_, _, _ = p.Find(structure.KindBlock, binary.BigEndian.AppendUint32(nil, print), 1<<63)
		_, _, _ = p.Find(structure.KindChunk, binary.BigEndian.AppendUint32(nil, print), 1<<63)
	}
	return check(p)
}

func FuzzOpen(f *testing.F) {
	firstLimits, chapterLimits, denseLimits = smallFirst, smallOthers, smallOthers
	for _, m := range samples(f) {
		f.Add(m.b, false)
		f.Add(m.b, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, right bool) {
		b = bytes.Clone(b)
		if right {
			mend(b)
		}
		_ = readAll(b)
	})
}

// A damaged byte is restored, and so are missing bytes of the second footer. With corrected checksums a
// damaged byte causes an error or other commits, never a panic.
func TestDamageBehindChecksums(t *testing.T) {
	shrink(t)
	for _, m := range samples(t) {
		require.NoError(t, readAll(m.b))
		for _, n := range campaign.Sample(len(m.b), 60) {
			at := n - 1
			b := bytes.Clone(m.b)
			b[at] ^= 1 << (at % 8)
			require.NoError(t, readAll(b), "byte %d", at)
			mend(b)
			_ = readAll(b)
		}
		for _, n := range campaign.Sample(len(m.b), 30) {
			require.Equal(t, len(m.b)-n+1 > layout.FooterSize, readAll(m.b[:n-1]) != nil, "%d bytes of %d", n-1, len(m.b))
		}
		for missing := range layout.FooterSize + 1 { // the other footer says all
			require.NoError(t, readAll(m.b[:len(m.b)-missing]), "%d bytes are missing", missing)
		}
	}
}

// inflatedMemory limits the allocations for reading all of a small pack: the tables of its
// coders, and bodies up to the size that is always decompressed.
const inflatedMemory = 256 << 20

var refusals = []error{backend.ErrCorrupt, ErrUnlisted, structure.ErrMalformed, backend.ErrNewerFormat, backend.ErrOlderFormat}

// A pack that claims more data than it has, with right checksums, is refused or read as
// something else, in bounded memory.
func TestInflatedPack(t *testing.T) {
	shrink(t)
	for _, m := range samples(t) {
		for _, behind := range campaign.Sample(len(m.b)-layout.HeaderSize, 14) {
			at := layout.HeaderSize + behind - 1
			for b := range structuretest.Inflated(m.b, at) {
				if len(b) != len(m.b) {
					continue // everything after it would move
				}
				mend(b)
				var err error
				allocated := structuretest.Allocated(func() { err = readAll(b) })
				require.LessOrEqual(t, allocated, uint64(inflatedMemory), "byte %d", at)
				if err != nil {
					require.True(t, slices.ContainsFunc(refusals, func(known error) bool { return errors.Is(err, known) }), err)
				}
			}
		}
	}
}
