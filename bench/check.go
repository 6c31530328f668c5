package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Change is a ratio measured in two runs. Times of different runs cannot be compared, because
// machines differ, even from hour to hour. Interleaved ratios can, and so can bytes on disk, for
// which Against is empty and Ratio is the number of bytes.
type Change struct {
	Ratio  Ratio   `json:"now"`
	Before Ratio   `json:"before"`
	Factor float64 `json:"factor"`
	// Worse is set if the store became slower or larger by more than the scatter of both runs.
	Worse bool `json:"worse"`
}

// worseAt is the growth of a ratio that counts as worse, in addition to scatter.
const worseAt = 1.25

// Compare compares the ratios of the store to other systems in two runs.
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

// bytesWorseAt is the growth of bytes on disk that counts as worse. They do not depend on the
// machine, and hardly on chance.
const bytesWorseAt = 1.05

// compareBytes compares the bytes on disk in two runs.
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

// WriteChanges prints what became better or worse.
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
