package bench

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// archivesPlot shows the size of each archive relative to its raw files: a row per archive, a dot
// per way to store it.
type archivesPlot struct {
	archives []string
	series   []line // ys are fractions of the raw size, by archive; 0 if not measured
}

func (r *Report) archivesPlot() archivesPlot {
	raw := map[string]float64{}
	var p archivesPlot
	for _, row := range r.Rows {
		if row.Workload == workDedupe && row.System == dedupeRaw && row.Value > 0 {
			raw[row.Archive] = row.Value
			p.archives = append(p.archives, row.Archive)
		}
	}
	for _, system := range []string{dedupePacked, dedupeZstd, dedupeFresh, nameSQLite} {
		l := line{name: system, ys: make([]float64, len(p.archives))}
		for _, row := range r.Rows {
			if i := slices.Index(p.archives, row.Archive); row.Workload == workDedupe && row.System == system && i >= 0 {
				l.ys[i] = row.Value / raw[row.Archive]
			}
		}
		if slices.Max(append(l.ys, 0)) > 0 {
			p.series = append(p.series, l)
		}
	}
	return p
}

func (p *archivesPlot) empty() bool { return len(p.archives) == 0 || len(p.series) == 0 }

func (p *archivesPlot) write(w io.Writer) error {
	const left, right, top, row, bottom = 190, 30, 78, 30, 56
	height := top + row*len(p.archives) + bottom
	low, high := 1.0, 1.0
	for _, l := range p.series {
		for _, y := range l.ys {
			if y > 0 {
				low, high = min(low, y), max(high, y)
			}
		}
	}
	ticks := sharesAround(low, high)
	low, high = ticks[0], ticks[len(ticks)-1]
	px := func(v float64) float64 { return left + math.Log(v/low)/math.Log(high/low)*(plotWidth-left-right) }
	var all strings.Builder
	out := func(format string, args ...any) { fmt.Fprintf(&all, format+"\n", args...) }
	out(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="%s">`, plotWidth, height, plotInk)
	out(`<rect width="%d" height="%d" fill="%s"/>`, plotWidth, height, plotBackground)
	out(`<text x="16" y="26" font-size="16" font-weight="bold">Archives on disk, everything included, against their raw files</text>`)
	x := 16.0
	for i, l := range p.series {
		out(`<circle cx="%.1f" cy="50" r="5" fill="%s"/>`, x+5, colours[i%len(colours)])
		out(`<text x="%.1f" y="54">%s</text>`, x+15, html.EscapeString(l.name))
		x += 40 + 7*float64(len(l.name))
	}
	for _, t := range ticks {
		width := 1
		if t == 1 {
			width = 2
		}
		out(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="%d"/>`, px(t), top-8, px(t), height-bottom, plotGrid, width)
		out(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, px(t), height-bottom+20, digits(t))
	}
	out(`<text x="%d" y="%d" text-anchor="middle">size, the raw files being 1</text>`, (left+plotWidth-right)/2, height-14)
	for i, archive := range p.archives {
		y := top + row*i + row/2
		out(`<text x="%d" y="%d" text-anchor="end">%s</text>`, left-12, y+4, html.EscapeString(archive))
		out(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`, left, y, plotWidth-right, y, plotGrid)
		for k, l := range slices.Backward(p.series) { // the first is drawn last
			if l.ys[i] > 0 {
				out(`<circle cx="%.1f" cy="%d" r="5" fill="%s"/>`, px(l.ys[i]), y, colours[k%len(colours)])
			}
		}
	}
	out(`</svg>`)
	_, err := io.WriteString(w, all.String())
	return err
}

// sharesAround returns the ticks 1, 2, 5 of each decade that enclose low and high.
func sharesAround(low, high float64) []float64 {
	var ticks []float64
	for e := math.Floor(math.Log10(low)); ; e++ {
		for _, m := range []float64{1, 2, 5} {
			t := m * math.Pow(10, e)
			if len(ticks) > 0 && ticks[0] <= low && t > low && ticks[len(ticks)-1] < low {
				ticks = ticks[len(ticks)-1:] // start at the nearest below
			}
			if ticks = append(ticks, t); t >= high && len(ticks) > 1 {
				return ticks
			}
		}
	}
}
