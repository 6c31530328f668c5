package bundle

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

// runPiece is a part of a run: the spans after the place from, up to last.
type runPiece struct {
	run     structure.Run
	base    structure.Digest // of the history before the run
	from    uint64
	before  structure.Digest // of the history up to from; base if that is 0
	last    uint64
	digest  structure.Digest // of the history up to last
	omitted bool             // the spans up to from were left out
}

func (p *runPiece) encode() ([]byte, error) {
	run, err := structure.MarshalRecord(&p.run)
	if err != nil {
		return nil, err
	}
	b := append(binary.AppendUvarint(nil, uint64(len(run))), run...)
	b = append(b, p.base[:]...)
	if b = binary.AppendUvarint(b, p.from); p.from != 0 {
		b = append(b, p.before[:]...)
		b = append(b, bit(p.omitted))
	}
	b = binary.AppendUvarint(b, p.last)
	return append(b, p.digest[:]...), nil
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// decodePiece returns false for bytes that encode would not write.
func decodePiece(b []byte) (p runPiece, ok bool) {
	c := varint.Reader{Rest: b}
	r, err := structure.UnmarshalRecord(structure.KindRun, c.Take(c.Next()))
	if err != nil {
		return p, false
	}
	p.run = *r.(*structure.Run)
	copy(p.base[:], c.Take(uint64(len(p.base))))
	p.before = p.base
	if p.from = c.Next(); p.from != 0 {
		copy(p.before[:], c.Take(uint64(len(p.before))))
		flag := c.Take(1)
		if len(flag) == 1 && flag[0] > 1 {
			return p, false
		}
		p.omitted = len(flag) == 1 && flag[0] == 1
	}
	p.last = c.Next()
	copy(p.digest[:], c.Take(uint64(len(p.digest))))
	return p, !c.Bad && len(c.Rest) == 0 && !p.run.ID.IsZero() && p.from <= p.last && p.last > 0 && (p.omitted || p.from < p.last)
}

// pieces are the incomplete pieces, by run.
type pieces map[structure.RunID]*incoming

// begin adds a piece if it has spans.
func (p pieces) begin(begun *runPiece) {
	if begun.from < begun.last {
		p[begun.run.ID] = &incoming{runPiece: *begun, at: begun.from, digest: begun.before}
	}
}

// of returns the piece whose next span is s, nil for none.
func (p pieces) of(s *structure.Span) *incoming {
	if l := p[s.Ref.Run]; l != nil && s.Ref.Seq == l.at+1 {
		return l
	}
	return nil
}

// advance records that the next span of a piece was read. d is the digest of the history up to it.
func (p pieces) advance(l *incoming, d structure.Digest) {
	if l.at, l.digest = l.at+1, d; l.at == l.last {
		delete(p, l.runPiece.run.ID)
	}
}

// incoming is a piece whose spans are being read. The checker uses only at and digest.
type incoming struct {
	runPiece
	run    structure.RunID   // the run in the store
	after  uint64            // place in the bundle's run before the first span of the run in the store
	parent structure.SpanRef // of the run in the store, if it is new
	create bool              // the run must be created

	mode   mode
	at     uint64             // last place that was read
	digest structure.Digest   // of the history up to at
	stored uint64             // last place of the run in the store
	window []structure.Digest // digests of the run in the store, from place first on
	first  uint64
}

// mode is how the spans of a piece are handled.
type mode int

const (
	unlocated mode = iota
	skipping       // the store has them
	comparing      // the store may have some of them
	adding
)
