package threads

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

// ListBranches implements Keeper.
func (s InStore) ListBranches(ctx context.Context, thread string) (list []*records.Branch, err error) {
	t, err := ThreadNamed(ctx, s.OpenStore, thread)
	if err != nil {
		return nil, err
	}
	branches, err := t.Branches(ctx)
	for _, b := range branches {
		list = append(list, records.OfBranch(b))
	}
	return list, err
}

// CreateBranch implements Keeper.
func (s InStore) CreateBranch(ctx context.Context, o *BranchOptions) (*records.Branch, error) {
	t, err := s.NeedThread()
	if err != nil {
		return nil, err
	}
	options := lineage.BranchOptions{Empty: o.Empty, Switch: o.SwitchTo, Overrides: o.Overrides.Build()}
	if o.From != "" {
		found, err := s.Refs.Find(ctx, o.From)
		if err != nil {
			return nil, err
		}
		options.From, options.At = found.Context, found.Span
		options.Empty = o.Empty || found.Span.IsZero()
	}
	created, err := t.CreateBranch(ctx, o.Name, options)
	if err != nil {
		return nil, err
	}
	return BranchOf(ctx, t, created)
}

// BranchOf returns the record of the branch of a thread that has a context.
func BranchOf(ctx context.Context, t *lineage.Thread, c *lineage.Context) (*records.Branch, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	b, err := t.Branch(ctx, info.Branch)
	if err != nil {
		return nil, err
	}
	return records.OfBranch(b), nil
}

