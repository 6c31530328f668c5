package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type copyThread struct {
	ofThread
	ID       string          `json:"id,omitempty" doc:"an id of your choice for the copy, unique in the store"`
	Reuse    bool            `json:"reuse,omitempty" doc:"with an id: if there is such a thread, it is the answer, unchanged"`
	User     string          `json:"user,omitempty" doc:"the user it belongs to; default that of the thread"`
	Title    *string         `json:"title,omitempty" doc:"default that of the thread"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"default that of the thread; null for none"`
}

func (o *copyThread) do(ctx context.Context, w *within) (made, error) {
	from, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	was, err := from.Info(ctx)
	if err != nil {
		return made{}, err
	}
	create := &createThread{ID: o.ID, Reuse: o.Reuse, User: o.User, Title: was.Title, Metadata: o.Metadata, Keep: was.Keeps}
	if create.User == "" {
		create.User = was.UserID
	}
	if o.Title != nil {
		create.Title = *o.Title
	}
	if create.Metadata == nil {
		create.Metadata = was.Metadata
	}
	created, err := create.do(ctx, w)
	if err != nil || created.Found {
		return created, err
	}
	to, err := w.thread(ctx, created.Thread)
	if err != nil {
		return made{}, err
	}
	return created, w.copyBranches(ctx, from, to)
}

// copyBranches copies the branches of a thread to a new one, with their names, settings and values, and sets its
// checkpoints. The copies are not forks of the branches. A fork would also inherit values that are set later at the
// message where it starts, and would lose what it inherits when the thread is deleted.
func (w *within) copyBranches(ctx context.Context, from, to *lineage.Thread) error {
	first, err := to.Active(ctx)
	if err != nil {
		return err
	}
	// The initial branch of the thread is renamed if another one needs its name.
	room := first.ID().String()
	if err := to.NameBranch(ctx, room, first); err != nil {
		return err
	}
	branches, err := from.Branches(ctx)
	if err != nil {
		return err
	}
	active := ""
	values := [][2]lineage.Owner{{{Thread: from.ID()}, {Thread: to.ID()}}}
	for i := range branches {
		b := &branches[i]
		forked, err := w.copyBranch(ctx, b, first)
		if err != nil {
			return err
		}
		if err := to.NameBranch(ctx, b.Name, forked); err != nil {
			return err
		}
		if b.Active {
			active = b.Name
		}
		values = append(values, [2]lineage.Owner{{Context: b.Context}, {Context: forked.ID()}})
	}
	if active != "" {
		if err := to.Switch(ctx, active); err != nil {
			return err
		}
	}
	if len(branches) == 0 {
		err = to.NameBranch(ctx, lineage.MainBranch, first)
	} else {
		err = to.DeleteBranch(ctx, room)
	}
	if err != nil {
		return err
	}
	checkpoints, err := from.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for _, c := range checkpoints {
		if _, err := to.SetCheckpoint(ctx, c.Name, lineage.CheckpointOptions{At: c.Span}); err != nil {
			return err
		}
	}
	for _, pair := range values {
		if err := w.copyValues(ctx, pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// copyBranch forks a context at the head of a branch of another thread, with the settings of that branch.
func (w *within) copyBranch(ctx context.Context, b *lineage.BranchInfo, from *lineage.Context) (*lineage.Context, error) {
	c, err := w.store.Context(ctx, b.Context)
	if err != nil {
		return nil, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	settings, err := c.Effective(ctx)
	if err != nil {
		return nil, err
	}
	return from.Fork(ctx, lineage.ForkOptions{At: b.Head, Empty: b.Head.IsZero(), Overrides: settings, Metadata: info.Metadata})
}

// copyValues copies the values of an owner to another one. A transaction cannot list, so the keys are those outside
// of it and those that earlier operations have set. The values are read inside. This comes after everything else that
// a copy reads. All of that must be unchanged when the transaction is committed, so the copy is of one moment, that
// of the list.
func (w *within) copyValues(ctx context.Context, from, to lineage.Owner) error {
	keys := make(map[string]bool)
	for v, err := range w.outside.Values(from).All(w.outer, "") {
		if errors.Is(err, lineage.ErrNotFound) {
			break // an earlier operation created the owner
		}
		if err != nil {
			return err
		}
		keys[v.Key] = true
	}
	for i := range w.made {
		if v := w.made[i].Value; v != nil && v.Context == records.ID(from.Context) && v.Thread == records.ID(from.Thread) {
			keys[v.Key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		v, err := w.store.Values(from).Get(ctx, key)
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if err == nil {
			err = w.store.Values(to).Set(ctx, key, v.JSON)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
