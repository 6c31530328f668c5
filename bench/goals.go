package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Goal is a target for the store, with the measured value.
type Goal struct {
	Goal string `json:"goal"`
	// Ratio is the measured value.
	Ratio float64 `json:"ratio"`
	Limit float64 `json:"limit"`
	// AtLeast is set if the limit is a minimum.
	AtLeast bool `json:"at_least,omitempty"`
	Reached bool `json:"reached"`
	// Measured describes the measurement.
	Measured string `json:"measured"`
	// Low and High are the quartiles, if there were rounds. Unsure is set if the limit lies between
	// them.
	Low    float64 `json:"low,omitempty"`
	High   float64 `json:"high,omitempty"`
	Unsure bool    `json:"unsure,omitempty"`
}

func (g Goal) judged() Goal {
	g.Reached = g.Ratio <= g.Limit
	if g.AtLeast {
		g.Reached = g.Ratio >= g.Limit
	}
	g.Unsure = g.Low < g.Limit && g.Limit < g.High
	return g
}

// goals compares measurements with targets. Targets that were not measured are omitted.
func goals(r *Report) []Goal {
	var all []Goal
	add := func(g Goal, ok bool) {
		if ok && !math.IsNaN(g.Ratio) {
			all = append(all, g.judged())
		}
	}
	add(r.worst("extend, normal durability, in bursts, against one bare write of the same bytes", 3, workExtend, normal))
	add(r.worst("extend, normal durability, sustained, against the same", 3, workExtendOn, normal))
	add(r.worst("extend, full durability, one writer, against bare write and sync of the same bytes", 1.3, workExtend, full))
	add(r.writersGoal())
	add(r.worst("fork, normal durability, in bursts, against one bare write of the same bytes", 2, workFork, normal))
	add(r.worst("fork, normal durability, sustained, against the same", 2, workForkOn, normal))
	add(r.between("fork of a long history against one of ten messages", 1.2, workLength))
	add(r.between("extend in the largest store against one of 10,000 messages", 1.5, workLargeStore))
	add(r.namesGoal())
	add(r.readGoal())
	add(r.importGoal())
	add(r.value("bytes beside content for a message, fresh, a thousand in a commit", 128, workBeside, 1))
	add(r.value("bytes beside content for a message, fresh, each in a commit of its own", 128, workBesideEach, 1))
	add(r.value("bytes beside content for a message, packed", 24, workPackedBeside, 1))
	for _, g := range r.archiveGoals() {
		add(g, true)
	}
	add(r.value("opening the largest store, milliseconds", 100, workOpen, 1e-6))
	add(r.value("memory after opening the largest store, MiB", 100, workOpenMemory, 1.0/(1<<20)))
	add(r.guestGoal("read a context as a guest, against the owner and two bare round trips", workGuestRead))
	add(r.guestGoal("extend as a guest, against the same", workGuestExtend))
	add(r.pair("8 processes, normal durability, against the documented SQLite schema", 5, true, workManyProcesses, normal, nameSQLite, nameLineage))
	add(r.pair("8 processes, full durability, against the same", 3, true, workManyProcesses, full, nameSQLite, nameLineage))
	for _, delay := range serverDelays {
		add(r.pair("Postgres, one writer, against one prepared single-row insert"+delayed(delay), 1.5, false, workServed(servedLone, delay), full, nameServed, nameRows))
		add(r.pair("Postgres, 4 processes of 16 writers, against the same writers inserting rows"+delayed(delay), 1, true, workServed(servedApart, delay), full, nameRows, nameServed))
	}
	add(r.walGoal())
	add(r.pair("Postgres, read a history, against the recursive query on the documented schema", 3, true, workServedRead, normal, namePostgres, nameServed))
	add(r.value("taking over the largest store, the slowest time, milliseconds", 1000, workTakeoverSlowest, 1e-6))
	return all
}

// worst is the largest ratio of the store to plain writes over all lengths.
func (r *Report) worst(goal string, limit float64, workload, durability string) (Goal, bool) {
	g := Goal{Goal: goal, Limit: limit}
	for _, x := range r.Ratios {
		if x.Workload == workload && x.System == nameLineage && x.Against == nameWrite && x.Durability == durability && x.Ratio > g.Ratio {
			g.Ratio, g.Low, g.High, g.Measured = x.Ratio, x.Low, x.High, "history of "+count(x.Size)+" messages"
			if workload == workExtendOn || workload == workForkOn {
				g.Measured = r.sustainedAt(workload, x.Size)
			}
		}
	}
	return g, g.Ratio > 0
}

// between is the ratio of the largest contender to the smallest.
func (r *Report) between(goal string, limit float64, workload string) (Goal, bool) {
	for _, x := range r.Ratios {
		if x.Workload == workload && isLineage(x.System) && x.System != x.Against && sizeIn(x.System) > sizeIn(x.Against) {
			return Goal{Goal: goal, Limit: limit, Ratio: x.Ratio, Low: x.Low, High: x.High, Measured: x.System + " against " + x.Against}, true
		}
	}
	return Goal{}, false
}

