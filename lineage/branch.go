package lineage

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// BranchInfo is the current state of a branch.
type BranchInfo struct {
	Name string
	// SourceID is the id that the caller chose, if any.
	SourceID string
	Context  ContextID
	Thread   ThreadID
	// Head is the tip of its context.
	Head      SpanRef
	Active    bool
	CreatedAt time.Time
	UpdatedAt time.Time
	// Length is the number of spans of its history.
	Length uint64
}

// Branches returns the thread's branches, oldest first.
func (t *Thread) Branches(ctx context.Context) ([]BranchInfo, error) {
	return backend.AtOnce(ctx, t.store.engine, func(snapshot backend.Snapshot) ([]BranchInfo, error) { return t.branches(ctx, snapshot) })
}

func (t *Thread) branches(ctx context.Context, snapshot backend.Reader) ([]BranchInfo, error) {
	thread, err := snapshot.Thread(ctx, t.id)
	if err != nil {
		return nil, err
	}
	runs := t.store.runs(ctx)
	branches, err := backend.BranchesByCreation(ctx, snapshot, t.id)
	infos := make([]BranchInfo, len(branches))
	for i := 0; i < len(branches) && err == nil; i++ {
		infos[i], err = t.branchInfo(ctx, snapshot, branches[i], thread.Active, runs)
	}
	return infos, err
}

func (t *Thread) branchInfo(ctx context.Context, r backend.Reader, b *structure.Branch, active ContextID, runs structure.RunLookup) (BranchInfo, error) {
	c, err := r.Context(ctx, b.Context)
	if err != nil {
		return BranchInfo{}, err
	}
	length, err := structure.Position(c.Tip, runs)
	return BranchInfo{
		Name: b.Name, SourceID: b.SourceID, Context: b.Context, Thread: t.id, Head: c.Tip, Active: b.Context == active,
		CreatedAt: b.CreatedAt, UpdatedAt: time.UnixMilli(c.MovedAt).UTC(), Length: length,
	}, err
}

// Branch returns a branch; the active one if the name is empty.
func (t *Thread) Branch(ctx context.Context, name string) (BranchInfo, error) {
	return backend.AtOnce(ctx, t.store.engine, func(snapshot backend.Snapshot) (BranchInfo, error) { return t.branch(ctx, snapshot, name) })
}

func (t *Thread) branch(ctx context.Context, snapshot backend.Reader, name string) (BranchInfo, error) {
	thread, err := snapshot.Thread(ctx, t.id)
	if err != nil {
		return BranchInfo{}, err
	}
	var b *structure.Branch
	if name != "" {
		b, err = snapshot.Branch(ctx, t.id, name)
	} else if b, err = backend.BranchOf(ctx, snapshot, t.id, thread.Active); err == nil && b == nil {
		err = t.noActive()
	}
	if err != nil {
		return BranchInfo{}, err
	}
	return t.branchInfo(ctx, snapshot, b, thread.Active, t.store.runs(ctx))
}

// BranchContext returns the context of a branch.
func (t *Thread) BranchContext(ctx context.Context, branch string) (*Context, error) {
	b, err := t.store.engine.Branch(ctx, t.id, branch)
	if err != nil {
		return nil, err
	}
	return &Context{store: t.store, id: b.Context}, nil
}

// Active returns the context of the active branch.
func (t *Thread) Active(ctx context.Context) (*Context, error) {
	thread, err := t.store.engine.Thread(ctx, t.id)
	if err == nil && thread.Active.IsZero() {
		err = t.noActive()
	}
	if err != nil {
		return nil, err
	}
	return &Context{store: t.store, id: thread.Active}, nil
}

// BranchOptions configure a new branch.
type BranchOptions struct {
	// From is the context to fork, of the same store. Default: the active branch.
	From *Context
	// At is the span to start at. Default: the tip of From. Empty starts with an empty history
	// instead.
	At    SpanRef
	Empty bool
	// Switch makes it the active branch, which it also becomes if there is no active one.
	Switch    bool
	Overrides Overrides
	// Metadata is JSON of the caller, kept byte for byte.
	Metadata []byte
	// SourceID is an id chosen by the caller, unique in the store. SourceBranch returns the id of
	// the branch's context, unless a deleted branch with the same source id has forks.
	SourceID string
	// CreatedAt defaults to now.
	CreatedAt time.Time
}

