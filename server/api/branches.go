package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type threadList struct {
	ofThread
	listPage
}

func (a *API) listBranches(ctx context.Context, c *call, in *threadList) (*list[*records.Branch], error) {
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	out := &list[*records.Branch]{}
	for b, err := range a.o.Store.View().Branches(ctx, t.ID(), "", in.After) {
		if err != nil {
			return nil, err
		}
		if len(out.Items) == in.size() {
			out.Next = out.Items[len(out.Items)-1].Name
			break
		}
		branch, err := t.Branch(ctx, b.Name)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, records.OfBranch(branch))
	}
	return out, nil
}

// branchRecord returns the record of a branch that was made.
func (w *within) branchRecord(ctx context.Context, m *made) (records.Record, error) {
	in, err := w.contextByID(ctx, m.Context)
	if err != nil {
		return nil, err
	}
	b, err := in.Thread.Branch(ctx, in.Branch)
	if err != nil {
		return nil, err
	}
	return records.OfBranch(b), nil
}

// newName refuses a name that reads as a position.
func newName(name string) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("name %q: %w: must not be empty", name, lineage.ErrInvalid)
	}
	if step, found := refs.Step(name); found {
		return fmt.Errorf("name %.100q: %w: %s would be read as a step to a position", name, lineage.ErrInvalid, step)
	}
	return nil
}

type createBranch struct {
	ofThread
	Name   string `json:"name" doc:"its name"`
	Reuse  bool   `json:"reuse,omitempty" doc:"if there is a branch of this name whose history has the position that a new one would start at, it is the answer, unchanged"`
	From   string `json:"from,omitempty" doc:"the position it starts at; default the tip of the active branch"`
	Empty  bool   `json:"empty,omitempty" doc:"start with an empty history"`
	Switch bool   `json:"switch,omitempty" doc:"make it the active branch"`
	ID     string `json:"id,omitempty" doc:"an id of your choice for its context, unique in the store"`
	settings
}

func (o *createBranch) do(ctx context.Context, w *within) (made, error) {
	if err := newName(o.Name); err != nil {
		return made{}, err
	}
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	options := lineage.BranchOptions{
		Empty: o.Empty, Switch: o.Switch, Overrides: o.overrides(), Metadata: orNil(o.Metadata),
	}
	if o.From != "" {
		if options.From, options.At, err = w.start(ctx, t, o.From); err != nil {
			return made{}, err
		}
		options.Empty = o.Empty || options.At.IsZero()
	}
	if o.ID != "" {
		info, err := t.Info(ctx)
		if err != nil {
			return made{}, err
		}
		options.SourceID = w.caller.Scope.Space(&info) + o.ID
	}
	var c *lineage.Context
	created := true
	if o.Reuse {
		c, created, err = t.OpenBranch(ctx, o.Name, options)
	} else {
		c, err = t.CreateBranch(ctx, o.Name, options)
	}
	if err != nil {
		return made{}, err
	}
	return made{Thread: t.ID().String(), Context: c.ID().String(), Branch: true, Found: !created}, nil
}

type ofBranch struct {
	ofThread
	Branch string `json:"branch,omitempty" path:"branch" doc:"the name of the branch"`
}

type updateBranch struct {
	ofBranch
	Name   *string `json:"name,omitempty" doc:"its new name"`
	Active *bool   `json:"active,omitempty" doc:"true makes it the active branch; false is refused: make another one active"`
}

// activates reports whether a change makes a branch the active one.
func activates(branch string, active *bool) (bool, error) {
	if active != nil && !*active {
		return false, fmt.Errorf("branch %.100q: %w: active can only be true: make another branch active", branch, lineage.ErrInvalid)
	}
	return active != nil, nil
}

func (o *updateBranch) do(ctx context.Context, w *within) (made, error) {
	active, err := activates(o.Branch, o.Active)
	if err != nil {
		return made{}, err
	}
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	b, err := t.Branch(ctx, o.Branch)
	if err != nil {
		return made{}, err
	}
	name := b.Name
	if o.Name != nil && *o.Name != b.Name {
		if err := newName(*o.Name); err != nil {
			return made{}, err
		}
		c, err := w.store.Context(ctx, b.Context)
		if err != nil {
			return made{}, err
		}
		if err := t.NameBranch(ctx, *o.Name, c); err != nil {
			return made{}, err
		}
		name = *o.Name
	}
	if active {
		if err := t.Switch(ctx, name); err != nil {
			return made{}, err
		}
	}
	return made{Thread: t.ID().String(), Context: b.Context.String(), Branch: true}, nil
}

type deleteBranch struct{ ofBranch }

func (o *deleteBranch) do(ctx context.Context, w *within) (made, error) {
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	return made{}, t.DeleteBranch(ctx, o.Branch)
}

func (a *API) listCheckpoints(ctx context.Context, c *call, in *threadList) (*list[*records.Checkpoint], error) {
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	out := &list[*records.Checkpoint]{}
	for checkpoint, err := range a.o.Store.View().Checkpoints(ctx, t.ID(), in.After) {
		if err != nil {
			return nil, err
		}
		if len(out.Items) == in.size() {
			out.Next = out.Items[len(out.Items)-1].Name
			break
		}
		info, err := t.Checkpoint(ctx, checkpoint.Name)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		r, err := records.OfCheckpoint(ctx, a.o.Store, t, info)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, r)
	}
	return out, nil
}

// checkpointRecord returns the record of a checkpoint that was set.
func (w *within) checkpointRecord(ctx context.Context, m *made) (records.Record, error) {
	t, err := w.thread(ctx, m.Thread)
	if err != nil {
		return nil, err
	}
	all, err := t.Checkpoints(ctx)
	for i := range all {
		if all[i].ID.String() == m.Checkpoint {
			return records.OfCheckpoint(ctx, w.store, t, all[i])
		}
	}
	if err == nil {
		err = notFound("checkpoint", m.Checkpoint)
	}
	return nil, err
}

type setCheckpoint struct {
	ofThread
	Name string `json:"name" doc:"its name; a checkpoint of that name is moved"`
	At   string `json:"at,omitempty" doc:"the message it names; default the last of the active branch"`
}

func (o *setCheckpoint) do(ctx context.Context, w *within) (made, error) {
	if err := newName(o.Name); err != nil {
		return made{}, err
	}
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	var at lineage.SpanRef
	if o.At != "" {
		if _, at, err = w.start(ctx, t, o.At); err != nil {
			return made{}, err
		}
		if at.IsZero() {
			return made{}, fmt.Errorf("checkpoint %.100q: no message at %.100q: %w", o.Name, o.At, lineage.ErrInvalid)
		}
	}
	c, err := t.SetCheckpoint(ctx, o.Name, lineage.CheckpointOptions{At: at})
	return made{Thread: t.ID().String(), Checkpoint: c.ID.String()}, err
}

type deleteCheckpoint struct {
	ofThread
	Checkpoint string `json:"checkpoint,omitempty" path:"checkpoint" doc:"the name of the checkpoint"`
}

func (o *deleteCheckpoint) do(ctx context.Context, w *within) (made, error) {
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	return made{}, t.DeleteCheckpoint(ctx, o.Checkpoint)
}
