package page

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
)

const (
	// buckets is the maximum number of parts of the picture.
	buckets = 1000
	// X positions in the picture, in pixels, of the columns for forks, kinds of messages, and failures.
	forksAt, messagesAt, failedAt, mapEnd = 0, 4, 15, 19
)

// mapView is a picture of a whole history.
type mapView struct {
	Length  uint64
	Buckets int
	Width   int
	Paths   []mapPath
	// Rest is set if part of the history has not been read yet.
	Rest bool
}

type mapPath struct{ Class, Path string }

// minimap sends the picture of a history: the kinds of its messages, failures, and where other histories fork off.
func (p *Page) minimap(w http.ResponseWriter, r *http.Request) error {
	subject, err := p.subjectOf(r, r.URL.Query().Get("in"))
	if err != nil {
		return err
	}
	v := &mapView{Width: mapEnd}
	if v.Length, err = p.o.Store.Position(r.Context(), subject.Tip); err != nil {
		return err
	}
	signs, err := p.outlines.of(r.Context(), subject.Tip)
	if err != nil {
		return err
	}
	var forks []uint64
	if err := p.graphs.Read(r.Context(), subject.Info.ID, func(g *graph.Graph) error { forks = forksOff(g, subject.Tip); return nil }); err != nil {
		return err
	}
	v.draw(signs, forks)
	return p.show(w, r, http.StatusOK, "map", &pageData{Title: subject.Title, Body: v})
}

// forksOff returns the positions after which other histories fork off.
func forksOff(g *graph.Graph, tip lineage.SpanRef) (positions []uint64) {
	var next *graph.Line
	for at := g.Place(tip); at.Line != nil; next, at = at.Line, at.Line.After {
		for _, l := range at.Line.Forks {
			if l.After.At <= at.At && l != next {
				positions = append(positions, l.After.Position())
			}
		}
		if at.At < at.Line.Last {
			positions = append(positions, at.Position())
		}
	}
	return positions
}

// draw draws the picture.
func (v *mapView) draw(signs []sign, forks []uint64) {
	v.Buckets = int(min(v.Length, buckets))
	v.Rest = uint64(len(signs)) < v.Length
	if v.Length == 0 {
		return
	}
	bucket := func(position uint64) int { return int((position - 1) * uint64(v.Buckets) / v.Length) }
	kinds, failed, forked := make([]sign, v.Buckets), make([]bool, v.Buckets), make([]bool, v.Buckets)
	counts := make([][signFailed + 1]int, v.Buckets)
	for i, s := range signs {
		b := bucket(uint64(i) + 1)
		counts[b][s]++
		failed[b] = failed[b] || s == signFailed
	}
	for b := range kinds {
		// Prompts are rare, and people look for them, so they win. Otherwise the most frequent sign wins.
		for s := signOther; s <= signCall; s++ {
			if counts[b][s] > counts[b][kinds[b]] {
				kinds[b] = s
			}
		}
		if counts[b][signPrompt] > 0 {
			kinds[b] = signPrompt
		}
	}
	for _, position := range forks {
		forked[bucket(position)] = true
	}
	v.add("m-prompt", messagesAt, failedAt-messagesAt, func(b int) bool { return kinds[b] == signPrompt })
	v.add("m-answer", messagesAt, failedAt-messagesAt, func(b int) bool { return kinds[b] == signAnswer })
	v.add("m-call", messagesAt, failedAt-messagesAt, func(b int) bool { return kinds[b] == signCall || kinds[b] == signResult && counts[b][signResult] > 0 })
	v.add("m-failed", failedAt, mapEnd-failedAt, func(b int) bool { return failed[b] })
	v.add("m-fork", forksAt, messagesAt-1, func(b int) bool { return forked[b] })
}

// add adds the selected buckets to the picture, as one path.
func (v *mapView) add(class string, x, width int, marked func(int) bool) {
	var path strings.Builder
	for b := 0; b < v.Buckets; b++ {
		if !marked(b) {
			continue
		}
		from := b
		for b+1 < v.Buckets && marked(b+1) {
			b++
		}
		fmt.Fprintf(&path, "M%d %dh%dv%dh-%dz", x, from, width, b+1-from, width)
	}
	if path.Len() > 0 {
		v.Paths = append(v.Paths, mapPath{class, path.String()})
	}
}
