package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// scale has the sizes of a picture in pixels: the height of a row, the distance of lanes, and the position of the
// first lane. If the lanes are wider than most together, their distance shrinks to at least least.
type scale struct{ row, lane, start, most, least int }

// graphView is a part of the graph of a thread.
type graphView struct {
	*subject
	Rows []*graphRow
	// Lines are the lines of the picture.
	Lines         []graphLine
	Width, Height int
	Filter        string
	// From is the number of the first row and Total the number of all rows. Next and Before are the addresses of the
	// adjacent parts, or empty.
	From, Total  int
	Next, Before string
	// None is set if nothing has the requested name.
	None bool
	// Contexts are the contexts of the thread for the script, or empty if there are too many.
	Contexts []string
}

// graphRow is a row of the graph: a message, and the number of messages left out before it.
type graphRow struct {
	X, Y           int
	Color          int
	Href           string
	Speaker, Class string
	Text           string
	Position       uint64
	Span           lineage.SpanRef
	Folded         uint64
	Hidden         int
	Labels         []graph.Label
	Current        bool
	// On is set if the message is in the history that is displayed beside the graph.
	On bool
	// Number is the index of the message among the Of messages after the same one. Of is 0 if it is the only one.
	Number, Of int
	// Merged is set for a copy made by a merge. from is the original.
	Merged bool

	from, before lineage.SpanRef
	// several is set if the message may be one of several.
	several bool
}

type graphLine struct {
	Path  string
	Color int
	// Merge is set for a line from an original to its copy.
	Merge bool
}

// sayAll adds the texts of the messages to the rows, and the lines of merges. It removes rows whose messages were
// collected in the meantime.
func (p *Page) sayAll(ctx context.Context, v *graphView) error {
	shown := v.Rows
	v.Rows = nil
	at := make(map[lineage.SpanRef]*graphRow, len(shown))
	for _, row := range shown {
		err := p.say(ctx, row)
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		v.Rows = append(v.Rows, row)
		at[row.Span] = row
	}
	for _, row := range v.Rows {
		if from := at[row.from]; row.Merged && from != nil {
			middle := (from.Y + row.Y) / 2
			v.Lines = append(v.Lines, graphLine{Path: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", from.X, from.Y, from.X, middle, row.X, middle, row.X, row.Y), Color: from.Color, Merge: true})
		}
	}
	return nil
}

// draw draws the rows of a graph, starting at a row, without the texts of the messages.
func (v *graphView) draw(g *graph.Graph, from uint64) {
	o := graph.Options{Lanes: lanes}
	if v.Filter != "" {
		want := strings.ToLower(v.Filter)
		o.Want = func(l graph.Label) bool { return strings.Contains(strings.ToLower(l.String()), want) }
	}
	d := g.Draw(o)
	v.None = o.Want != nil && !slices.ContainsFunc(labelsOf(g), o.Want)
	v.Contexts = contextsOf(g)
	v.Total = len(d.Rows)
	v.From = int(min(from, uint64(v.Total)))
	end := min(v.From+rows, v.Total)
	v.picture(d, whole, end)
	for i, row := range v.Rows {
		at := &d.Rows[v.From+i]
		n := at.Before().Followers()
		row.several = n > 1 && n <= maxRetries || at.Root && len(g.Roots) > 1
	}
	href := func(from int) string {
		return "/t/" + v.ID + "/graph?" + url.Values{"name": {v.Filter}, "from": {fmt.Sprint(from)}}.Encode()
	}
	if end < v.Total {
		v.Next = href(end)
	}
	if v.From > 0 {
		v.Before = href(max(0, v.From-rows))
	}
}

// labelsOf returns all labels of a graph.
func labelsOf(g *graph.Graph) (all []graph.Label) {
	for _, labels := range g.Labels {
		all = append(all, labels...)
	}
	return all
}

// contextsOf returns the contexts that a graph has labels for, none if there are too many.
func contextsOf(g *graph.Graph) (contexts []string) {
	for _, l := range labelsOf(g) {
		if !l.Context.IsZero() {
			contexts = append(contexts, l.Context.String())
		}
	}
	if len(contexts) > maxContexts {
		return nil
	}
	slices.Sort(contexts)
	return contexts
}

// picture draws the rows from v.From to end.
func (v *graphView) picture(d *graph.Drawing, s scale, end int) {
	distance := min(s.lane, max(s.least, s.most/max(d.Lanes, 1)))
	y := func(row int) int { return (row-v.From)*s.row + s.row/2 }
	x := func(row int) int { return d.Rows[row].Lane*distance + s.start }
	for _, e := range d.Edges {
		if e.To < v.From || e.From >= end {
			continue
		}
		v.Lines = append(v.Lines, graphLine{Path: pathOf(x(e.From), y(e.From), x(e.To), y(e.To), s.row), Color: d.Rows[e.To].Lane % colors})
	}
	widest := 0
	for i := v.From; i < end; i++ {
		row := newGraphRow(v.ID, &d.Rows[i])
		row.X, row.Y = x(i), y(i)
		widest = max(widest, row.X)
		v.Rows = append(v.Rows, row)
	}
	v.Width, v.Height = widest+s.start, (end-v.From)*s.row
}

// colors is the number of colors of lanes.
const colors = 8

// pathOf returns the SVG path from a message to a later one. It is straight within a lane; otherwise it changes the
// lane right below the first message.
func pathOf(x1, y1, x2, y2, rowHeight int) string {
	if x1 == x2 {
		return fmt.Sprintf("M%d %dV%d", x1, y1, y2)
	}
	turn := min(y1+rowHeight, y2)
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %dV%d", x1, y1, x1, (y1+turn)/2+4, x2, (y1+turn)/2-4, x2, turn, y2)
}

// newGraphRow returns a row without the text of its message.
func newGraphRow(thread string, d *graph.Row) *graphRow {
	row := &graphRow{
		Color: d.Lane % colors, Position: d.Position(), Span: d.Ref(), Folded: d.Folded, Hidden: d.Hidden, Labels: d.Labels, Current: d.Current,
		before: d.Before().Ref(),
	}
	target := &subject{ID: thread, In: d.Line.At(d.Line.Last).Ref().String()}
	for _, l := range d.Labels {
		if !l.Context.IsZero() {
			target.In = l.Context.String()
		}
	}
	if d.Line.Main >= d.At { // the message is in the active history
		target.In = ""
	}
	row.Href = target.Href(row.Position)
	return row
}

// say adds the start of its message to a row.
func (p *Page) say(ctx context.Context, row *graphRow) error {
	entries, err := p.o.Store.Span(ctx, row.Span)
	if err != nil {
		return err
	}
	message, err := p.o.Store.Transcribe(ctx, entries[0], preview)
	if err != nil {
		return err
	}
	row.Speaker, row.Text = transcript.Line(message)
	row.Text, row.Class = short(words(row.Text), 200), render.RoleClass(message.Role)
	row.from, row.Merged = entries[0].MergedFrom()
	if row.Speaker == "tool" { // results alone, whatever role their format gives them
		row.Class = row.Speaker
	}
	return nil
}

const (
	// rows and lanes are the maximum number of rows and lanes of a graph on a page.
	rows  = 300
	lanes = 40
	// maxContexts limits the number of contexts that are sent to the script. If there are more, the script reloads
	// the graph after each append.
	maxContexts = 1000
)

var whole = scale{row: 30, lane: 16, start: 14, most: 240, least: 6}

// maxRetries is the maximum number of versions of a message that are counted and lead to one another.
const maxRetries = 200
