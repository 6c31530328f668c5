package pack

import (
	"fmt"
	"sort"

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

// places returns the original offsets of the records of a piece in the payload.
func (p *File) places(at piece) ([]int, error) {
	places, err := at.x.places()
	if err != nil {
		return nil, p.corrupt(at.c.offset, err.Error())
	}
	return places, nil
}

// chapterOf returns the chapter in which a commit begins.
func (p *File) chapterOf(number uint64) (int, error) {
	rows, err := p.table()
	if err != nil {
		return 0, err
	}
	n := sort.Search(len(rows), func(i int) bool { return rows[i].commit > number }) - 1
	if n < 0 || number > p.LastCommit {
		return 0, p.corrupt(p.foot.offset, fmt.Sprintf("commit %d is in no chapter", number))
	}
	return n, nil
}

// commit returns a commit, or its first piece.
func (p *File) commit(number uint64) (piece, error) {
	n, err := p.chapterOf(number)
	if err != nil {
		return piece{}, err
	}
	c, err := p.chapter(n)
	if err != nil {
		return piece{}, err
	}
	return piece{c, c.commits[number-c.first()], n}, nil
}
