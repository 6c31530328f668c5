package lineage

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// BranchInfo is a branch as it is now.
type BranchInfo struct {
	Name string
	// SourceID is the id that its caller chose, if any.
	SourceID string
	Context  ContextID
	Thread   ThreadID
	// Head is where its context stands.
	Head      SpanRef
	Active    bool
	CreatedAt time.Time
	UpdatedAt time.Time
	// Length is how many spans its history has.
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
	var infos []BranchInfo
	for b, err := range snapshot.Branches(ctx, t.id, "", "") {
		if err != nil {
			return nil, err
		}
		info, err := t.branchInfo(ctx, snapshot, b, thread.Active, runs)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	slices.SortStableFunc(infos, func(a, b BranchInfo) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.Context.Compare(b.Context))
	})
	return infos, nil
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

// Branch returns what is known of a branch: the active one if the name is empty.
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

// On returns the context of a branch.
func (t *Thread) On(ctx context.Context, branch string) (*Context, error) {
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

// BranchOptions say where a new branch starts.
type BranchOptions struct {
	// From is the context of the same store that it is forked from; nil is the active
	// branch's.
	From *Context
	// At is the span it starts at; the zero ref is where From stands. Empty makes
	// it start with an empty history instead.
	At    SpanRef
	Empty bool
	// Switch makes it the active branch. One that is made where none is active becomes so.
	Switch    bool
	Overrides Overrides
	// Metadata is JSON of the caller's, kept byte for byte.
	Metadata []byte
	// SourceID is an id of the caller's choice, unique in the store: the branch's context
	// has the id that SourceBranch returns for it.
	SourceID string
	// CreatedAt defaults to now.
	CreatedAt time.Time
}

// SourceBranch returns the id of the context of the branch with a source id, whether or not
// there is one. A source id that is the text of a context's id is that id.
func SourceBranch(sourceID string) ContextID { return write.SourceBranch(sourceID) }

// CreateBranch makes a branch. A name or source id that is taken is ErrExists. With an empty name it gets one that
// follows from the active branch's: main-v2 of main, the next is main-v3. ContextInfo.Branch tells it.
//
// It goes back without losing anything: with At and Switch it goes on from an earlier span, such as a checkpoint's, and
// what came after stays on the branches that have it. Context.MoveTo moves a branch itself.
func (t *Thread) CreateBranch(ctx context.Context, name string, o BranchOptions) (*Context, error) {
	if o.From != nil {
		if err := t.store.sameStore(o.From); err != nil {
			return nil, err
		}
	}
	if err := checkSettings(&o.Overrides, o.Metadata); err != nil {
		return nil, err
	}
	var made ContextID
	err := t.change(ctx, func(b *write.Batch, thread *structure.Thread) error {
		from := thread.Active
		if o.From != nil {
			from = o.From.id
		}
		var parent backend.Context // none where no branch is active
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
		fork.CreatedAt = o.CreatedAt
		if o.SourceID != "" {
			fork.ID = write.SourceBranch(o.SourceID)
			if _, err := t.store.engine.Context(ctx, fork.ID); err == nil {
				return subjectError("branch", o.SourceID, ErrExists, "")
			} else if !isNotFound(err) {
				return err
			}
		}
		is := b.NewContext(fork)
		b.Branch(t.id, name, o.SourceID, is.ID, is.CreatedAt)
		if made = is.ID; o.Switch || thread.Active.IsZero() {
			thread.Active = made
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Context{store: t.store, id: made}, nil
}

// NameBranch gives a context of the thread a name, which makes it a branch, or another name if it is one: it is the
// context itself that gets the name, such as Fork and Edit return, with its history, overrides and reflog. From then on
// it is deleted with its branch. A name that another branch has is ErrExists.
func (t *Thread) NameBranch(ctx context.Context, name string, c *Context) error {
	if name == "" {
		return fmt.Errorf("branch without a name: %w", ErrInvalid)
	}
	if err := t.store.sameStore(c); err != nil {
		return err
	}
	return t.change(ctx, func(b *write.Batch, _ *structure.Thread) error {
		state, err := t.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		if state.Thread != t.id {
			return subjectError("context", c.id.String(), ErrInvalid, "it is not of thread "+t.id.String())
		}
		// It stays so until the commit, which restates the thread as all do that name
		// contexts. A context that is deleted meanwhile the engine does not let it name.
		was, err := backend.BranchOf(ctx, t.store.engine, t.id, c.id)
		switch {
		case err != nil:
			return err
		case was == nil:
			b.Branch(t.id, name, "", c.id, b.Time())
		case was.Name != name:
			b.RenameBranch(was, name)
		}
		return nil
	})
}

// requireUnnamed refuses a context of a thread that is a branch.
func (s *Store) requireUnnamed(ctx context.Context, thread ThreadID, id ContextID, refusal error) error {
	b, err := backend.BranchOf(ctx, s.engine, thread, id)
	if err == nil && b != nil {
		err = subjectError("context", id.String(), refusal, fmt.Sprintf("branch %q is it", b.Name))
	}
	return err
}

// nextName returns the automatic name of a branch that is made beside the active one: see structure.VersionName.
func (t *Thread) nextName(ctx context.Context, active ContextID) (string, error) {
	current := MainBranch
	if b, err := backend.BranchOf(ctx, t.store.engine, t.id, active); err != nil {
		return "", err
	} else if b != nil {
		current = b.Name
	}
	return structure.VersionName(current, func(prefix string, limit int) ([]string, error) {
		return backend.BranchNames(ctx, t.store.engine, t.id, prefix, limit)
	})
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
		is, err := t.store.engine.Branch(ctx, t.id, name)
		if err == nil {
			thread.Active = is.Context
		}
		return err
	})
}

// DeleteBranch deletes a branch and its context; Context.Delete says what becomes of
// contexts that were forked from it. The main branch, and the last that is left,
// are ErrProtected. If it was active, the main branch becomes so, or the first by name if
// there is none of that name.
func (t *Thread) DeleteBranch(ctx context.Context, name string) error {
	if name == MainBranch {
		return subjectError("branch", fmt.Sprintf("%q", name), ErrProtected, "the main branch cannot be deleted")
	}
	var its ContextID // as it was looked at last
	contexts := func(ctx context.Context, from backend.Reader) iter.Seq2[backend.Context, error] {
		return func(yield func(backend.Context, error) bool) {
			b, err := from.Branch(ctx, t.id, name)
			if isNotFound(err) {
				return // that is said below
			}
			if err != nil {
				yield(backend.Context{}, err)
				return
			}
			its = b.Context
			yield(from.Context(ctx, its))
		}
	}
	may := func() error {
		_, _, err := t.deletable(ctx, name)
		return err
	}
	return t.store.bequeath(ctx, contexts, ThreadID{}, may, func() error { return t.deleteBranch(ctx, name, its) })
}

// deletable returns a branch that can be deleted, and another one: the main branch, or
// the first by name if there is none of that name.
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

// deleteBranch deletes a branch that is still that of a context.
func (t *Thread) deleteBranch(ctx context.Context, name string, its ContextID) error {
	return t.change(ctx, func(b *write.Batch, thread *structure.Thread) error {
		gone, other, err := t.deletable(ctx, name)
		if err != nil {
			return err
		}
		if gone.Context != its {
			return subjectError("branch", fmt.Sprintf("%q", name), ErrConflict, "it was made anew just now")
		}
		if gone.Context == thread.Active {
			thread.Active = other.Context
		}
		b.DeleteBranch(t.id, name)
		b.DeleteContext(gone.Context)
		return nil
	})
}
