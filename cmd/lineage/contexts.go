package main

import (
	"context"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
)

// contextRecord returns the record of a context.
func (s *session) contextRecord(ctx context.Context, c *lineage.Context) (*records.Context, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	r := &records.Context{
		ID: info.ID.String(), Thread: records.ID(info.Thread), Branch: info.Branch, SpanSet: records.ID(info.Set), Parent: records.ID(info.Parent), Base: records.SpanID(info.Base), Tip: records.SpanID(info.Tip),
		SystemPrompt: info.Overrides.SystemPrompt, Model: info.Overrides.Model, Overrides: records.JSON(info.Overrides.JSON),
		Metadata: records.JSON(info.Metadata), CreatedAt: info.CreatedAt.UTC(), UpdatedAt: info.UpdatedAt.UTC(),
		Kind: string(graph.KindOf(&info)),
	}
	if r.Length, err = s.store.Position(ctx, info.Tip); err != nil {
		return nil, err
	}
	if info.Thread.IsZero() {
		return r, nil
	}
	t, err := s.store.View().Thread(ctx, info.Thread)
	if err == nil {
		r.Active = t.Active == info.ID
	}
	return r, err
}

// created prints a context that a command created: its id for scripts, on a line of its own.
func (s *session) created(ctx context.Context, c *lineage.Context) error {
	if s.json {
		r, err := s.contextRecord(ctx, c)
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
