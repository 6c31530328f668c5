package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

// contextRecord is a context as it is now.
type contextRecord struct {
	ID string `json:"id"`
	// Thread is the id of the thread that it belongs to.
	Thread string `json:"thread,omitempty"`
	// Kind is branch, fork, subagent, edit, alternative, or records for what an import keeps beside
	// the messages.
	Kind string `json:"kind"`
	// Branch is its name, for a branch.
	Branch string `json:"branch,omitempty"`
	// Active is set for the active branch of its thread.
	Active bool `json:"active,omitempty"`
	// Parent is the context that it was forked or spawned from.
	Parent string `json:"parent,omitempty"`
	// Base is the message that it started at, and Tip the last of its history.
	Base *string `json:"base"`
	Tip  *string `json:"tip"`
	// Length is how many messages its history has.
	Length uint64 `json:"length"`
	// SpanSet is the set that it fills an alternative of.
	SpanSet      string          `json:"span_set,omitempty"`
	SystemPrompt *string         `json:"system_prompt,omitempty"`
	Model        *string         `json:"model,omitempty"`
	Overrides    json.RawMessage `json:"overrides,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
}

func (*contextRecord) recordType() string { return "context" }

// spanID returns the id of a span for programs, nil for the empty position.
func spanID(ref lineage.SpanRef) *string {
	if ref.IsZero() {
		return nil
	}
	id := ref.String()
	return &id
}

// contextRecord returns the record of a context.
func (s *session) contextRecord(ctx context.Context, c *lineage.Context) (*contextRecord, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	r := &contextRecord{
		ID: info.ID.String(), Thread: idText(info.Thread), Branch: info.Branch, SpanSet: idText(info.Set), Parent: idText(info.Parent), Base: spanID(info.Base), Tip: spanID(info.Tip),
		SystemPrompt: info.Overrides.SystemPrompt, Model: info.Overrides.Model, Overrides: rawJSON(info.Overrides.JSON),
		Metadata: rawJSON(info.Metadata), CreatedAt: info.CreatedAt.UTC(), UpdatedAt: info.UpdatedAt.UTC(),
		Kind: kindOf(&info),
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

// movedRecord is a move of a context.
type movedRecord struct {
	Context string `json:"context"`
	Branch  string `json:"branch,omitempty"`
	// From is the tip before the move, and To the tip after it.
	From   *string `json:"from"`
	To     *string `json:"to"`
	Length uint64  `json:"length"`
}

func (*movedRecord) recordType() string { return "moved" }

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
	r := &movedRecord{Context: found.Context.ID().String(), Branch: found.Branch, From: spanID(from), To: spanID(to), Length: length}
	verb := "is"
	if from == to {
		verb = "stays"
	}
	return s.print(r, "%s %s at message %d, %s\n", nameOf(found), verb, length, refs.ShortSpan(to))
}