// ListCheckpoints implements Keeper.
func (s InStore) ListCheckpoints(ctx context.Context, thread string) (list []*records.Checkpoint, err error) {
	t, err := ThreadNamed(ctx, s.OpenStore, thread)
	if err != nil {
		return nil, err
	}
	checkpoints, err := t.Checkpoints(ctx)
	for _, c := range checkpoints {
		r, err := records.OfCheckpoint(ctx, s.Store, t, c)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, err
}

// SetCheckpoint implements Keeper.
func (s InStore) SetCheckpoint(ctx context.Context, o *CheckpointOptions) (*records.Checkpoint, error) {
	t, err := s.NeedThread()
	if err != nil {
		return nil, err
	}
	var at lineage.SpanRef
	if o.At != "" {
		found, err := s.Refs.Find(ctx, o.At)
		if err != nil {
			return nil, err
		}
		if at = found.Span; at.IsZero() {
			return nil, fmt.Errorf("checkpoint %q: no message at %q: %w", o.Name, o.At, lineage.ErrInvalid)
		}
	}
	c, err := t.SetCheckpoint(ctx, o.Name, lineage.CheckpointOptions{At: at})
	if err != nil {
		return nil, err
	}
	return records.OfCheckpoint(ctx, s.Store, t, c)
}

// NameToDelete implements Keeper.
func (s InStore) NameToDelete(ctx context.Context, o *DeleteOptions) (*app.Destruction, error) {
	if o.Checkpoint {
		t, err := s.NeedThread()
		if err != nil {
			return nil, err
		}
		return checkpointToDelete(ctx, s.OpenStore, t, o.Name)
	}
	found, err := s.Refs.Find(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	home, err := s.Home(ctx, found)
	if err != nil {
		return nil, err
	}
	switch {
	case found.Moved:
		return nil, &refs.KindError{Text: o.Name, Want: "a branch, checkpoint or context"}
	case found.Checkpoint != "":
		return checkpointToDelete(ctx, s.OpenStore, home, found.Checkpoint)
	case found.Context == nil:
		return nil, app.Hint(&refs.KindError{Text: o.Name, Want: "a branch, checkpoint or context"},
			"messages are never changed; 'lineage rewind' leaves some behind and 'lineage erase' removes their bytes")
	}
	length, err := found.Context.Len(ctx)
	if err != nil {
		return nil, err
	}
	history := "with " + amount.Plural(length, "message") + ", but for those that other histories share"
	if found.Branch == "" {
		return s.Deletion(fmt.Sprintf("delete context %s %s", refs.Short(found.Context.ID()), history),
			&records.Deleted{What: "context", ID: found.Context.ID().String()}, found.Context.Delete), nil
	}
	title, err := QuotedTitle(ctx, s.OpenStore, home)
	return s.Deletion(fmt.Sprintf("delete branch %q of thread %s %s", found.Branch, title, history),
		&records.Deleted{What: "branch", ID: found.Context.ID().String(), Name: found.Branch},
		func(ctx context.Context) error { return home.DeleteBranch(ctx, found.Branch) }), err
}

func checkpointToDelete(ctx context.Context, s *app.OpenStore, t *lineage.Thread, name string) (*app.Destruction, error) {
	c, err := t.Checkpoint(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q: %w", name, err)
	}
	title, err := QuotedTitle(ctx, s, t)
	return s.Deletion(fmt.Sprintf("delete checkpoint %q of thread %s", name, title),
		&records.Deleted{What: "checkpoint", ID: c.ID.String(), Name: name},
		func(ctx context.Context) error { return t.DeleteCheckpoint(ctx, name) }), err
}

// QuotedTitle returns the name of a thread in a sentence.
func QuotedTitle(ctx context.Context, s *app.OpenStore, t *lineage.Thread) (string, error) {
	info, err := t.Info(ctx)
	if err != nil {
		return "", err
	}
	title, err := show.ShownTitle(ctx, s, info)
	return fmt.Sprintf("%q (%s)", title, refs.Short(t.ID())), err
}

// Rewind implements Keeper. The branch has an automatic name.
func (s InStore) Rewind(ctx context.Context, to string) (*records.Branch, error) {
	found, err := s.Refs.Find(ctx, to)
	if err != nil {
		return nil, err
	}
	home, err := s.Home(ctx, found)
	if err != nil {
		return nil, err
	}
	created, err := home.CreateBranch(ctx, "", lineage.BranchOptions{At: found.Span, Empty: found.Span.IsZero(), Switch: true})
	if err != nil {
		return nil, err
	}
	return BranchOf(ctx, home, created)
}

// RewindInPlace implements Keeper.
func (s InStore) RewindInPlace(ctx context.Context, to string) error {
	found, err := s.Refs.Find(ctx, to)
	if err != nil {
		return err
	}
	branch, err := s.ContextOf(ctx, found)
	if err != nil {
		return err
	}
	from, err := branch.Context.Tip(ctx)
	if err != nil {
		return err
	}
	on, err := structure.IsAncestor(found.Span, from, backend.Runs(ctx, s.Store.View()))
	if err != nil {
		return err
	}
	if !on {
		return &lineage.SubjectError{
			Subject: "span", ID: found.Span.String(), Err: lineage.ErrInvalid, Detail: "it is not on the history of context " + branch.Context.ID().String(),
		}
	}
	if err := branch.Context.MoveTo(ctx, found.Span, "rewind"); err != nil {
		return err
	}
	return show.Moved(ctx, s.OpenStore, branch, from)
}

// SwitchTo implements Keeper.
func (s InStore) SwitchTo(ctx context.Context, name string) (*records.Branch, error) {
	found, home, err := NamedBranch(ctx, s.OpenStore, name)
	if err != nil {
		return nil, err
	}
	if err := home.Switch(ctx, found.Branch); err != nil {
		return nil, err
	}
	if home.ID() != s.Thread.ID() {
		if err := s.UseThread(home.ID()); err != nil {
			return nil, err
		}
	}
	return BranchOf(ctx, home, found.Context)
}

// NamedBranch returns the context of a name, which must be a branch, and its thread.
func NamedBranch(ctx context.Context, s *app.OpenStore, name string) (*refs.Ref, *lineage.Thread, error) {
	found, err := s.Refs.Context(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if found.Branch == "" {
		return nil, nil, app.Hint(app.Usagef("context %s has no name, so it is not a branch", found.Context.ID()),
			"'lineage branch NAME --from %s' makes a branch of it", found.Context.ID())
	}
	home, err := s.Home(ctx, found)
	return found, home, err
}
