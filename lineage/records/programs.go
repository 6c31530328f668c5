package records

// Completion is a script under --json.
type Completion struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

func (*Completion) RecordType() string { return "completion" }

// Error is printed on standard error under --json.
type Error struct {
	// Code is the exit code.
	Code  int    `json:"code"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func (*Error) RecordType() string { return "error" }

// Warning is printed on standard error under --json: a problem that does not end the
// command.
type Warning struct {
	Warning string `json:"warning"`
}

func (*Warning) RecordType() string { return "warning" }

// Version is the version of the program.
type Version struct {
	// Version is the version of the module, or "unreleased" if the build has none.
	Version string `json:"version"`
	// Revision is the commit that the program was built from, if known. Modified is set if it was built with
	// uncommitted changes.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (*Version) RecordType() string { return "version" }