// namesGoal is the operation whose cost grows most with the number of branches and threads.
func (r *Report) namesGoal() (g Goal, ok bool) {
	few, many := math.MaxInt, 0
	for _, x := range r.Ratios {
		if strings.HasPrefix(x.Workload, workNames) {
			few, many = min(few, sizeIn(x.Against)), max(many, sizeIn(x.System))
		}
	}
	for _, x := range r.Ratios {
		operation, found := strings.CutPrefix(x.Workload, workNames)
		if found && sizeIn(x.Against) == few && sizeIn(x.System) == many && x.Ratio > g.Ratio {
			g, ok = Goal{
				Goal: "any operation among the most branches and threads against the same among the fewest", Limit: 2,
				Ratio: x.Ratio, Low: x.Low, High: x.High, Measured: operation + ", " + count(many) + " against " + count(few),
			}, true
		}
	}
	return g, ok
}

// writersGoal is the throughput of 64 writers relative to one.
func (r *Report) writersGoal() (Goal, bool) {
	for _, x := range r.Ratios {
		if x.Workload == workWriters && x.Durability == full && x.System == nameLineage+oneWriter && x.Against == nameLineage+manyWriters {
			return Goal{
				Goal: "extend, full durability, 64 writers against the throughput of one", Limit: 20, AtLeast: true,
				Ratio: x.Ratio, Low: x.Low, High: x.High, Measured: "64 histories in one store",
			}, true
		}
	}
	return Goal{}, false
}

// sustainedAt describes a sustained measurement.
func (r *Report) sustainedAt(workload string, times int) string {
	cpu := map[string]float64{}
	for _, row := range r.Rows {
		if row.Workload == workload && row.Size == times {
			cpu[row.System] = row.CPUNanos
		}
	}
	return fmt.Sprintf("%s in a row; %s of processor time each, background included, against %s",
		count(times), figure(cpu[nameLineage], unitNanos), figure(cpu[nameWrite], unitNanos))
}

// parts returns the total time of parts of an operation in nanoseconds, false if one was not
// measured.
func (r *Report) parts(workload string, names ...string) (sum float64, ok bool) {
	for _, name := range names {
		i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Workload == workload && row.System == name })
		if i < 0 {
			return 0, false
		}
		sum += r.Rows[i].Value
	}
	return sum, true
}

func (r *Report) readGoal() (Goal, bool) {
	for _, x := range r.Ratios {
		if x.Workload == workRead && x.System == nameSQLite && x.Against == nameLineage && x.Durability == normal && x.Size >= 100_000 {
			return Goal{
				Goal: "read a whole history against the recursive query on the documented SQLite schema", Limit: 20, AtLeast: true,
				Ratio: x.Ratio, Low: x.Low, High: x.High, Measured: "history of " + count(x.Size) + " messages",
			}, true
		}
	}
	return Goal{}, false
}

func (r *Report) importGoal() (Goal, bool) {
	for _, x := range r.Ratios {
		if x.Workload == workImport && x.System == importIntoSQLite && x.Against == importIntoLineage {
			return Goal{
				Goal: "import against a prepared, batched insert of the same messages into the documented SQLite schema", Limit: 5, AtLeast: true,
				Ratio: x.Ratio, Low: x.Low, High: x.High, Measured: count(x.Size) + " messages",
			}, true
		}
	}
	return Goal{}, false
}

// guestGoal is what an operation of a guest takes.
func (r *Report) guestGoal(goal, workload string) (Goal, bool) {
	guest, ok1 := r.parts(workload, nameGuest)
	least, ok2 := r.parts(workload, nameOwner, nameRoundTrip, nameRoundTrip)
	return Goal{Goal: goal, Limit: 1, Ratio: guest / least, Measured: "a Unix socket"}, ok1 && ok2
}

// pair is the ratio of two systems in a workload.
func (r *Report) pair(goal string, limit float64, atLeast bool, workload, durability, system, against string) (Goal, bool) {
	for _, x := range r.Ratios {
		if x.Workload == workload && x.Durability == durability && x.System == system && x.Against == against {
			g := Goal{Goal: goal, Limit: limit, AtLeast: atLeast, Ratio: x.Ratio, Low: x.Low, High: x.High, Measured: "one message per commit"}
			if x.Size > 0 {
				g.Measured = "history of " + count(x.Size) + " messages"
			}
			return g, true
		}
	}
	return Goal{}, false
}

// walGoal is what a message takes in the write-ahead log.
func (r *Report) walGoal() (Goal, bool) {
	for _, row := range r.Rows {
		if row.Workload == workServed(servedLone, 0) && row.System == nameServed {
			size := float64(r.Environment.MessageBytes)
			return Goal{Goal: "Postgres, bytes of write-ahead log for a message, against its size", Limit: 2, Ratio: row.WrittenBytes / size, Measured: "one message per commit"}, true
		}
	}
	return Goal{}, false
}

// value is the value of the store at the largest size.
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
	return Goal{Goal: goal, Limit: limit, Ratio: found.Value * scale, Low: found.Low * scale, High: found.High * scale, Measured: "store of " + count(found.Size) + " messages"}, true
}
