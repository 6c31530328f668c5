// Package threads has one interface, Keeper, to the threads in a store or in a SQL database, and its two
// implementations.
package threads

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
)

// Keeper is what commands need of the threads in a store or in a SQL database. An empty id or name means the current
// thread or its active branch.
type Keeper interface {
	// ListThreads passes threads to each, with the titles under which they are shown.
	ListThreads(ctx context.Context, o *ThreadListOptions, each func(*records.Thread) error) error
	FindThread(ctx context.Context, name string) (*records.Thread, error)
	CreateThread(ctx context.Context, o *ThreadCreateOptions) (*records.Thread, error)
	SetThread(ctx context.Context, o *ThreadSetOptions) (*records.Thread, error)
	ThreadToDelete(ctx context.Context, name string) (*app.Destruction, error)
	// UserToDelete finds everything of a user.
	UserToDelete(ctx context.Context, user string) (*app.Destruction, error)

	ListBranches(ctx context.Context, thread string) ([]*records.Branch, error)
	CreateBranch(ctx context.Context, o *BranchOptions) (*records.Branch, error)
	SwitchTo(ctx context.Context, name string) (*records.Branch, error)
	// Rewind creates a branch at a position and switches to it.
	Rewind(ctx context.Context, to string) (*records.Branch, error)
	RewindInPlace(ctx context.Context, to string) error
	ListCheckpoints(ctx context.Context, thread string) ([]*records.Checkpoint, error)
	SetCheckpoint(ctx context.Context, o *CheckpointOptions) (*records.Checkpoint, error)
	NameToDelete(ctx context.Context, o *DeleteOptions) (*app.Destruction, error)

	// Append adds messages to a branch, and creates the first thread.
	Append(ctx context.Context, o *AppendOptions, items []lineage.Item) (*records.Appended, error)
	// History passes the messages that log prints to visit, with the names that point to them. It tells the reader
	// the calls before them.
	History(ctx context.Context, o *LogOptions, r *show.Reader, visit func(*show.ReadMessage, []graph.Label) error) error
	// Says returns the start of a message of a thread.
	Says(ctx context.Context, thread, id string) (string, error)
	Show(ctx context.Context, name string) error
	Tree(ctx context.Context, o *TreeOptions) error
	Search(ctx context.Context, o *SearchOptions) ([]*Hit, error)
}

// On returns the function that cobra calls for a command on a store or a database.
func On(a *app.App, mode app.OpenMode, run func(context.Context, Keeper, []string) error) func(*cobra.Command, []string) error {
	return a.Does(func(ctx context.Context, args []string) error {
		return Open(ctx, a, mode, func(ctx context.Context, in Keeper) error { return run(ctx, in, args) })
	})
}

// Open runs a command on the named store or database.
func Open(ctx context.Context, a *app.App, mode app.OpenMode, run func(context.Context, Keeper) error) error {
	if a.DSN() != "" {
		return openDatabase(ctx, a, mode, func(ctx context.Context, d *database) error { return run(ctx, d) })
	}
	return a.Open(ctx, mode, func(ctx context.Context, s *app.OpenStore) error { return run(ctx, InStore{s}) })
}

// Destroy deletes something in the named store or database: see app.Destroy.
func Destroy(ctx context.Context, a *app.App, yes bool, find func(context.Context, Keeper) (*app.Destruction, error)) error {
	open := func(ctx context.Context, mode app.OpenMode, use func(context.Context, Keeper) error) error {
		return Open(ctx, a, mode, use)
	}
	return app.Destroy(ctx, a, yes, app.Changing, open, find)
}

// InStore is the Keeper of a store.
type InStore struct{ *app.OpenStore }

// Collect returns the elements of a sequence.
func Collect[T any](all iter.Seq2[T, error]) (list []T, err error) {
	for element, err := range all {
		if err != nil {
			return nil, err
		}
		list = append(list, element)
	}
	return list, nil
}

func deleteChatText(title, id string, messages, branches int64) string {
	return fmt.Sprintf("delete thread %q (%s) with %s and %s", title, id, amount.Plural(messages, "message"), amount.Plural(branches, "branch"))
}

// firstThread creates the first thread of a store or database. Its title comes from the first items.
func firstThread(ctx context.Context, a *app.App, in Keeper, items []lineage.Item) error {
	r, err := in.CreateThread(ctx, &ThreadCreateOptions{Title: screen.Cut(screen.Line(string(items[0].Body)), 60)})
	if err == nil {
		a.Note("created the thread %q", r.Title)
	}
	return err
}
