package mcp

import (
	"context"
	"fmt"
	"strconv"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// maxAppended limits a message that a client appends, in bytes.
const maxAppended = 1 << 20

type forkInput struct {
	Thread string `json:"thread,omitempty" jsonschema:"the conversation: its id or title (default the one that changed last)"`
	At     string `json:"at,omitempty" jsonschema:"the position to continue from (default the end of the active branch)"`
	Branch string `json:"branch,omitempty" jsonschema:"the name of the new branch; without one the fork is named by its id"`
	Reuse  bool   `json:"reuse,omitempty" jsonschema:"if there is a branch of this name whose history has the position, return it unchanged"`
}

func (c *call) fork(ctx context.Context, in *forkInput) (*answer, error) {
	if err := checked(in.Thread, in.At, in.Branch); err != nil {
		return nil, err
	}
	if err := refs.CheckName(in.Branch); err != nil {
		return nil, err
	}
	if in.Reuse && in.Branch == "" {
		return nil, fmt.Errorf("reuse: %w: of a branch with a name", lineage.ErrInvalid)
	}
	at, err := c.find(ctx, in.Thread, in.At)
	if err != nil {
		return nil, err
	}
	from := at.Context
	if from == nil {
		if from, err = at.home.Active(ctx); err != nil {
			return nil, err
		}
	}
	var fork *lineage.Context
	created := true
	options := lineage.BranchOptions{From: from, At: at.Span, Empty: at.Span.IsZero()}
	switch {
	case in.Reuse:
		fork, created, err = at.home.OpenBranch(ctx, in.Branch, options)
	case in.Branch != "":
		fork, err = at.home.CreateBranch(ctx, in.Branch, options)
	default:
		fork, err = from.Fork(ctx, lineage.ForkOptions{At: at.Span, Empty: at.Span.IsZero(), Thread: at.home.ID()})
	}
	if err != nil {
		return nil, err
	}
	r, err := records.OfContext(ctx, c.o.Store, fork)
	if err != nil {
		return nil, err
	}
	a := newAnswer(0)
	what := "Created"
	if !created {
		what = "There was"
	}
	a.head = fmt.Sprintf("%s context %s, which has %s.", what, refs.Short(fork.ID()), amount.Plural(r.Length, "message"))
	_, err = a.add(r)
	return a, err
}

type appendInput struct {
	Thread string `json:"thread,omitempty" jsonschema:"the conversation: its id or title (default the one that changed last)"`
	To     string `json:"to,omitempty" jsonschema:"the branch or context to add to (default the active branch)"`
	Role   string `json:"role" jsonschema:"who says it: user, assistant, system or tool"`
	Text   string `json:"text" jsonschema:"what it says"`
	Model  string `json:"model,omitempty" jsonschema:"the model that wrote it"`
	After  string `json:"after,omitempty" jsonschema:"only if this message is the last one there"`
}

func (c *call) append(ctx context.Context, in *appendInput) (*answer, error) {
	if err := checked(in.Thread, in.To, in.Role, in.Model, in.After); err != nil {
		return nil, err
	}
	switch {
	case in.Role == "" || in.Text == "":
		return nil, fmt.Errorf("role and text: %w: neither is empty", lineage.ErrInvalid)
	case len(in.Text) > maxAppended:
		return nil, fmt.Errorf("a text of %d bytes: %w: at most %d", len(in.Text), lineage.ErrTooLarge, maxAppended)
	}
	to, err := c.context(ctx, in.Thread, in.To)
	if err != nil {
		return nil, err
	}
	item := lineage.Item{Role: in.Role, Body: []byte(in.Text), Origin: lineage.Origin{ModelID: in.Model}}
	extend := to.Context.Extend
	if in.After != "" {
		after, err := to.names.Find(ctx, in.After)
		if err != nil {
			return nil, err
		}
		extend = func(ctx context.Context, items ...lineage.Item) ([]lineage.SpanRef, error) {
			return to.Context.ExtendFrom(ctx, after.Span, items...)
		}
	}
	added, err := extend(ctx, item)
	if err != nil {
		return nil, err
	}
	r := &records.Appended{Context: to.Context.ID().String(), Branch: to.Branch, Thread: to.home.ID().String(), IDs: []string{added[0].String()}, Tip: added[0].String()}
	if r.Length, err = c.o.Store.Position(ctx, added[0]); err != nil {
		return nil, err
	}
	a := newAnswer(0)
	a.head = fmt.Sprintf("Added message %s. The history has %s now.", refs.ShortSpan(added[0]), amount.Plural(r.Length, "message"))
	_, err = a.add(r)
	return a, err
}

// context looks up a context by name.
func (c *call) context(ctx context.Context, thread, name string) (*position, error) {
	at, err := c.find(ctx, thread, name)
	if err != nil {
		return nil, err
	}
	if at.Context == nil || at.Moved {
		return nil, &refs.KindError{Text: name, Want: "a context or branch"}
	}
	return at, nil
}

type checkpointInput struct {
	Thread string `json:"thread,omitempty" jsonschema:"the conversation: its id or title (default the one that changed last)"`
	Name   string `json:"name" jsonschema:"the name of the checkpoint"`
	At     string `json:"at,omitempty" jsonschema:"the message that it names (default the last of the active branch)"`
}

func (c *call) checkpoint(ctx context.Context, in *checkpointInput) (*answer, error) {
	if err := checked(in.Thread, in.Name, in.At); err != nil {
		return nil, err
	}
	if in.Name == "" {
		return nil, fmt.Errorf("name: %w: must not be empty", lineage.ErrInvalid)
	}
	if err := refs.CheckName(in.Name); err != nil {
		return nil, err
	}
	at, err := c.find(ctx, in.Thread, in.At)
	if err != nil {
		return nil, err
	}
	if at.Span.IsZero() {
		place := "the tip"
		if in.At != "" {
			place = strconv.Quote(in.At)
		}
		return nil, fmt.Errorf("checkpoint %q: %w: there is no message at %s", in.Name, lineage.ErrInvalid, place)
	}
	set, err := at.home.SetCheckpoint(ctx, in.Name, lineage.CheckpointOptions{At: at.Span})
	if err != nil {
		return nil, err
	}
	r, err := records.OfCheckpoint(ctx, c.o.Store, at.home, set)
	if err != nil {
		return nil, err
	}
	a := newAnswer(0)
	a.head = fmt.Sprintf("Checkpoint %q names message %d.", plain.Line(set.Name), r.Position)
	_, err = a.add(r)
	return a, err
}

type returnInput struct {
	Thread  string `json:"thread,omitempty" jsonschema:"the conversation: its id or title (default the one that changed last)"`
	Context string `json:"context" jsonschema:"the subagent's context: its id"`
	Text    string `json:"text,omitempty" jsonschema:"the result (default the last message of the context)"`
	Role    string `json:"role,omitempty" jsonschema:"who says it (default assistant)"`
}

func (c *call) return_(ctx context.Context, in *returnInput) (*answer, error) {
	if err := checked(in.Thread, in.Context, in.Role); err != nil {
		return nil, err
	}
	if len(in.Text) > maxAppended {
		return nil, fmt.Errorf("a text of %d bytes: %w: at most %d", len(in.Text), lineage.ErrTooLarge, maxAppended)
	}
	if in.Context == "" {
		return nil, fmt.Errorf("context: %w: must not be empty", lineage.ErrInvalid)
	}
	from, err := c.context(ctx, in.Thread, in.Context)
	if err != nil {
		return nil, err
	}
	info, err := from.Context.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.Parent.IsZero() {
		return nil, fmt.Errorf("context %s: %w: it was made from no other", refs.Short(info.ID), lineage.ErrInvalid)
	}
	// The result goes to the parent, which may be in a thread outside the scope.
	if _, err := from.names.Context(ctx, info.Parent.String()); err != nil {
		return nil, err
	}
	item := lineage.Item{Role: in.Role, Body: []byte(in.Text)}
	if item.Role == "" {
		item.Role = "assistant"
	}
	if in.Text == "" {
		if item, err = from.Context.Result(ctx, item.Role); err != nil {
			return nil, err
		}
	}
	ref, err := from.Context.Return(ctx, item)
	if err != nil {
		return nil, err
	}
	a := newAnswer(0)
	a.head = fmt.Sprintf("Added message %s to context %s.", refs.ShortSpan(ref), refs.Short(info.Parent))
	_, err = a.add(&records.Sent{From: info.ID.String(), To: info.Parent.String(), ID: ref.String()})
	return a, err
}