// SourceBranch returns the context id of the branch with a source id, whether or not it exists. A
// source id that is the text of a context id is that id.
func SourceBranch(sourceID string) ContextID { return write.SourceBranch(sourceID) }

// CreateBranch creates a branch. If the name or source id is taken, the error is ErrExists. An empty name is replaced
// by the next version of the active branch's name: main-v2 for main, then main-v3. ContextInfo.Branch returns it.
//
// With At and Switch, CreateBranch goes back without losing anything: the new branch continues an earlier span, for
// example a checkpoint, and later messages stay on the branches that have them. Context.MoveTo moves an existing
// branch instead.
func (t *Thread) CreateBranch(ctx context.Context, name string, o BranchOptions) (*Context, error) {
	c, _, err := t.createBranch(ctx, name, o, false)
	return c, err
}

// OpenBranch returns the branch with the name, and creates it if there is none; created says which. An existing branch
// stays as it is. If its history does not have the span that a new one would start at, or if it has another source id
// than the one in the options, the error is ErrExists. Of concurrent calls, one creates it.
func (t *Thread) OpenBranch(ctx context.Context, name string, o BranchOptions) (c *Context, created bool, err error) {
	if name == "" {
		return nil, false, fmt.Errorf("open a branch without a name: %w", ErrInvalid)
	}
	return t.createBranch(ctx, name, o, true)
}

