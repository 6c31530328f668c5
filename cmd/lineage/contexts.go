package main

import (
	"context"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// created prints a context that a command created: its id for scripts, on a line of its own.
func (s *session) created(ctx context.Context, c *lineage.Context) error {
	if s.json {
		r, err := records.OfContext(ctx, s.store, c)
		if err != nil {
			return err
		}
		return s.emit(r)
	}
	s.printf("%s\n", c.ID())
	return nil
}

// nameOf returns what a person calls a context: its branch, or its short id.
func nameOf(found *refs.Ref) string {
	switch {
	case found.Branch != "":
		return found.Branch
	case found.Context != nil:
		return refs.Short(found.Context.ID())
	}
	return refs.ShortSpan(found.Span)
}

// overrideFlags are the flags of what a context sets differently.
type overrideFlags struct {
	model, system string
	overrides     jsonFlag
}

func (o *overrideFlags) build() lineage.Overrides {
	overrides := lineage.Overrides{JSON: o.overrides}
	if o.model != "" {
		overrides.Model = &o.model
	}
	if o.system != "" {
		overrides.SystemPrompt = &o.system
	}
	return overrides
}

// none refuses overrides where none are kept.
func (o *overrideFlags) none() error {
	if o.model != "" || o.system != "" || o.overrides != nil {
		return usagef("--model, --system and --overrides are not kept in a database")
	}
	return nil
}

// moved prints the tip of a context that a command moved.
func (s *session) moved(ctx context.Context, found *refs.Ref, from lineage.SpanRef) error {
	to, err := found.Context.Tip(ctx)
	if err != nil {
		return err
	}
	length, err := s.store.Position(ctx, to)
	if err != nil {
		return err
	}
	r := &records.Moved{Context: found.Context.ID().String(), Branch: found.Branch, From: records.SpanID(from), To: records.SpanID(to), Length: length}
	verb := "is"
	if from == to {
		verb = "stays"
	}
	return s.print(r, "%s %s at message %d, %s\n", nameOf(found), verb, length, refs.ShortSpan(to))
}
