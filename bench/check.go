package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A Change is a ratio that two runs measured. Times of different runs are not
// compared: machines differ, and the same machine from hour to hour. Ratios that
// were taken side by side are, and so are bytes on disk: their ratio says against
// what they are by an empty Against, and is the bytes themselves.
type Change struct {
	Ratio  Ratio   `json:"now"`
	Before Ratio   `json:"before"`
	Factor float64 `json:"factor"`
	// Worse is set when the store lost ground beyond what the rounds of both runs
	// scatter.
	Worse bool `json:"worse"`
}

// worseAt is how much a ratio may grow before it counts, scatter aside.
const worseAt = 1.25

// Compare compares the ratios of the store, against whatever else was measured, in
// two runs.
func Compare(before, now *Report) []Change {
	type key struct {
		workload, archive, system, against, durability string
		size                                           int
	}
	keyOf := func(x Ratio) key { return key{x.Workload, x.Archive, x.System, x.Against, x.Durability, x.Size} }
	old := make(map[key]Ratio, len(before.Ratios))
	for _, x := range before.Ratios {
		old[keyOf(x)] = x
	}
	var all []Change
	for _, x := range now.Ratios {
		was, ok := old[keyOf(x)]
		if !ok || !isLineage(x.System) || isLineage(x.Against) && sizeIn(x.System) < sizeIn(x.Against) {
			continue
		}
		factor := x.Ratio / was.Ratio
		all = append(all, Change{Ratio: x, Before: was, Factor: factor, Worse: factor > worseAt && x.Low > was.High})
	}
	return append(all, compareBytes(before, now)...)
}

// bytesWorseAt is how much what is on disk may grow before it counts: it does not
// depend on the machine, and hardly on chance.
const bytesWorseAt = 1.05

// compareBytes compares what the store takes on disk in two runs.
func compareBytes(before, now *Report) []Change {
	type key struct {
		workload, system, archive string
		size                      int
	}
	keyOf := func(row Row) key { return key{row.Workload, row.System, row.Archive, row.Size} }
	onDisk := func(row Row) bool {
		return isLineage(row.System) && (row.Unit == unitBytes || row.Unit == unitPerItem) && row.Workload != workOpenMemory
	}
	old := make(map[key]Row)
	for _, row := range before.Rows {
		if onDisk(row) {
			old[keyOf(row)] = row
		}
	}
	asRatio := func(row Row) Ratio {
		return Ratio{Workload: row.Workload, Size: row.Size, Archive: row.Archive, System: row.System, Ratio: row.Value, Low: row.Low, High: row.High}
	}
	var all []Change
	for _, row := range now.Rows {
		if was, ok := old[keyOf(row)]; ok && onDisk(row) && was.Value > 0 {
			factor := row.Value / was.Value
			all = append(all, Change{Ratio: asRatio(row), Before: asRatio(was), Factor: factor, Worse: factor > bytesWorseAt})
		}
	}
	return all
}

// WriteChanges writes what became better or worse, for people.
func WriteChanges(w io.Writer, changes []Change) error {
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workload\tsize\tlineage against\tdurability\tbefore\tnow\tchange\t")
	for _, c := range changes {
		verdict := ""
		if c.Worse {
			verdict = " WORSE"
		}
		x := c.Ratio
		unit, against := unitRatio, x.Against
		if against == "" {
			unit, against = unitBytes, "(bytes)"
		}
		about := sizeText(x.Size)
		if x.Archive != "" {
			about = x.Archive
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%+.0f %%%s\t\n", x.Workload, about, against, x.Durability,
			figure(c.Before.Ratio, unit), figure(x.Ratio, unit), 100*(c.Factor-1), verdict)
	}
	return t.Flush()
}
