package bench

import (
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// WritePlots writes the plots of the report as SVG files to a directory and returns their names.
func (r *Report) WritePlots(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var names []string
	save := func(name string, write func(io.Writer) error) error {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		names = append(names, name)
		return errors.Join(write(f), f.Close())
	}
	for _, p := range r.plots() {
		if len(p.lines) == 0 {
			continue
		}
		if err := save(p.file, p.write); err != nil {
			return names, err
		}
	}
	if p := r.archivesPlot(); !p.empty() {
		err := save("archives.svg", p.write)
		return names, err
	}
	return names, nil
}

// plot is a plot of lines with logarithmic axes.
type plot struct {
	file, title, x, y string
	unit              string
	lines             []line
}

type line struct {
	name   string
	xs, ys []float64
}

func (r *Report) plots() []plot {
	return []plot{
		r.plot("extend.svg", "Cost of adding one message, normal durability", "messages in the history", "time", workExtend, normal),
		r.plot("extend-full.svg", "Cost of adding one message, full durability", "messages in the history", "time", workExtend, full),
		r.plot("fork.svg", "Cost of a fork, normal durability", "messages in the history", "time", workFork, normal),
		r.plot("read.svg", "Cost of reading a whole history", "messages in the history", "time", workRead, normal),
		r.plot("fork-bytes.svg", "Bytes on disk: 100 messages, and forks with one message more each", "forks", "bytes", workForkBytes, ""),
	}
}

func (r *Report) plot(file, title, x, y, workload, durability string) plot {
	p := plot{file: file, title: title, x: x, y: y}
	for _, row := range r.Rows {
		if row.Workload != workload || row.Durability != durability || row.Value <= 0 {
			continue
		}
		p.unit = row.Unit
		i := slices.IndexFunc(p.lines, func(l line) bool { return l.name == row.System })
		if i < 0 {
			i = len(p.lines)
			p.lines = append(p.lines, line{name: row.System})
		}
		l := &p.lines[i]
		l.xs, l.ys = append(l.xs, float64(row.Size)), append(l.ys, row.Value)
	}
	return p
}

// Sizes of a plot, in pixels.
const (
	plotWidth, plotHeight     = 760, 420
	marginLeft, marginRight   = 84, 130
	marginTop, marginBottom   = 48, 56
	plotBackground, plotInk   = "#ffffff", "#24292f"
	plotGrid, plotLineStrokes = "#d8dee4", 2.5
)

// colours of lines, the first for this store. They also differ in lightness.
var colours = []string{"#0b6bcb", "#8a8f98", "#c2410c", "#15803d", "#7c3aed", "#b45309", "#be185d", "#0f766e", "#4d5b00"}

func (p *plot) write(w io.Writer) error {
	var all strings.Builder
	out := func(format string, args ...any) { fmt.Fprintf(&all, format+"\n", args...) }
	xLow, xHigh := decades(p.lines, func(l line) []float64 { return l.xs })
	yLow, yHigh := decades(p.lines, func(l line) []float64 { return l.ys })
	px := func(v float64) float64 {
		return marginLeft + (math.Log10(v)-xLow)/(xHigh-xLow)*(plotWidth-marginLeft-marginRight)
	}
	py := func(v float64) float64 {
		return plotHeight - marginBottom - (math.Log10(v)-yLow)/(yHigh-yLow)*(plotHeight-marginTop-marginBottom)
	}
	out(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="%s">`, plotWidth, plotHeight, plotInk)
	out(`<rect width="%d" height="%d" fill="%s"/>`, plotWidth, plotHeight, plotBackground)
	out(`<text x="%d" y="26" font-size="16" font-weight="bold">%s</text>`, marginLeft, html.EscapeString(p.title))
	for e := xLow; e <= xHigh; e++ {
		x := px(math.Pow(10, e))
		out(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>`, x, marginTop, x, plotHeight-marginBottom, plotGrid)
		out(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, x, plotHeight-marginBottom+20, count(int(math.Pow(10, e))))
	}
	for e := yLow; e <= yHigh; e++ {
		y := py(math.Pow(10, e))
		out(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s"/>`, marginLeft, y, plotWidth-marginRight, y, plotGrid)
		out(`<text x="%d" y="%.1f" text-anchor="end">%s</text>`, marginLeft-8, y+4, html.EscapeString(figure(math.Pow(10, e), p.unit)))
	}
	out(`<text x="%d" y="%d" text-anchor="middle">%s</text>`, (marginLeft+plotWidth-marginRight)/2, plotHeight-14, html.EscapeString(p.x))
	taken := []float64{}
	for i, l := range p.lines {
		colour := colours[i%len(colours)]
		var points []string
		for k := range l.xs {
			points = append(points, fmt.Sprintf("%.1f,%.1f", px(l.xs[k]), py(l.ys[k])))
		}
		out(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%.1f"/>`, strings.Join(points, " "), colour, plotLineStrokes)
		for k := range l.xs {
			out(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`, px(l.xs[k]), py(l.ys[k]), colour)
		}
		last := len(l.xs) - 1
		y := apart(py(l.ys[last])+4, taken)
		taken = append(taken, y)
		out(`<text x="%.1f" y="%.1f" fill="%s">%s</text>`, px(l.xs[last])+8, y, colour, html.EscapeString(l.name))
	}
	out(`</svg>`)
	_, err := io.WriteString(w, all.String())
	return err
}

// labelHeight is the minimum distance of labels.
const labelHeight = 14

// apart moves a label down until it overlaps no other.
func apart(y float64, taken []float64) float64 {
	for _, t := range slices.Sorted(slices.Values(taken)) {
		if math.Abs(t-y) < labelHeight {
			y = t + labelHeight
		}
	}
	return y
}

// decades returns the powers of ten that enclose the values of lines.
func decades(lines []line, of func(line) []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for _, v := range of(l) {
			low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
		}
	}
	if high == low {
		high++
	}
	return low, high
}
