package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Branch is a branch as it was when it was asked for.
type Branch struct {
	ID string
	// Name is for people. Branches may share it.
	Name string
	// ParentID is the branch that this one was made from, which may have been deleted
	// since; empty if it was made from none.
	ParentID string
	// ParentMessageIndex is how many of its parent's messages it started with.
	ParentMessageIndex int
	Current            bool
	// MessageCount is how many messages it has, inherited ones included.
	MessageCount int
	CreatedAt    time.Time
	// UpdatedAt is when its messages or its name last changed.
	UpdatedAt time.Time
}

// branch is a branch with what it is made of.
type branch struct {
	Branch
	context lineage.ContextID
	tip     lineage.SpanRef
	commit  uint64  // that last moved the tip
	parent  *branch // nil if there is none, or no longer
	from    lineage.ContextID
	base    lineage.SpanRef
}

// listing is all branches of a conversation at one moment, by their ids.
type listing []*branch

// list reads all branches as they are after one commit.
func (c *Conversation) list(ctx context.Context) (listing, error) {
	snapshot, err := c.store.Engine().Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	thread, err := snapshot.Thread(ctx, c.thread.ID())
	if err != nil {
		return nil, err
	}
	runs := func(id structure.RunID) (structure.RunInfo, error) { return snapshot.Run(ctx, id) }
	var all listing
	for record, err := range snapshot.Branches(ctx, c.thread.ID()) {
		if err != nil {
			return nil, err
		}
		state, err := snapshot.Context(ctx, record.Context)
		if err != nil {
			return nil, err
		}
		b, err := newBranch(record, &state, runs)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	if err := all.link(runs); err != nil {
		return nil, err
	}
	current := slices.IndexFunc(all, func(b *branch) bool { return b.context == thread.Active })
	if current < 0 {
		current = slices.IndexFunc(all, func(b *branch) bool { return b.ID == Main })
	}
	if current < 0 {
		return nil, branchError(Main, lineage.ErrNotFound, "")
	}
	all[current].Current = true
	return all, nil
}

func newBranch(record *structure.Branch, state *backend.Context, runs structure.RunLookup) (*branch, error) {
	said := readMetadata(state.Metadata)
	length, err := structure.Position(state.Tip, runs)
	if err != nil {
		return nil, err
	}
	b := &branch{
		Branch: Branch{
			ID: record.Name, Name: said.Name, ParentID: said.ParentID, ParentMessageIndex: said.ParentMessageIndex,
			MessageCount: int(length), CreatedAt: record.CreatedAt.UTC(), UpdatedAt: time.UnixMilli(state.MovedAt).UTC(),
		},
		context: state.ID, tip: state.Tip, commit: state.Moved, base: state.Base,
	}
	if from := readImported(state.Metadata); from.At != "" {
		if !from.File.CreatedAt.IsZero() {
			b.CreatedAt = from.File.CreatedAt.UTC()
		}
		if from.At == state.Tip.String() && !from.File.UpdatedAt.IsZero() {
			b.UpdatedAt = from.File.UpdatedAt.UTC()
		}
	}
	if said.UpdatedAt != nil && said.UpdatedAt.After(b.UpdatedAt) {
		b.UpdatedAt = said.UpdatedAt.UTC()
	}
	if said.ParentID != "" || said.Name == "" { // a branch of the thread's own has the parent of its context
		b.from = state.Parent
	}
	switch {
	case b.Name != "":
	case b.ID == Main:
		b.Name = MainName
	default:
		b.Name = b.ID
	}
	return b, nil
}

// link finds the parents. They are known by their contexts, so that a branch which
// later gets the id of a deleted one is nobody's parent.
func (l listing) link(runs structure.RunLookup) error {
	byContext := make(map[lineage.ContextID]*branch, len(l))
	for _, b := range l {
		byContext[b.context] = b
	}
	for _, b := range l {
		b.parent = byContext[b.from]
		if b.parent == nil {
			continue
		}
		if b.ParentID == "" {
			at, err := structure.Position(b.base, runs)
			if err != nil {
				return err
			}
			b.ParentMessageIndex = int(at)
		}
		b.ParentID = b.parent.ID
	}
	return nil
}

// find returns the branch with an id.
func (l listing) find(id string) (*branch, error) {
	for _, b := range l {
		if b.ID == id {
			return b, nil
		}
	}
	return nil, branchError(id, lineage.ErrNotFound, "")
}

// current returns the current branch, which every listing has.
func (l listing) current() *branch {
	return l[slices.IndexFunc(l, func(b *branch) bool { return b.Current })]
}

// newestFirst orders by the last update.
func newestFirst(a, b *branch) int {
	return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.commit, a.commit), b.context.Compare(a.context))
}

// oldestFirst orders by creation, the main branch first.
func oldestFirst(a, b *branch) int {
	switch {
	case a.ID == Main:
		return -1
	case b.ID == Main:
		return 1
	}
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.context.Compare(b.context))
}

// handle returns the context of a branch.
func (c *Conversation) handle(ctx context.Context, b *branch) (*lineage.Context, error) {
	return c.store.Context(ctx, b.context)
}

// at returns the place in a branch's history after its first messages.
func (c *Conversation) at(ctx context.Context, b *branch, index int) (lineage.SpanRef, error) {
	if index < 0 || index > b.MessageCount {
		return lineage.SpanRef{}, branchError(b.ID, lineage.ErrInvalid, fmt.Sprintf("message index %d is not within 0 to %d", index, b.MessageCount))
	}
	return c.store.At(ctx, b.tip, uint64(index))
}

// Branches returns all branches, the one that was last updated first.
func (c *Conversation) Branches(ctx context.Context) ([]Branch, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, newestFirst)
	branches := make([]Branch, len(all))
	for i, b := range all {
		branches[i] = b.Branch
	}
	return branches, nil
}

// Branch returns the branch with an id.
func (c *Conversation) Branch(ctx context.Context, id string) (Branch, error) {
	all, err := c.list(ctx)
	if err != nil {
		return Branch{}, err
	}
	b, err := all.find(id)
	if err != nil {
		return Branch{}, err
	}
	return b.Branch, nil
}

// CurrentBranch returns the branch that messages are added to.
func (c *Conversation) CurrentBranch(ctx context.Context) (Branch, error) {
	all, err := c.list(ctx)
	if err != nil {
		return Branch{}, err
	}
	return all.current().Branch, nil
}

// CurrentBranchID returns the id of the current branch.
func (c *Conversation) CurrentBranchID(ctx context.Context) (string, error) {
	b, err := c.CurrentBranch(ctx)
	return b.ID, err
}
