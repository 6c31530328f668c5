// Package threads has the threads that commands work on, in a store or in a SQL database: one interface, Keeper, and
// its two implementations.
package threads

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
)

// Keeper is what commands need of the threads in a store or in a SQL database. Where an id
// or a name is empty, the current thread or its active branch is meant.
type Keeper interface {
	ListThreads(ctx context.Context, o *ThreadListOptions) ([]*records.Thread, error)
	FindThread(ctx context.Context, name string) (*records.Thread, error)
	// TitleOf returns the title under which a thread is shown.
	TitleOf(ctx context.Context, r *records.Thread) (string, error)
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
	// History visits the messages that log prints, with the names that point to them. The reader learns
	// the calls before them.
	History(ctx context.Context, o *LogOptions, r *show.Reader, visit func(*show.ReadMessage, []graph.Label) error) error
	// Says returns the start of the message of a thread with an id.
	Says(ctx context.Context, thread, id string) (string, error)
	Show(ctx context.Context, name string) error
	Tree(ctx context.Context, o *TreeOptions) error
	Search(ctx context.Context, o *SearchOptions) ([]*Hit, error)
}

// On returns what cobra calls for a command that works on a store or a database.
func On(a *app.App, mode app.OpenMode, run func(context.Context, Keeper, []string) error) func(*cobra.Command, []string) error {
	return a.Does(func(ctx context.Context, args []string) error {
		return Open(ctx, a, mode, func(ctx context.Context, in Keeper) error { return run(ctx, in, args) })
	})
}

// Open runs a command on the store or database that is named.
func Open(ctx context.Context, a *app.App, mode app.OpenMode, run func(context.Context, Keeper) error) error {
	if a.DSN() != "" {
		return openDatabase(ctx, a, mode, func(ctx context.Context, d *database) error { return run(ctx, d) })
	}
	return a.Open(ctx, mode, func(ctx context.Context, s *app.Session) error { return run(ctx, InStore{s}) })
}

// Destroy destroys something of the threads that are named: see app.Destroy.
func Destroy(ctx context.Context, a *app.App, yes bool, find func(context.Context, Keeper) (*app.Destruction, error)) error {
	open := func(ctx context.Context, mode app.OpenMode, use func(context.Context, Keeper) error) error {
		return Open(ctx, a, mode, use)
	}
	return app.Destroy(ctx, a, yes, app.Changing, open, find)
}

// InStore is the threads of a store.
type InStore struct{ *app.Session }

// PageOf returns the first elements of a sequence, and whether there are more. A limit of 0 is any number.
func PageOf[T any](all iter.Seq2[T, error], limit int) (page []T, more bool, err error) {
	for element, err := range all {
		if err != nil {
			return nil, false, err
		}
		if limit > 0 && len(page) == limit {
			return page, true, nil
		}
		page = append(page, element)
	}
	return page, false, nil
}

func deleteChatText(title, id string, messages, branches int64) string {
	return fmt.Sprintf("delete thread %q (%s) with %s and %s", title, id, screen.Plural(messages, "message"), screen.Plural(branches, "branch"))
}

// firstThread creates the thread of a store or database that has none, titled by how it begins.
func firstThread(ctx context.Context, a *app.App, in Keeper, items []lineage.Item) error {
	r, err := in.CreateThread(ctx, &ThreadCreateOptions{Title: screen.Cut(screen.Line(string(items[0].Body)), 60)})
	if err == nil {
		a.Note("created the thread %q", r.Title)
	}
	return err
}
