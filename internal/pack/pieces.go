package pack

import "github.com/lineage-store/lineage/structure"

// A commit that is larger than a chapter is in several that follow each other, a piece
// in each. Which has what is wanted is found in the table of chapters, so that only
// that one is decoded.

// piece is what a chapter has of a commit.
type piece struct {
	c *chapter
	x *commit
	n int // of the chapter
}

// rests returns the rows of the chapters that go on with the last commit of one.
func (p *File) rests(n int) []row {
	end := n + 1
	for end < len(p.rows) && p.rows[end].rest != nil {
		if end++; p.rows[end-1].commits > 0 {
			break
		}
	}
	return p.rows[n+1 : end]
}

// restsAt is rests where the last commit is the one whose frame started at a position.
func (p *File) restsAt(n int, segment uint32, offset int64) []row {
	rests := p.rests(n)
	if len(rests) > 0 && rests[0].segment == segment && rests[0].rest.start == offset {
		return rests
	}
	return nil
}

// restIn returns what a chapter has of the commit that goes on in it.
func (p *File) restIn(n int) (piece, error) {
	c, err := p.chapter(n)
	if err != nil {
		return piece{}, err
	}
	return piece{c, c.commits[0], n}, nil
}

// after returns the piece of the same commit behind one that is open.
func (p *File) after(at piece) (piece, error) { return p.restIn(at.n + 1) }

// joinedPieces returns a commit of which several chapters have a piece each.
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

// restsOf returns the rows of the chapters that a commit goes on in, where it began.
func (p *File) restsOf(number uint64) (rests []row, n int, err error) {
	if n, err = p.chapterOf(number); err == nil && p.rows[n].commit+uint64(p.rows[n].commits)-1 == number {
		rests = p.rests(n)
	}
	return rests, n, err
}

// likely returns which of the chapters that a commit goes on in likely has a span,
// counted from one, or 0 for the chapter that it begins in. The run of the span begins
// in a stretch. Where the run is not the last before any of them, it is in the last.
func likely(rests []row, number uint64, ref structure.SpanRef, begins stretch) int {
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

// begins returns where the run of a span begins, if that helps to find the span and is
// known.
func (p *File) begins(rests []row, ref structure.SpanRef) (s stretch) {
	if len(rests) == 0 {
		return s
	}
	k := cacheKey{p, cachedBegin, uint64(runFingerprint(ref.Run))}
	known, ok := p.cache.get(k).(*listedRun)
	if !ok && p.foot.finds > 0 {
		if _, err := p.Run(ref.Run, ref.Seq); err != nil {
			return s // without, finding it takes longer
		}
		known, ok = p.cache.get(k).(*listedRun)
	}
	if ok && known.id == ref.Run {
		s = known.stretches[0]
	}
	return s
}

// runByte is what the table knows a run by.
func runByte(id structure.RunID) byte { return byte(runFingerprint(id)) }

// places returns where the records of a piece began in the payload when they were
// first written.
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
