package api

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

// made is what an operation made. It contains only ids and no text. It is stored for repeated requests, and must not
// preserve what is erased or deleted later.
type made struct {
	Thread     string `json:"thread,omitempty"`
	Context    string `json:"context,omitempty"`
	Branch     bool   `json:"branch,omitempty"`     // the answer is the branch that the context is
	Checkpoint string `json:"checkpoint,omitempty"` // the id of a checkpoint of the thread
	Summary    string `json:"summary,omitempty"`
	// Contexts are alternatives.
	Contexts []string          `json:"contexts,omitempty"`
	Appended *records.Appended `json:"appended,omitempty"`
	Moved    *records.Moved    `json:"moved,omitempty"`
	Merged   *records.Merged   `json:"merged,omitempty"`
	Sent     *records.Sent     `json:"sent,omitempty"`
	Value    *valueOf          `json:"value,omitempty"`
	// branch is the name of the branch that was extended or moved. It is set if the answer is made immediately.
	branch *string
	// Found is set if nothing was created because it existed already.
	Found bool `json:"found,omitempty"`
}

// position returns a name for the position that an operation made: its last message, else the context.
func (m *made) position() (string, error) {
	switch {
	case m.Appended != nil:
		return m.Appended.Tip, nil
	case m.Sent != nil:
		return m.Sent.ID, nil
	case m.Moved != nil:
		return m.Moved.Context, nil
	case m.Context != "":
		return m.Context, nil
	}
	return "", fmt.Errorf("%w: the operation made no position", lineage.ErrInvalid)
}

// context returns the context that an operation made or changed.
func (m *made) context() (string, error) {
	switch {
	case m.Appended != nil:
		return m.Appended.Context, nil
	case m.Moved != nil:
		return m.Moved.Context, nil
	case m.Context != "":
		return m.Context, nil
	}
	return "", fmt.Errorf("%w: the operation made no context", lineage.ErrInvalid)
}

// valueOf is a value that was set.
type valueOf struct {
	Scope   structure.Scope `json:"scope"`
	Name    string          `json:"name,omitempty"`
	Thread  string          `json:"thread,omitempty"`
	Context string          `json:"context,omitempty"`
	Key     string          `json:"key"`
}
