package bench

import (
	"fmt"
	"math"
)

// Goal is a figure that the store is to reach, and what was measured of it.
type Goal struct {
	Goal string `json:"goal"`
	// Ratio is what was measured, in Unit where it is not a ratio.
	Ratio float64 `json:"ratio"`
	Unit  string  `json:"unit,omitempty"`
	Limit float64 `json:"limit"`
	// AtLeast is set where the ratio must not be below the limit.
	AtLeast bool `json:"at_least,omitempty"`
	Reached bool `json:"reached"`
	// Measured says at what.
	Measured string `json:"measured"`
}

func (g Goal) judged() Goal {
	g.Reached = g.Ratio <= g.Limit
	if g.AtLeast {
		g.Reached = g.Ratio >= g.Limit
	}
	return g
}

// goals compares what was measured with what is to be reached. What was not
// measured has no goal in it.
func goals(r *Report) []Goal {
	var all []Goal
	add := func(g Goal, ok bool) {
		if ok && !math.IsNaN(g.Ratio) {
			all = append(all, g.judged())
		}
	}
	add(r.worst("extend, normal durability, against one bare write of the same bytes", 3, workExtend, normal))
	add(r.worst("extend, full durability, one writer, against bare write and sync of the same bytes", 1.3, workExtend, full))
	add(r.writersGoal())
	add(r.worst("fork, normal durability, against one bare write of the same bytes", 2, workFork, normal))
	add(r.between("fork of the longest history against the shortest", 1.2, workLength))
	add(r.between("extend in the largest store against one of 10,000 messages", 1.5, workLargeStore))
	add(r.readGoal())
	add(r.importGoal())
	add(r.value("bytes beside content for a message, fresh", 128, workBeside, 1))
	add(r.value("bytes beside content for a message, packed: of the index alone", 24, workPacked, 1))
	for _, g := range r.archiveGoals() {
		add(g, true)
	}
	add(r.value("opening the largest store, milliseconds", 100, workOpen, 1e-6))
	add(r.value("memory after opening the largest store, MiB", 100, workOpenMemory, 1.0/(1<<20)))
	return all
}

// worst is the greatest ratio of the store to the bare writes over all lengths.
func (r *Report) worst(goal string, limit float64, workload, durability string) (Goal, bool) {
	g := Goal{Goal: goal, Limit: limit}
	for _, x := range r.Ratios {
		if x.Workload == workload && x.System == nameLineage && x.Against == nameWrite && x.Durability == durability && x.Ratio > g.Ratio {
			g.Ratio, g.Measured = x.Ratio, "history of "+count(x.Size)+" messages"
		}
	}
	return g, g.Ratio > 0
}

// between is the ratio of the last of two contenders to the first.
func (r *Report) between(goal string, limit float64, workload string) (Goal, bool) {
	for _, x := range r.Ratios {
		if x.Workload == workload && isLineage(x.System) && x.System != x.Against && sizeIn(x.System) > sizeIn(x.Against) {
			return Goal{Goal: goal, Limit: limit, Ratio: x.Ratio, Measured: x.System + " against " + x.Against}, true
		}
	}
	return Goal{}, false
}

func (r *Report) writersGoal() (Goal, bool) {
	for _, x := range r.Ratios {
		if x.Workload == "writers" && x.Durability == full && x.System == nameLineage+", 1 writer" {
			return Goal{
				Goal: "extend, full durability, 64 writers against the throughput of one", Limit: 20, AtLeast: true,
				Ratio: x.Ratio, Measured: "64 histories in one store",
			}, true
		}
	}
	return Goal{}, false
}

func (r *Report) readGoal() (g Goal, ok bool) {
	for _, x := range r.Ratios {
		if x.Workload == workRead && x.System == nameSQLite && x.Against == nameLineage && x.Durability == normal && x.Size >= 100_000 && !ok {
			g, ok = Goal{
				Goal: "read a whole history against the recursive query on the documented SQLite schema", Limit: 20, AtLeast: true,
				Ratio: x.Ratio, Measured: "history of " + count(x.Size) + " messages",
			}, true
		}
	}
	return g, ok
}

func (r *Report) importGoal() (Goal, bool) {
	for _, x := range r.Ratios {
		if x.Workload == workImport && x.System == importIntoSQLite && x.Against == importIntoLineage {
			return Goal{
				Goal: "import against a prepared, batched insert of the same messages into the documented SQLite schema", Limit: 5, AtLeast: true,
				Ratio: x.Ratio, Measured: fmt.Sprintf("%s messages", count(x.Size)),
			}, true
		}
	}
	return Goal{}, false
}

// value is what was measured of the store at the greatest size.
func (r *Report) value(goal string, limit float64, workload string, scale float64) (Goal, bool) {
	var found *Row
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Workload == workload && row.System == nameLineage && (found == nil || row.Size >= found.Size) {
			found = row
		}
	}
	if found == nil {
		return Goal{}, false
	}
	return Goal{Goal: goal, Limit: limit, Ratio: found.Value * scale, Measured: "store of " + count(found.Size) + " messages"}, true
}
