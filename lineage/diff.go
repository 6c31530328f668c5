package lineage

import (
	"context"
	"fmt"
	"strings"
)

// DiffRevisions compares two revisions of a document on the context's history line by line. Each
// returned line has a prefix: ' ' if it is in both, '-' if only in the first, '+' if only in the
// second. Line ends are removed. A missing revision is ErrNotFound, a body larger than MostText
// ErrTooLarge.
func (c *Context) DiffRevisions(ctx context.Context, document string, from, to uint64) ([]string, error) {
	revisions, err := c.Revisions(ctx, document)
	if err != nil {
		return nil, err
	}
	var texts [2]string
	for i, number := range []uint64{from, to} {
		var found *Entry
		for _, e := range revisions {
			if document != "" && e.Revision == number && found == nil {
				found = e
			}
		}
		switch {
		case found == nil:
			return nil, subjectError("document", document, ErrNotFound, fmt.Sprintf("revision %d on the history of context %v", number, c.id))
		case found.Size > MostText:
			return nil, subjectError("document", document, ErrTooLarge, fmt.Sprintf("revision %d has %d bytes", number, found.Size))
		case found.Erased:
			return nil, subjectError("document", document, ErrErased, fmt.Sprintf("revision %d", number))
		}
		if texts[i], err = c.store.Text(ctx, found); err != nil {
			return nil, err
		}
	}
	return diffLines(linesOf(texts[0]), linesOf(texts[1])), nil
}

// linesOf splits a text into lines. A final newline does not begin another line.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// maxDifferences limits time and memory. Texts with more differing lines get a coarse result: one
// block of lines replaced by another.
const maxDifferences = 1000

// diffLines compares two lists of lines with the algorithm of Myers.
func diffLines(a, b []string) (diff []string) {
	add := func(op string, lines []string) {
		for _, line := range lines {
			diff = append(diff, op+line)
		}
	}
	begin := 0
	for begin < len(a) && begin < len(b) && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < len(a)-begin && end < len(b)-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	add(" ", a[:begin])
	a, tail, b := a[begin:len(a)-end], a[len(a)-end:], b[begin:len(b)-end]
	if path, ok := shortestEdit(a, b); ok {
		x, y := 0, 0
		for _, at := range path { // pairs of equal lines
			add("-", a[x:at[0]])
			add("+", b[y:at[1]])
			add(" ", a[at[0]:at[0]+1])
			x, y = at[0]+1, at[1]+1
		}
		a, b = a[x:], b[y:]
	}
	add("-", a)
	add("+", b)
	add(" ", tail)
	return diff
}

// shortestEdit returns the pairs of equal lines in a shortest edit. ok is false if the edit has
// more than maxDifferences.
func shortestEdit(a, b []string) (agree [][2]int, ok bool) {
	n, m := len(a), len(b)
	most := min(n+m, maxDifferences)
	furthest := make([]int, 2*most+3) // x by diagonal
	var trace [][]int
	for d := 0; d <= most; d++ {
		trace = append(trace, append([]int(nil), furthest[most+1-d:most+2+d]...))
		for k := -d; k <= d; k += 2 {
			i := most + 1 + k
			x := furthest[i-1] + 1
			if k == -d || k != d && furthest[i-1] < furthest[i+1] {
				x = furthest[i+1]
			}
			for x < n && x-k < m && a[x] == b[x-k] {
				x++
			}
			if furthest[i] = x; x >= n && x-k >= m {
				return walkBack(trace, a, b), true
			}
		}
	}
	return nil, false
}

// walkBack follows an edit from its end. trace[d] has the furthest x on the diagonals -d to d
// before difference d.
func walkBack(trace [][]int, a, b []string) (agree [][2]int) {
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		before := trace[d]
		k := x - y
		at := func(k int) int { return before[k+d] }
		previous := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			previous = k + 1
		}
		startX := 0
		startY := 0
		if d > 0 {
			startX = at(previous)
			startY = startX - previous
		}
		for x > startX && y > startY && a[x-1] == b[y-1] {
			x, y = x-1, y-1
			agree = append(agree, [2]int{x, y})
		}
		x, y = startX, startY
	}
	for i, j := 0, len(agree)-1; i < j; i, j = i+1, j-1 {
		agree[i], agree[j] = agree[j], agree[i]
	}
	return agree
}
