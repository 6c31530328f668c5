// Package lineage is an embedded store for the conversations of LLM agents.
//
// Content (immutable blocks under their SHA-256) is kept apart from structure
// (threads, contexts, spans, branches). A context is a cheap, mutable view of a
// history: forking one costs a small record whatever the history holds, and the
// same bytes are stored once wherever they appear.
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
// A [Thread] is a conversation. A [Context] is a view of a history that can be
// extended and forked; a branch is a context with a name in its thread, and one
// of a thread's branches is active. A span is one step of a history and holds
// one or more usages of content: messages, document revisions, assets. An
// [Entry] is a usage as it is read. A checkpoint is a named, fixed position.
//
// # Opening a store
//
// [Open] opens a store in a directory, which many processes of a machine can have open at once, and
// [OpenMemory] an empty one in memory. [Store.View] reads the records of a store and follows its commits, for
// programs that need more than threads and contexts.
//
// Options are structs that are passed by value, as the last parameter. The zero value of a field is
// its default.
//
// # Changing and going back
//
// [Context.Extend] adds to a history and [Context.Fork] makes another one, of a subagent too.
// [Thread.CreateBranch] goes back without losing anything: it begins a branch at an earlier span.
// [Context.MoveTo] moves a context itself, back or elsewhere, and [Context.Undo] takes the last move
// back. [Thread.Update] and [Context.Update] change what is kept with a thread or context.
// [Store.Update] makes several changes one commit.
//
// A name or id of which there is nothing is [ErrNotFound].
//
// # Calls of tools
//
// A call of a tool and its result are messages of JSON, as an API has them: Type
// application/json and the body {"content": …, "tool_calls": […]} or
// {"tool_call_id": …, "content": …}. Package message reads those of many formats, and writes
// a history in the format of another. [Together] makes one step of both.
//
// # Errors
//
// Errors match the sentinels of this package with errors.Is: [ErrNotFound],
// [ErrExists], [ErrTipMoved] and the others; they name their subject. An
// operation that fails leaves nothing of itself behind, but for one that fails with
// [ErrUncertain]: the disk failed while it was written down, and it may be there or
// not. The store then takes no more changes; after opening it again, look at what is
// there before saying it again.
//
// # Concurrency
//
// Everything is safe for use by many goroutines. Appends to one context are
// serialised; [Context.ExtendFrom] appends only if the context still stands where
// the caller last saw it.
package lineage
