package bench

import "time"

// Report is what a run measured.
type Report struct {
	Environment Environment `json:"environment"`
	Rows        []Row       `json:"rows"`
	Ratios      []Ratio     `json:"ratios"`
	Growth      []Growth    `json:"growth"`
	Goals       []Goal      `json:"goals"`
	// Skipped says what was not measured and why.
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Environment is where a run was made.
type Environment struct {
	Time         time.Time `json:"time"`
	Version      string    `json:"version"`
	Go           string    `json:"go"`
	OS           string    `json:"os"`
	Arch         string    `json:"arch"`
	CPU          string    `json:"cpu,omitempty"`
	Cores        int       `json:"cores"`
	MemoryBytes  uint64    `json:"memory_bytes,omitempty"`
	Seed         uint64    `json:"seed"`
	Rounds       int       `json:"rounds"`
	MessageBytes int       `json:"message_bytes"`
	// Load is how many processes wanted a core when the run began: above 0, others
	// worked here too. Seconds is how long the run took.
	Load    float64 `json:"load,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Row is one measurement of one system.
type Row struct {
	Workload   string `json:"workload"`
	System     string `json:"system"`
	Durability string `json:"durability,omitempty"`
	// Size is what cost may depend on: the length of the history, the depth of
	// forks; what it is follows from the workload.
	Size int `json:"size,omitempty"`
	// Archive is the one that was imported.
	Archive string `json:"archive,omitempty"`
	// Value is the median in Unit, Low and High the quartiles.
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Of one operation: processor time of the whole process, what was allocated,
	// and by how many bytes the files grew. Time and memory of systems that work in
	// another process are not known.
	CPUNanos     float64 `json:"cpu_ns,omitempty"`
	Allocations  float64 `json:"allocations,omitempty"`
	AllocBytes   float64 `json:"alloc_bytes,omitempty"`
	WrittenBytes float64 `json:"written_bytes,omitempty"`
	// Rounds and Operations in each.
	Rounds     int `json:"rounds"`
	Operations int `json:"operations"`
	// Noisy is set when the quartiles are far apart.
	Noisy bool `json:"noisy,omitempty"`
}

// Ratio compares two rows of one workload: the median of the rounds' ratios.
type Ratio struct {
	Workload string `json:"workload"`
	Size     int    `json:"size,omitempty"`
	Archive  string `json:"archive,omitempty"`
	System   string `json:"system"`
	Against  string `json:"against"`
	// Durability is the same on both sides.
	Durability string  `json:"durability,omitempty"`
	Ratio      float64 `json:"ratio"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
}

// Growth is how a system's cost grows with the size: as its power.
type Growth struct {
	Workload   string  `json:"workload"`
	System     string  `json:"system"`
	Durability string  `json:"durability,omitempty"`
	From       int     `json:"from"`
	To         int     `json:"to"`
	Exponent   float64 `json:"exponent"`
}

// Skipped is something that was not measured.
type Skipped struct {
	Workload string `json:"workload,omitempty"`
	System   string `json:"system,omitempty"`
	// Durability is set where the system was measured at the other.
	Durability string `json:"durability,omitempty"`
	Size       int    `json:"size,omitempty"`
	Why        string `json:"why"`
}
