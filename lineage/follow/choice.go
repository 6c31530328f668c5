package follow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
)

// Choice selects what is followed.
type Choice struct {
	// Agents are the names of the followed agents, all if empty, except those in Not.
	Agents []string `json:"agents,omitempty"`
	Not    []string `json:"not,omitempty"`
	// From are additional folders with session files of any format.
	From []string `json:"from,omitempty"`
	// NotProjects are folders. Sessions that work in or below them are left out.
	NotProjects []string `json:"notProjects,omitempty"`
}

// UnknownAgentError is returned for an unknown name of an agent.
type UnknownAgentError struct{ Name string }

func (e *UnknownAgentError) Error() string {
	var names []string
	for _, a := range Agents() {
		names = append(names, a.Name)
	}
	return fmt.Sprintf("no agent %q: there are %s", e.Name, strings.Join(names, ", "))
}

// Unwrap returns lineage.ErrInvalid.
func (e *UnknownAgentError) Unwrap() error { return lineage.ErrInvalid }

// Check returns an *UnknownAgentError if a name is not that of an agent.
func (c *Choice) Check() error {
	for _, name := range slices.Concat(c.Agents, c.Not) {
		if !slices.ContainsFunc(Agents(), func(a Agent) bool { return a.Name == name }) {
			return &UnknownAgentError{name}
		}
	}
	return nil
}

// follows reports whether an agent is followed.
func (c *Choice) follows(name string) bool {
	return (len(c.Agents) == 0 || slices.Contains(c.Agents, name)) && !slices.Contains(c.Not, name)
}

// Remembered returns the stored choice for a machine, or an empty one.
func Remembered(ctx context.Context, store *lineage.Store, m Machine) (c Choice, err error) {
	err = keptFor(store, m).get(ctx, choiceKey, &c)
	return c, err
}

// Remember stores the choice for a machine.
func Remember(ctx context.Context, store *lineage.Store, m Machine, c Choice) error {
	return keptFor(store, m).set(ctx, choiceKey, c)
}

// leavesOut reports whether sessions of a project are left out.
func (c *Choice) leavesOut(project string) bool {
	return project != "" && slices.ContainsFunc(c.NotProjects, func(dir string) bool { return within(project, dir) })
}
