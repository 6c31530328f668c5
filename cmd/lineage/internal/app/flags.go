package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/filters"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// JSONFlag is a flag whose value is JSON, nil if it is empty.
type JSONFlag []byte

// ErrNotJSON is returned for a flag that needs JSON.
var ErrNotJSON = errors.New("not valid JSON")

func (f *JSONFlag) String() string { return string(*f) }

func (*JSONFlag) Type() string { return "string" }

func (f *JSONFlag) Set(text string) error {
	if *f = nil; text == "" {
		return nil
	}
	if !json.Valid([]byte(text)) {
		return ErrNotJSON
	}
	*f = JSONFlag(text)
	return nil
}

// TimeForms are the forms of a TimeFlag, for the help of commands.
const TimeForms = "2026-01-31, today, yesterday, 7d for seven days ago, or as in RFC 3339"

// TimeFlag is a flag for a time, zero if it is empty. The time is local if it was given without a zone.
type TimeFlag struct {
	time.Time
	local bool
}

func (*TimeFlag) String() string { return "" } // there is no default

func (*TimeFlag) Type() string { return "string" }

func (f *TimeFlag) Set(text string) (err error) {
	if f.Time = (time.Time{}); text == "" {
		return nil
	}
	if ago, ok := parseAgo(text); ok {
		f.Time, f.local = time.Now().Add(-ago), false
		return nil
	}
	if day, named := filters.Named(text, time.Now()); named {
		f.Time, f.local = day, true
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04"} {
		if f.Time, err = time.ParseInLocation(layout, text, time.Local); err == nil {
			f.local = layout != time.RFC3339Nano
			return nil
		}
	}
	return errors.New("must be a day such as 2026-01-31, today or yesterday, a time such as 2026-01-31T18:00 or 2026-01-31T18:00:00Z, or 7d for seven days ago")
}

// parseAgo parses a number of hours, days or weeks, such as 7d.
func parseAgo(text string) (ago time.Duration, ok bool) {
	units := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	last := len(text) - 1
	n, err := strconv.ParseUint(text[:last], 10, 64)
	unit, known := units[text[last]]
	return time.Duration(n) * unit, err == nil && known && n <= 10_000
}

// In returns the time in a zone if it was given without one.
func (f *TimeFlag) In(zone *time.Location) time.Time {
	t := f.Time
	if t.IsZero() || !f.local {
		return t
	}
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
}

// MetadataFlag is a flag for fields of metadata. It may be repeated. A value that is not JSON is a string.
type MetadataFlag []lineage.MetadataIs

func (*MetadataFlag) String() string { return "" }

func (*MetadataFlag) Type() string { return "stringArray" }

func (f *MetadataFlag) Set(pair string) error {
	key, text, ok := strings.Cut(pair, "=")
	if !ok {
		return errors.New("must be KEY=VALUE")
	}
	filter := lineage.MetadataIs{Key: key, Value: json.RawMessage(text)}
	if _, ok := filter.Scalar(); !ok {
		filter.Value, _ = json.Marshal(text) // strings always marshal
	}
	*f = append(*f, filter)
	return nil
}

// SessionFlags select threads by properties of the agent's session.
type SessionFlags struct{ agent, project, gitBranch, machine, model string }

// Add binds the flags.
func (o *SessionFlags) Add(f *pflag.FlagSet) {
	f.StringVar(&o.agent, "agent", "", "only sessions of this agent, such as claude-code or codex")
	f.StringVar(&o.project, "project", "", "only sessions that began in this folder; . is the current one")
	f.StringVar(&o.gitBranch, "git-branch", "", "only sessions that began on this branch of git")
	f.StringVar(&o.machine, "machine", "", "only sessions that were found on this machine")
	f.StringVar(&o.model, "model", "", "only sessions whose last answer is of this model")
}

// ProjectPath returns the full path of a project. A folder of another system is returned unchanged.
func ProjectPath(project string) (string, error) {
	if filepath.IsAbs(project) || strings.Contains(project, `:\`) {
		return project, nil
	}
	return filepath.Abs(project)
}

// Given reports whether a flag was given.
func (o *SessionFlags) Given() bool { return *o != SessionFlags{} }

// Doubt returns what may be wrong with the flags if no thread matches them, or "". It is given the names of agents.
func (o *SessionFlags) Doubt(agents []string) string { return Doubt(o.agent, o.project, agents) }

// Doubt returns what may be wrong with an agent and a project if nothing matches them, or "". It is given the names of agents.
func Doubt(agent, project string, agents []string) string {
	if agent != "" && !slices.Contains(agents, agent) {
		return fmt.Sprintf("the names of agents are %s", strings.Join(agents, ", "))
	}
	if path, err := ProjectPath(project); err == nil && project != "" && path != project {
		return "--project is a folder, here " + screen.Line(path)
	}
	return ""
}

// Metadata returns the metadata that the threads must have.
func (o *SessionFlags) Metadata() (flag MetadataFlag, err error) {
	project := o.project
	if project != "" {
		if project, err = ProjectPath(project); err != nil {
			return nil, err
		}
	}
	for _, m := range []struct{ key, value string }{
		{archive.KeyAgent, o.agent}, {archive.KeyProject, project}, {archive.KeyGitBranch, o.gitBranch},
		{archive.KeyMachine, o.machine}, {archive.KeyModel, o.model},
	} {
		if m.value != "" {
			text, _ := json.Marshal(m.value) // strings always marshal
			flag = append(flag, lineage.MetadataIs{Key: m.key, Value: text})
		}
	}
	return flag, nil
}

// Ordinal reads a number from 1 on. An empty text is 0.
func Ordinal(text string) (n uint64, ok bool) {
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return n, err == nil && n > 0
}

// FlagFailure explains what is wrong with the value of a flag.
func FlagFailure(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return &UsageError{err}
	}
	name, value := wrong.GetFlag().Name, wrong.GetValue()
	switch {
	case errors.Is(err, strconv.ErrRange):
		return Usagef("--%s %q: the number is too large", name, value)
	case errors.Is(err, ErrNotJSON):
		return Usagef("--%s: %w", name, ErrNotJSON)
	}
	if values, known := valuesOfFlags[wrong.GetFlag().Value.Type()]; known {
		return Usagef("--%s %q: must be %s", name, value, values)
	}
	return Usagef("--%s %q: %w", name, value, errors.Unwrap(wrong))
}

// valuesOfFlags describe the possible values of flags by type.
var valuesOfFlags = map[string]string{
	"uint64": "a whole number, and not below 0", "int": "a whole number",
	"duration": "a time with its unit, such as 3s or 1m30s", "bool": "true or false",
}

// OverrideFlags are the flags for the overrides of a context.
type OverrideFlags struct {
	model, system string
	overrides     JSONFlag
}

// Build returns the overrides.
func (o *OverrideFlags) Build() lineage.Overrides {
	overrides := lineage.Overrides{JSON: o.overrides}
	if o.model != "" {
		overrides.Model = &o.model
	}
	if o.system != "" {
		overrides.SystemPrompt = &o.system
	}
	return overrides
}

// None returns an error if any flag is set. It is for databases, which keep no overrides.
func (o *OverrideFlags) None() error {
	if o.model != "" || o.system != "" || o.overrides != nil {
		return Usagef("--model, --system and --overrides are not kept in a database")
	}
	return nil
}

// Bind adds the flags to a command.
func (o *OverrideFlags) Bind(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "the model that is asked")
	f.StringVar(&o.system, "system", "", "the system prompt")
	f.Var(&o.overrides, "overrides", "further overrides, as JSON")
}
