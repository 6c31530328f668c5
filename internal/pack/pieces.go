package pack

import (
	"fmt"

	"github.com/lineage-store/lineage/structure"
)

// A commit that is larger than a chapter is stored as pieces in consecutive chapters.
// The table of chapters shows which piece is needed, so that only that chapter is
// decoded.

// piece is the part of a commit in a chapter.
type piece struct {
	c *chapter
	x *commit
	n int // of the chapter
}

// rests returns the rows of the chapters that continue the last commit of a chapter.
func (p *File) rests(n int) []row {
	end := n + 1
	for end < len(p.rows) && p.rows[end].rest != nil {
		if end++; p.rows[end-1].commits > 0 {
			break
		}
	}
	return p.rows[n+1 : end]
}

// restsAt is rests if the last commit has its frame at a position.
func (p *File) restsAt(n int, segment uint32, offset int64) []row {
	rests := p.rests(n)
	if len(rests) > 0 && rests[0].segment == segment && rests[0].rest.start == offset {
		return rests
	}
	return nil
}

// restIn returns the continued commit at the start of a chapter.
func (p *File) restIn(n int) (piece, error) {
	c, err := p.chapter(n)
	if err != nil {
		return piece{}, err
	}
	return piece{c, c.commits[0], n}, nil
}

// after returns the next piece of the same commit.
func (p *File) after(at piece) (piece, error) {
	next, err := p.restIn(at.n + 1)
	if err == nil && (next.x.rest == nil || next.x.number != at.x.number) {
		err = p.corrupt(at.c.fileEnd(), fmt.Sprintf("the rest of commit %d is missing", at.x.number))
	}
	return next, err
}

// joinedPieces returns the whole commit.
func joinedPieces(pieces []piece) *commit {
	x := pieces[0].x
	out := &commit{number: x.number, segment: x.segment, start: x.start, end: x.end, lag: x.lag, millis: x.millis}
	for _, at := range pieces {
		out.records = append(out.records, at.x.records...)
		out.bodies = append(out.bodies, at.x.bodies...)
		out.content = append(out.content, at.x.content...)
		out.offsets = append(out.offsets, at.x.offsets...)
	}
	return out
}

// restsOf returns the rows of the chapters that continue a commit, and the chapter
// where it begins.
func (p *File) restsOf(number uint64) (rests []row, n int, err error) {
	if n, err = p.chapterOf(number); err == nil && p.rows[n].commit+uint64(p.rows[n].commits)-1 == number {
		rests = p.rests(n)
	}
	return rests, n, err
}

// guessPiece returns the chapter that probably has a span: its index in rests plus 1,
// or 0 for the chapter where the commit begins. begins is the first stretch of the
// span's run. If the run is not the last one before any of the chapters, the guess is
// the last chapter.
func guessPiece(rests []row, number uint64, ref structure.SpanRef, begins stretch) int {
	guess, from := len(rests), 0
	if begins.commit == number {
		guess = min(begins.piece, len(rests))
		from = guess
	}
	for i := from; i < len(rests); i++ {
		if x := rests[i].rest; x.seq > 0 && x.run == runByte(ref.Run) {
			if x.seq >= ref.Seq {
				return i
			}
			guess = i + 1
		}
	}
	return guess
}

// begins returns the first stretch of a span's run if that helps to find the span and
// is known.
func (p *File) begins(rests []row, ref structure.SpanRef) (s stretch) {
	if len(rests) == 0 {
		return s
	}
	k := cacheKey{p, cachedBegin, uint64(runFingerprint(ref.Run))}
	known, ok := p.cache.get(k).(*listedRun)
	if !ok && p.foot.directory > 0 {
		if _, err := p.Run(ref.Run, ref.Seq); err != nil {
			return s // without it the search takes longer
		}
		known, ok = p.cache.get(k).(*listedRun)
	}
	if ok && known.id == ref.Run {
		s = known.stretches[0]
	}
	return s
}

// runByte returns the byte that the table stores for a run.
func runByte(id structure.RunID) byte { return byte(runFingerprint(id)) }

// places returns the original offsets of the records of a piece in the payload.
func (p *File) places(at piece) ([]int, error) {
	x := at.x
	x.once.Do(func() {
		if x.begins == nil {
			var e structure.Encoder
			x.err = x.measure(&e)
		}
	})
	switch {
	case x.err != nil:
		return nil, p.corrupt(at.c.offset, x.err.Error())
	case x.offsets != nil:
		return x.offsets, nil
	}
	return x.begins, nil
}