func (t *Thread) createBranch(ctx context.Context, name string, o BranchOptions, reuse bool) (*Context, bool, error) {
	if o.From != nil {
		if err := t.store.sameStore(o.From); err != nil {
			return nil, false, err
		}
	}
	if err := checkSettings(&o.Overrides, o.Metadata); err != nil {
		return nil, false, err
	}
	var branch ContextID
	var created bool
	err := t.change(ctx, func(b *write.Batch, thread *structure.Thread) error {
		from := thread.Active
		if o.From != nil {
			from = o.From.id
		}
		var parent backend.Context // zero if no branch is active
		if !from.IsZero() {
			var err error
			if parent, err = t.store.engine.Context(ctx, from); err != nil {
				return err
			}
		}
		name := name
		if name == "" {
			var err error
			if name, err = t.nextName(ctx, thread.Active); err != nil {
				return err
			}
		}
		fork := forked(&parent.Context, &ForkOptions{At: o.At, Empty: o.Empty, Thread: t.id, Overrides: o.Overrides, Metadata: o.Metadata})
		if reuse {
			there, err := t.branchFrom(ctx, name, o.SourceID, fork.At)
			if !isNotFound(err) {
				branch, created = there, false
				return err
			}
		}
		fork.CreatedAt = o.CreatedAt
		if o.SourceID != "" {
			id, err := t.store.branchContext(ctx, o.SourceID)
			if err != nil {
				return err
			}
			fork.ID = id
		}
		record := b.NewContext(fork)
		b.Branch(thread, name, o.SourceID, record.ID, record.CreatedAt)
		if branch, created = record.ID, true; o.Switch || thread.Active.IsZero() {
			thread.Active = branch
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return &Context{store: t.store, id: branch}, created, nil
}

// branchFrom returns the context of the branch with the name. The error is ErrExists if it is not a branch that a call with
// these arguments could have created.
func (t *Thread) branchFrom(ctx context.Context, name, sourceID string, start SpanRef) (ContextID, error) {
	b, err := t.store.engine.Branch(ctx, t.id, name)
	if err != nil {
		return ContextID{}, err
	}
	if sourceID != "" && b.SourceID != sourceID {
		return ContextID{}, subjectError("branch", name, ErrExists, "it has another source id")
	}
	state, err := t.store.engine.Context(ctx, b.Context)
	if err != nil {
		return ContextID{}, err
	}
	continues, err := structure.IsAncestor(start, state.Tip, t.store.runs(ctx))
	if err == nil && !continues {
		err = subjectError("branch", name, ErrExists, "it does not continue from message "+start.String())
	}
	return b.Context, err
}

// branchContext returns the id of the context of a new branch with a source id. It is that of
// SourceBranch, unless a deleted context with that id has forks, which must not inherit from the new
// one.
func (s *Store) branchContext(ctx context.Context, sourceID string) (ContextID, error) {
	taken := subjectError("branch", sourceID, ErrExists, "")
	for _, err := range s.engine.BranchesBySource(ctx, sourceID, ThreadID{}) {
		return ContextID{}, cmp.Or(err, taken)
	}
	for id := write.SourceBranch(sourceID); ; id = structure.DeriveID[ContextID]("branch", id.String()) {
		if _, err := s.engine.Context(ctx, id); !isNotFound(err) {
			return ContextID{}, cmp.Or(err, taken)
		}
		if _, err := s.engine.Remnant(ctx, id); err != nil {
			if isNotFound(err) {
				return id, nil
			}
			return ContextID{}, err
		}
	}
}

// NameBranch turns a context of the thread, such as the result of Fork or Edit, into a branch with the name. If the
// context is a branch already, it is renamed. Its history, overrides and reflog stay the same. From then on, it is
// deleted with its branch. If another branch has the name, the error is ErrExists.
func (t *Thread) NameBranch(ctx context.Context, name string, c *Context) error {
	if name == "" {
		return fmt.Errorf("branch without a name: %w", ErrInvalid)
	}
	if err := t.store.sameStore(c); err != nil {
		return err
	}
	return t.change(ctx, func(b *write.Batch, thread *structure.Thread) error {
		state, err := t.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		if state.Thread != t.id {
			return subjectError("context", c.id.String(), ErrInvalid, "it does not belong to thread "+t.id.String())
		}
		// The commit restates the thread, as does every commit that names contexts, so concurrent names conflict. The
		// engine refuses to name a context that was deleted in between.
		was, err := backend.BranchOf(ctx, t.store.engine, t.id, c.id)
		switch {
		case err != nil:
			return err
		case was == nil:
			b.Branch(thread, name, "", c.id, b.Time())
		case was.Name != name:
			b.RenameBranch(was, name)
		}
		return nil
	})
}

// nextName returns the automatic name for a new branch next to the active one: see
// structure.VersionName.
func (t *Thread) nextName(ctx context.Context, active ContextID) (string, error) {
	current := MainBranch
	if b, err := backend.BranchOf(ctx, t.store.engine, t.id, active); err != nil {
		return "", err
	} else if b != nil {
		current = b.Name
	}
	return structure.VersionName(current, func(prefix string, limit int) ([]string, error) {
		return backend.BranchNames(ctx, t.store.engine, t.id, prefix, limit)
	}, func(names []string) (int, error) { return backend.FreeBranchName(ctx, t.store.engine, t.id, names) })
}

func (t *Thread) noActive() error {
	return subjectError("thread", t.id.String(), ErrNotFound, "it has no active branch")
}

func (t *Thread) noMessages() error {
	return subjectError("thread", t.id.String(), ErrInvalid, "no messages in conversation")
}

// Switch makes a branch the active one.
func (t *Thread) Switch(ctx context.Context, name string) error {
	return t.change(ctx, func(_ *write.Batch, thread *structure.Thread) error {
		branch, err := t.store.engine.Branch(ctx, t.id, name)
		if err == nil {
			thread.Active = branch.Context
		}
		return err
	})
}

// DeleteBranch deletes a branch and its context: see Context.Delete for its forks. Deleting the main branch or the
// last branch is ErrProtected. If the branch was active, the main branch becomes active, or the first by name if
// there is no main branch.
func (t *Thread) DeleteBranch(ctx context.Context, name string) error {
	if name == MainBranch {
		return subjectError("branch", fmt.Sprintf("%q", name), ErrProtected, "the main branch cannot be deleted")
	}
	return t.change(ctx, func(b *write.Batch, thread *structure.Thread) error {
		gone, other, err := t.deletable(ctx, name)
		if err != nil {
			return err
		}
		if gone.Context == thread.Active {
			thread.Active = other.Context
		}
		b.DeleteBranch(t.id, name)
		b.DeleteContext(gone.Context)
		return nil
	})
}

// deletable returns a branch if it can be deleted. It also returns the branch that becomes active after it: the main
// branch, else the first by name.
func (t *Thread) deletable(ctx context.Context, name string) (gone, other *structure.Branch, err error) {
	if gone, err = t.store.engine.Branch(ctx, t.id, name); err != nil {
		return nil, nil, err
	}
	other, err = t.store.engine.Branch(ctx, t.id, MainBranch)
	if err == nil || !isNotFound(err) {
		return gone, other, err
	}
	for b, err := range t.store.engine.Branches(ctx, t.id, "", "") {
		if err != nil {
			return nil, nil, err
		}
		if b.Name != name {
			return gone, b, nil
		}
	}
	return nil, nil, subjectError("branch", fmt.Sprintf("%q", name), ErrProtected, "it is the only branch")
}
