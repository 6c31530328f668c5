package refs

import (
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/lineage"
)

// NameError reports that a branch or checkpoint cannot have a name. It matches lineage.ErrInvalid.
type NameError struct {
	Name string
	// Step is the end of the name that would be read as a step, empty for a blank name.
	Step string
}

func (e *NameError) Error() string {
	if e.Step == "" {
		return fmt.Sprintf("name %q: a branch or checkpoint without a name", shorten(e.Name))
	}
	return fmt.Sprintf("name %q: %s would be read as a step to a position", shorten(e.Name), e.Step)
}

func (e *NameError) Unwrap() error { return lineage.ErrInvalid }

// Hint suggests what to do.
func (e *NameError) Hint() string {
	if e.Step == "" {
		return ""
	}
	return "'~', ':' and '@{}' with a number lead from a name to another message, and @ is the active branch"
}

// CheckName refuses blank names for branches and checkpoints, and names that read as positions: such a name would
// hide the position, or could not be found. The empty name means none and is allowed.
func CheckName(name string) error {
	if name != "" && strings.TrimSpace(name) == "" {
		return &NameError{Name: name}
	}
	if step, found := Step(name); found {
		return &NameError{name, step}
	}
	return nil
}
