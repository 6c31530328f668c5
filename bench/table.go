package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable prints the report.
func (r *Report) WriteTable(w io.Writer) error {
	e := r.Environment
	fmt.Fprintf(w, "%s, %s/%s, %d cores%s, %s; %d rounds, messages of %d bytes, seed %d; took %v, load %.1f when it began\n",
		e.Time.Format("2006-01-02 15:04 MST"), e.OS, e.Arch, e.Cores, prefixed(" of ", e.CPU), e.Go, e.Rounds, e.MessageBytes, e.Seed,
		time.Duration(e.Seconds)*time.Second, e.Load)
	for _, name := range r.workloads() {
		if err := r.writeWorkload(w, name); err != nil {
			return err
		}
	}
	if err := r.writeGrowth(w); err != nil {
		return err
	}
	if err := r.WriteGoals(w); err != nil {
		return err
	}
	for i, s := range r.Skipped {
		if i == 0 {
			fmt.Fprintln(w, "\nNot measured:")
		}
		fmt.Fprintf(w, "  %s: %s\n", strings.Join(strings.Fields(s.Workload+" "+s.System+" "+s.Durability+" "+sizeText(s.Size)), " "), s.Why)
	}
	return nil
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func (r *Report) workloads() []string {
	var names []string
	for _, row := range r.Rows {
		if !slices.Contains(names, row.Workload) {
			names = append(names, row.Workload)
		}
	}
	return names
}

func (r *Report) writeWorkload(w io.Writer, name string) error {
	fmt.Fprintf(w, "\n%s\n", name)
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "size\tsystem\tdurability\tmedian\tquartiles\tcpu\tallocs\tgrowth of files\tagainst lineage\t")
	for _, row := range r.Rows {
		if row.Workload != name {
			continue
		}
		about := sizeText(row.Size)
		if row.Archive != "" {
			about = row.Archive
		}
		quartiles := ""
		if row.Rounds > 1 {
			quartiles = figure(row.Low, row.Unit) + " – " + figure(row.High, row.Unit)
		}
		if row.Noisy {
			quartiles += " noisy"
		}
		written := ""
		if row.WrittenBytes != 0 {
			written = figure(row.WrittenBytes, unitBytes)
		}
		cpu, allocs := "", ""
		if row.CPUNanos != 0 {
			cpu, allocs = figure(row.CPUNanos, unitNanos), strconv.FormatFloat(row.Allocations, 'f', -1, 64)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n",
			about, row.System, row.Durability, figure(row.Value, row.Unit), quartiles, cpu, allocs, written, r.againstLineage(row))
	}
	return t.Flush()
}

// againstLineage returns a row's ratio to this store.
func (r *Report) againstLineage(row Row) string {
	for _, x := range r.Ratios {
		if x.Workload == row.Workload && x.Size == row.Size && x.Archive == row.Archive && x.Durability == row.Durability &&
			x.System == row.System && x.Against == nameLineage {
			return figure(x.Ratio, unitRatio)
		}
	}
	return ""
}

func (r *Report) writeGrowth(w io.Writer) error {
	if len(r.Growth) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nhow cost grows: as size to the power of")
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', tabwriter.AlignRight)
	for _, g := range r.Growth {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s to %s\t%.2f\t\n", g.Workload, g.System, g.Durability, count(g.From), count(g.To), g.Exponent)
	}
	return t.Flush()
}

// WriteGoals prints the goals.
func (r *Report) WriteGoals(w io.Writer) error {
	if len(r.Goals) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\ngoals")
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	for _, g := range r.Goals {
		sign, verdict := "≤", "reached"
		if g.AtLeast {
			sign = "≥"
		}
		if !g.Reached {
			verdict = "NOT reached"
		}
		if g.Unsure {
			verdict += ", within the noise"
		}
		spread := ""
		if g.Low != g.High {
			spread = fmt.Sprintf("%.2f – %.2f", g.Low, g.High)
		}
		fmt.Fprintf(t, "  %s\t%.2f\t%s\t%s %g\t%s\t%s\n", g.Goal, g.Ratio, spread, sign, g.Limit, verdict, g.Measured)
	}
	return t.Flush()
}

// figure formats a value in its unit for people.
func figure(v float64, unit string) string {
	switch unit {
	case unitNanos:
		switch {
		case v < 1e3:
			return digits(v) + " ns"
		case v < 1e6:
			return digits(v/1e3) + " µs"
		case v < 1e9:
			return digits(v/1e6) + " ms"
		}
		return digits(v/1e9) + " s"
	case unitBytes:
		switch a := math.Abs(v); {
		case a < 1e4:
			return digits(v) + " B"
		case a < 1e7:
			return digits(v/1e3) + " kB"
		case a < 1e10:
			return digits(v/1e6) + " MB"
		}
		return digits(v/1e9) + " GB"
	case unitPerSec:
		return count(int(v)) + "/s"
	case unitPerItem:
		return digits(v) + " B"
	case unitRatio:
		return digits(v) + " ×"
	}
	return digits(v) + " " + unit
}

// digits formats a number with three significant digits.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// count formats a number with thousands separators.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func sizeText(n int) string {
	if n == 0 {
		return ""
	}
	return count(n)
}

// isLineage reports whether a contender is this store, at any size.
func isLineage(system string) bool {
	return system == nameLineage || strings.HasPrefix(system, nameLineage+", ")
}

// sizeIn returns the number in a contender's name, such as "lineage, 10,000 messages".
func sizeIn(system string) int {
	n := 0
	for _, r := range system {
		if r >= '0' && r <= '9' {
			n = 10*n + int(r-'0')
		}
	}
	return n
}
