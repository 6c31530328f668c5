package main

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
)

// threads is what commands need of the threads in a store or in a SQL database. Where an id
// or a name is empty, the current thread or its active branch is meant.
type threads interface {
	listThreads(ctx context.Context, o *threadListOptions) ([]*records.Thread, error)
	findThread(ctx context.Context, name string) (*records.Thread, error)
	// titleOf returns the title under which a thread is shown.
	titleOf(ctx context.Context, r *records.Thread) (string, error)
	createThread(ctx context.Context, o *threadCreateOptions) (*records.Thread, error)
	setThread(ctx context.Context, o *threadSetOptions) (*records.Thread, error)
	threadToDelete(ctx context.Context, name string) (*destruction, error)

	listBranches(ctx context.Context, thread string) ([]*records.Branch, error)
	createBranch(ctx context.Context, o *branchOptions) (*records.Branch, error)
	switchTo(ctx context.Context, name string) (*records.Branch, error)
	// rewind creates a branch at a position and switches to it.
	rewind(ctx context.Context, to string) (*records.Branch, error)
	rewindInPlace(ctx context.Context, to string) error
	listCheckpoints(ctx context.Context, thread string) ([]*records.Checkpoint, error)
	setCheckpoint(ctx context.Context, o *checkpointOptions) (*records.Checkpoint, error)
	nameToDelete(ctx context.Context, o *deleteOptions) (*destruction, error)

	// append adds messages to a branch, and creates the first thread.
	append(ctx context.Context, o *appendOptions, items []lineage.Item) (*records.Appended, error)
	// history visits the messages that log prints, with the names that point to them. The reader learns
	// the calls before them.
	history(ctx context.Context, o *logOptions, r *reader, visit func(*readMessage, []graph.Label) error) error
	// says returns the start of the message of a thread with an id.
	says(ctx context.Context, thread, id string) (string, error)
	show(ctx context.Context, name string) error
	tree(ctx context.Context, o *treeOptions) error
	search(ctx context.Context, o *searchOptions) ([]*hit, error)
}

// onThreads returns what cobra calls for a command that works on a store or a database.
func (a *app) onThreads(mode openMode, run func(context.Context, threads, []string) error) func(*cobra.Command, []string) error {
	return a.does(func(ctx context.Context, args []string) error {
		return a.openThreads(ctx, mode, func(ctx context.Context, in threads) error { return run(ctx, in, args) })
	})
}

// openThreads runs a command on the store or database that is named.
func (a *app) openThreads(ctx context.Context, mode openMode, run func(context.Context, threads) error) error {
	if a.dsn() != "" {
		return a.openDatabase(ctx, mode, func(ctx context.Context, d *database) error { return run(ctx, d) })
	}
	return a.open(ctx, mode, func(ctx context.Context, s *session) error { return run(ctx, inStore{s}) })
}

// destroyInThreads destroys something of the threads that are named: see destroy.
func destroyInThreads(ctx context.Context, a *app, yes bool, find func(context.Context, threads) (*destruction, error)) error {
	open := func(ctx context.Context, mode openMode, use func(context.Context, threads) error) error {
		return a.openThreads(ctx, mode, use)
	}
	return destroy(ctx, a, yes, changing, open, find)
}

// inStore is the threads of a store.
type inStore struct{ *session }

// pageOf returns the first elements of a sequence, and whether there are more. A limit of 0 is any number.
func pageOf[T any](all iter.Seq2[T, error], limit int) (page []T, more bool, err error) {
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
