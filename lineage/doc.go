// Package lineage is an embedded store for the conversations of LLM agents.
//
// Content (immutable blocks, addressed by SHA-256) is separate from structure (threads, contexts,
// spans, branches). A context is a cheap, mutable view of a history: a fork costs one small record,
// however long the history is, and equal bytes are stored once.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//
//		"github.com/lineage-store/lineage/lineage"
//	)
//
//	func main() {
//		if err := run(context.Background()); err != nil {
//			log.Fatal(err)
//		}
//	}
//
//	func run(ctx context.Context) error {
//		store, err := lineage.Open(ctx, "agent.lineage", lineage.Options{})
//		if err != nil {
//			return err
//		}
//		defer store.Close()
//		thread, err := store.CreateThread(ctx, lineage.ThreadOptions{UserID: "ada"})
//		if err != nil {
//			return err
//		}
//		main, err := thread.Active(ctx)
//		if err != nil {
//			return err
//		}
//		if _, err := main.Extend(ctx, lineage.User("What is a DAG?"), lineage.Assistant("A graph…")); err != nil {
//			return err
//		}
//		retry, err := main.Fork(ctx, lineage.ForkOptions{})
//		if err != nil {
//			return err
//		}
//		length, err := retry.Len(ctx)
//		if err != nil {
//			return err
//		}
//		fmt.Println("The fork has", length, "messages.")
//		return nil
//	}
//
// # Words
//
// A [Thread] is a conversation. A [Context] is a view of a history that can be extended and forked;
// a branch is a context with a name in its thread, and one branch of a thread is active. A span is
// one step of a history and holds one or more usages of content: messages, document revisions,
// assets. An [Entry] is a usage as read from a history. A checkpoint is a named, fixed position.
//
// # Opening a store
//
// [Open] opens a store in a directory, which several processes of a machine can use at the same
// time. [OpenMemory] opens an empty store in memory. [Store.View] gives read access to the records
// and commits of a store, for programs that need more than threads and contexts.
//
// Options are passed by value, as the last parameter. The zero value of each field is its default.
//
// # Changing and going back
//
// [Context.Extend] adds to a history. [Context.Fork] creates another view of it, also for
// subagents. [Thread.CreateBranch] starts a branch at an earlier span, so nothing is lost.
// [Context.MoveTo] moves a context to another span, and [Context.Undo] reverts the last move.
// [Thread.Update] and [Context.Update] change metadata and settings. [Store.Update] combines
// several changes in one commit. Which of them to use when, and which package for which task, is in
// docs/which.md.
//
// A name or id that does not exist is [ErrNotFound].
//
// # Tool calls
//
// [Calls] makes the message of a model that calls tools, and [ToolResult] the answer to a call.
// Messages as an API has them are kept as they are: an [Item] with the Type application/json. Package
// message reads the formats of many APIs. [Together] adds a call and its result as one step.
// [Context.Request] returns what to send to a model, in the format of a provider.
//
// # Errors
//
// Errors match the sentinels of this package with errors.Is: [ErrNotFound], [ErrExists],
// [ErrTipMoved] and others. They name their subject. A failed operation changes nothing, with one
// exception: [ErrUncertain] says that the disk failed during the write, so the change may or may
// not be stored. The store then accepts no more changes; open it again and check before repeating
// the change.
//
// # Concurrency
//
// Everything is safe for concurrent use by multiple goroutines. Appends to one context are
// serialised; [Context.ExtendFrom] appends only if the context is still where the caller last saw
// it.
package lineage
