package refs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/lineage"
)

// UnknownError reports that nothing has a name, and suggests similar names. It matches lineage.ErrNotFound.
type UnknownError struct {
	// Kind is the kind of thing that was looked for: "thread", "context", "message", "content".
	Kind string
	Text string
	Near []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s %q: not found", e.Kind, shorten(e.Text))
}

func (e *UnknownError) Unwrap() error { return lineage.ErrNotFound }

// Hint suggests what to try instead.
func (e *UnknownError) Hint() string {
	if len(e.Near) > 0 {
		quoted := make([]string, len(e.Near))
		for i, name := range e.Near {
			quoted[i] = fmt.Sprintf("%q", shorten(name))
		}
		return "did you mean " + either(quoted) + "?"
	}
	switch e.Kind {
	case "thread":
		return "'lineage thread list' shows the threads there are"
	case "content":
		return "'lineage log --json' shows the content ids of messages"
	}
	return "'lineage tree' shows the branches, checkpoints and contexts there are"
}

// NoThreadError reports that a store or database has no thread. It matches lineage.ErrNotFound.
type NoThreadError struct{ Where string }

func (e *NoThreadError) Error() string {
	return fmt.Sprintf("thread: %v: the %s has none yet", lineage.ErrNotFound, e.Where)
}

func (e *NoThreadError) Unwrap() error { return lineage.ErrNotFound }

// Hint suggests what to do.
func (e *NoThreadError) Hint() string {
	return "'lineage thread create' makes one, and so do 'lineage append' and, of the sessions of agents, 'lineage follow'"
}

// Match is one of the things that a name can stand for. Title may be empty.
type Match struct{ ID, Title string }

// ErrAmbiguous is matched by every AmbiguousError.
var ErrAmbiguous = errors.New("ambiguous")

// AmbiguousError reports that a name has several meanings.
type AmbiguousError struct {
	Kind    string
	Text    string
	Matches []Match
	// More is set if there are more than Matches.
	More bool
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s %q: %v", e.Kind, shorten(e.Text), ErrAmbiguous)
}

func (e *AmbiguousError) Unwrap() error { return ErrAmbiguous }

// Hint lists the possible meanings.
func (e *AmbiguousError) Hint() string {
	matches := make([]string, len(e.Matches))
	for i, m := range e.Matches {
		matches[i] = m.ID
		if m.Title != "" {
			matches[i] += fmt.Sprintf(" (%q)", shorten(m.Title))
		}
	}
	hint := "it can be " + either(matches)
	if e.More {
		return hint + " and others; write more of it"
	}
	return hint + "; write one of these ids"
}

func either(quoted []string) string {
	if len(quoted) == 1 {
		return quoted[0]
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
