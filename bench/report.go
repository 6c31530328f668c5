package bench

import "time"

// Report is the result of a run.
type Report struct {
	Environment Environment `json:"environment"`
	Rows        []Row       `json:"rows"`
	Ratios      []Ratio     `json:"ratios"`
	Growth      []Growth    `json:"growth"`
	Goals       []Goal      `json:"goals"`
	// Skipped lists what was not measured and why.
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Environment describes the machine and program of a run.
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
	// Load is the load average at the start: above 0, other processes were running. Seconds is the
	// duration of the run.
	Load    float64 `json:"load,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Row is a measurement of a system.
type Row struct {
	Workload   string `json:"workload"`
	System     string `json:"system"`
	Durability string `json:"durability,omitempty"`
	// Size is what the cost may depend on, such as the length of the history or the depth of forks,
	// depending on the workload.
	Size int `json:"size,omitempty"`
	// Archive is the imported archive.
	Archive string `json:"archive,omitempty"`
	// Value is the median in Unit, Low and High are the quartiles.
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Per operation: CPU time of the whole process, allocations, and growth of the files. CPU time
	// and memory are unknown for systems in another process.
	CPUNanos     float64 `json:"cpu_ns,omitempty"`
	Allocations  float64 `json:"allocations,omitempty"`
	AllocBytes   float64 `json:"alloc_bytes,omitempty"`
	WrittenBytes float64 `json:"written_bytes,omitempty"`
	// Rounds and Operations per round.
	Rounds     int `json:"rounds"`
	Operations int `json:"operations"`
	// Noisy is set if the quartiles are far apart.
	Noisy bool `json:"noisy,omitempty"`
}

// Ratio compares two rows of a workload: the median of the rounds' ratios.
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

// Growth is the exponent with which a system's cost grows with the size.
type Growth struct {
	Workload   string  `json:"workload"`
	System     string  `json:"system"`
	Durability string  `json:"durability,omitempty"`
	From       int     `json:"from"`
	To         int     `json:"to"`
	Exponent   float64 `json:"exponent"`
}

// Skipped is a measurement that was skipped.
type Skipped struct {
	Workload string `json:"workload,omitempty"`
	System   string `json:"system,omitempty"`
	// Durability is set if only this durability was skipped.
	Durability string `json:"durability,omitempty"`
	Size       int    `json:"size,omitempty"`
	Why        string `json:"why"`
}
