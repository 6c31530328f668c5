package usage

import (
	"context"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/structure"
)

// settle updates threads, contexts, branches and checkpoints to their state in the snapshot.
func (f *writer) settle(ctx context.Context) error {
	if err := f.Settle(ctx); err != nil {
		return err
	}
	for id := range f.Changes.Threads {
		if err := f.settleAbout(ctx, id); err != nil {
			return err
		}
	}
	for id, change := range f.Changes.Contexts {
		if change.Stated {
			if err := f.settleOrigin(ctx, id); err != nil {
				return err
			}
		}
	}
	for name := range f.Changes.Branches {
		if err := f.settleBranch(ctx, name.Thread, name.Name); err != nil {
			return err
		}
	}
	return f.Reach(ctx)
}

const deleteAbout = `DELETE FROM about WHERE thread IN (SELECT number FROM threads WHERE id = ?)`

// settleAbout stores the data about a thread that reports need, or deletes it if the thread is gone.
func (f *writer) settleAbout(ctx context.Context, id structure.ThreadID) error {
	t, err := f.Thread(ctx, id)
	gone := derivedfile.IsGone(err)
	if err != nil && !gone {
		return err
	}
	if !f.IsNew(id) {
		if err := f.Exec(ctx, deleteAbout, id[:]); err != nil {
			return err
		}
	}
	if gone {
		if err := f.Exec(ctx, `DELETE FROM contexts WHERE thread IN (SELECT number FROM threads WHERE id = ?)`, id[:]); err != nil {
			return err
		}
		return f.Exec(ctx, `DELETE FROM branches WHERE thread = ?`, id[:])
	}
	number, err := f.ThreadNumber(ctx, t.Home())
	if err != nil {
		return err
	}
	if !f.IsNew(id) {
		if err := f.Exec(ctx, `DELETE FROM contexts WHERE thread IN (SELECT number FROM threads WHERE id = ? AND number <> ?)`, id[:], number); err != nil {
			return err
		}
	}
	var agent, project, branch, machine string
	if rawjson.Valid(t.Metadata) {
		agent = rawjson.Str(rawjson.Get(t.Metadata, archive.KeyAgent))
		project = rawjson.Str(rawjson.Get(t.Metadata, archive.KeyProject))
		branch = rawjson.Str(rawjson.Get(t.Metadata, archive.KeyGitBranch))
		machine = rawjson.Str(rawjson.Get(t.Metadata, archive.KeyMachine))
	}
	return f.Exec(ctx, `INSERT INTO about VALUES (?, ?, ?, ?, ?, ?)`, number, id[:], agent, project, branch, machine)
}

// settleOrigin stores the origin of a context.
func (f *writer) settleOrigin(ctx context.Context, id structure.ContextID) error {
	c, err := f.Context(ctx, id)
	if derivedfile.IsGone(err) {
		return f.Exec(ctx, `DELETE FROM contexts WHERE id = ?`, id[:])
	}
	if err != nil || c.Thread.IsZero() {
		return err
	}
	t, err := f.Thread(ctx, c.Thread)
	if err != nil {
		return err
	}
	thread, err := f.ThreadNumber(ctx, t.Home())
	if err != nil {
		return err
	}
	return f.Exec(ctx, `INSERT OR REPLACE INTO contexts VALUES (?, ?, ?, ?, ?)`, id[:], thread, c.Parent[:], c.CreatedAt.UnixMilli(), lineage.AsideOf(c.Metadata))
}

// settleBranch stores the context of a branch.
func (f *writer) settleBranch(ctx context.Context, thread structure.ThreadID, name string) error {
	b, err := f.Snapshot.Branch(ctx, thread, name)
	if derivedfile.IsGone(err) {
		return f.Exec(ctx, `DELETE FROM branches WHERE thread = ? AND name = ?`, thread[:], name)
	}
	if err != nil {
		return err
	}
	return f.Exec(ctx, `INSERT OR REPLACE INTO branches VALUES (?, ?, ?, ?)`, thread[:], name, b.Context[:], int64(b.Order))
}
