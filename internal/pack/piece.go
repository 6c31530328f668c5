package pack

import (
	"fmt"
	"sort"

	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/structure"
)

// A commit that is larger than a chapter is stored as pieces in consecutive chapters.
// The table of chapters shows which piece is needed, so that only that chapter is
// decoded.

// commitPiece is the part of a commit in a chapter.
type commitPiece struct {
	c *chapter
	x *columns.Commit
	n int // of the chapter
}

// continuations returns the rows of the chapters that continue the last commit of a chapter.
func (p *File) continuations(n int) []layout.ChapterRow {
	end := n + 1
	for end < len(p.rows) && p.rows[end].Rest != nil {
		if end++; p.rows[end-1].Commits > 0 {
			break
		}
	}
	return p.rows[n+1 : end]
}

// continuationsAt is continuations if the last commit has its frame at a position.
func (p *File) continuationsAt(n int, segment uint32, offset int64) []layout.ChapterRow {
	continuations := p.continuations(n)
	if len(continuations) > 0 && continuations[0].Segment == segment && continuations[0].Rest.FrameStart == offset {
		return continuations
	}
	return nil
}

// continuationIn returns the continued commit at the start of a chapter.
func (p *File) continuationIn(n int) (commitPiece, error) {
	c, err := p.chapter(n)
	if err != nil {
		return commitPiece{}, err
	}
	return commitPiece{c, c.commits[0], n}, nil
}

// after returns the next piece of the same commit.
func (p *File) after(at commitPiece) (commitPiece, error) {
	next, err := p.continuationIn(at.n + 1)
	if err == nil && (next.x.Rest == nil || next.x.Number != at.x.Number) {
		err = p.corrupt(at.c.FileEnd(), missingRest(at.x.Number))
	}
	return next, err
}

// continuationsOf returns the rows of the chapters that continue a commit, and the chapter
// where it begins.
func (p *File) continuationsOf(number uint64) (continuations []layout.ChapterRow, n int, err error) {
	if n, err = p.chapterOf(number); err == nil && p.rows[n].Commit+uint64(p.rows[n].Commits)-1 == number {
		continuations = p.continuations(n)
	}
	return continuations, n, err
}

// guessPiece returns the chapter that probably has a span: its index in continuations plus 1,
// or 0 for the chapter where the commit begins. start is the first stretch of the
// span's run. If the run is not the last one before any of the chapters, the guess is
// the last chapter.
func guessPiece(continuations []layout.ChapterRow, number uint64, ref structure.SpanRef, start lookup.Stretch) int {
	guess, from := len(continuations), 0
	if start.Commit == number {
		guess = min(start.Piece, len(continuations))
		from = guess
	}
	for i := from; i < len(continuations); i++ {
		if x := continuations[i].Rest; x.Seq > 0 && x.Run == lookup.RunByte(ref.Run) {
			if x.Seq >= ref.Seq {
				return i
			}
			guess = i + 1
		}
	}
	return guess
}

// places returns the original offsets of the records of a piece in the payload.
func (p *File) places(at commitPiece) ([]int, error) {
	places, err := at.x.Places()
	if err != nil {
		return nil, p.corrupt(at.c.Offset, err.Error())
	}
	return places, nil
}

// chapterOf returns the chapter in which a commit begins.
func (p *File) chapterOf(number uint64) (int, error) {
	rows, err := p.table()
	if err != nil {
		return 0, err
	}
	n := sort.Search(len(rows), func(i int) bool { return rows[i].Commit > number }) - 1
	if n < 0 || number > p.LastCommit {
		return 0, p.corrupt(p.foot.TableAt, fmt.Sprintf("commit %d is in no chapter", number))
	}
	return n, nil
}

// commit returns a commit, or its first piece.
func (p *File) commit(number uint64) (commitPiece, error) {
	n, err := p.chapterOf(number)
	if err != nil {
		return commitPiece{}, err
	}
	c, err := p.chapter(n)
	if err != nil {
		return commitPiece{}, err
	}
	return commitPiece{c, c.commits[number-c.First()], n}, nil
}

func missingRest(commit uint64) string {
	return fmt.Sprintf("the rest of commit %d is missing", commit)
}

// joined returns the commit of several pieces.
func joined(pieces []commitPiece) *columns.Commit {
	commits := make([]*columns.Commit, len(pieces))
	for i := range pieces {
		commits[i] = pieces[i].x
	}
	return columns.Joined(commits)
}

// pieceOf returns the pieces of a commit from the one that has a body.
func pieceOf(pieces []commitPiece, body int64) []commitPiece {
	for len(pieces) > 1 && uint64(body) >= pieces[1].c.Body {
		pieces = pieces[1:]
	}
	return pieces
}
