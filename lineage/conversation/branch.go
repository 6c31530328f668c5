package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Branch describes a branch at the time of the call.
type Branch struct {
	ID string
	// Name is for people. It need not be unique.
	Name string
	// ParentID is the branch that this one was created from, or empty. That branch may have been deleted
	// since.
	ParentID string
	// ParentMessageIndex is the number of the parent's messages that it started with.
	ParentMessageIndex int
	Current            bool
	// MessageCount is the number of messages, including inherited ones.
	MessageCount int
	CreatedAt    time.Time
	// UpdatedAt is when its messages or its name last changed.
	UpdatedAt time.Time
}

// snapshot is the state of a conversation after one commit.
type snapshot struct {
	backend.Snapshot
	thread  lineage.ThreadID
	current *structure.Branch
	runs    structure.RunLookup
}

// read calls do with the state of the conversation after one commit.
func read[T any](ctx context.Context, c *Conversation, do func(*snapshot) (T, error)) (T, error) {
	return backend.AtOnce(ctx, c.store.View(), func(state backend.Snapshot) (none T, err error) {
		r := &snapshot{Snapshot: state, thread: c.thread.ID(), runs: backend.Runs(ctx, state)}
		thread, err := state.Thread(ctx, r.thread)
		if err == nil {
			r.current, err = backend.BranchOf(ctx, state, r.thread, thread.Active)
		}
		if err == nil && r.current == nil {
			r.current, err = r.Branch(ctx, r.thread, Main)
		}
		if err != nil {
			return none, err
		}
		return do(r)
	})
}

// find returns the branch with an id, or the current branch if the id is empty.
func (c *Conversation) find(ctx context.Context, id string) (branch, error) {
	return read(ctx, c, func(r *snapshot) (branch, error) { return r.find(ctx, id) })
}

// findContext is find that also returns the context of the branch.
func (c *Conversation) findContext(ctx context.Context, id string) (b branch, opened *lineage.Context, err error) {
	if b, err = c.find(ctx, id); err == nil {
		opened, err = c.store.Context(ctx, b.state.ID)
	}
	return b, opened, err
}

// find returns the branch with an id, or the current branch if the id is empty.
func (r *snapshot) find(ctx context.Context, id string) (branch, error) {
	if id == "" {
		return r.branch(ctx, r.current)
	}
	record, err := r.Branch(ctx, r.thread, id)
	if err != nil {
		return branch{}, err
	}
	return r.branch(ctx, record)
}

// branch returns the branch of a record.
func (r *snapshot) branch(ctx context.Context, record *structure.Branch) (branch, error) {
	state, err := r.Context(ctx, record.Context)
	if err != nil {
		return branch{}, err
	}
	length, err := structure.Position(state.Tip, r.runs)
	if err != nil {
		return branch{}, err
	}
	stored := readMetadata(state.Metadata)
	b := branch{
		Branch: Branch{
			ID: record.Name, Name: cmp.Or(stored.Name, record.Name), ParentID: stored.ParentID, ParentMessageIndex: stored.ParentMessageIndex,
			Current: record.Name == r.current.Name, MessageCount: int(length),
			CreatedAt: record.CreatedAt.UTC(), UpdatedAt: time.UnixMilli(state.MovedAt).UTC(),
		},
		state: state, imported: stored.CreatedAt != nil,
	}
	if stored.Name == "" && b.ID == Main {
		b.Name = MainName
	}
	if b.imported {
		b.CreatedAt = stored.CreatedAt.UTC()
	}
	asInFile := stored.Messages > 0 && stored.Messages == b.MessageCount
	if at := stored.UpdatedAt; at != nil && (asInFile || stored.Messages == 0 && at.After(b.UpdatedAt)) {
		b.UpdatedAt = at.UTC()
	}
	if !state.Parent.IsZero() && (stored.ParentID != "" || stored.Name == "") { // a branch of the thread's own has the parent of its context
		err = r.link(ctx, &b)
	}
	return b, err
}

// link finds the parent by its context, not by its id: a branch that gets the id of a deleted one must not
// become a parent.
func (r *snapshot) link(ctx context.Context, b *branch) error {
	parent, err := backend.BranchOf(ctx, r, r.thread, b.state.Parent)
	if err != nil || parent == nil {
		return err
	}
	if b.ParentID == "" {
		at, err := structure.Position(b.state.Base, r.runs)
		if err != nil {
			return err
		}
		b.ParentMessageIndex = int(at)
	}
	if !b.imported || b.ParentID == parent.Name { // else the parent was not imported
		b.ParentID, b.parent = parent.Name, parent.Context
	}
	return nil
}

// list returns all branches, oldest first.
func (c *Conversation) list(ctx context.Context) ([]branch, error) {
	return read(ctx, c, func(r *snapshot) (all []branch, err error) {
		records, err := backend.BranchesByCreation(ctx, r, r.thread)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			b, err := r.branch(ctx, record)
			if err != nil {
				return nil, err
			}
			all = append(all, b)
		}
		return all, nil
	})
}

// Branches returns all branches, most recently updated first.
func (c *Conversation) Branches(ctx context.Context) ([]Branch, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b branch) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.state.Moved, a.state.Moved))
	})
	branches := make([]Branch, len(all))
	for i := range all {
		branches[i] = all[i].Branch
	}
	return branches, nil
}

// Branch returns the branch with an id, or the current branch if the id is empty.
func (c *Conversation) Branch(ctx context.Context, id string) (Branch, error) {
	b, err := c.find(ctx, id)
	return b.Branch, err
}

// CurrentBranch returns the branch that messages are added to.
func (c *Conversation) CurrentBranch(ctx context.Context) (Branch, error) { return c.Branch(ctx, "") }

// CurrentBranchID returns the id of the current branch.
func (c *Conversation) CurrentBranchID(ctx context.Context) (string, error) {
	b, err := c.CurrentBranch(ctx)
	return b.ID, err
}

// readMetadata decodes metadata. It returns the zero value for metadata of another form.
func readMetadata(data []byte) (m metadata) {
	if !rawjson.Valid(data) {
		return metadata{}
	}
	ours := rawjson.RemoveFunc(data, func(key string) bool { return !isOurs(key) })
	if json.Unmarshal(ours, &m) != nil {
		return metadata{}
	}
	return m
}

// branch is a Branch with its records.
type branch struct {
	Branch
	state    backend.Context
	parent   lineage.ContextID // zero if there is none, or no longer
	imported bool              // the metadata of its context is what its file says
}
