package export

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// conversation is what is written under one heading: a thread or a single history.
type conversation struct {
	info lineage.ThreadInfo // only Active is set for a context outside of threads
	tips []tip
	// beside are the tips of logs and fields that an import kept beside the messages.
	beside []lineage.SpanRef
}

// tip is the tip of a context.
type tip struct {
	ref    lineage.SpanRef
	branch string // empty for a context without a branch
	active bool
	prompt string // the system prompt in force
}

// title returns the title under which a conversation is shown.
func (x *exporter) title(ctx context.Context, c *conversation) (string, error) {
	title, err := x.store.ShownTitle(ctx, c.info)
	return cmp.Or(title, transcript.Untitled), err
}

// each calls write for the conversations in scope. If the scope names no threads, one that was deleted before write puts out a
// part of it is left out: threads are read before others are written, and meanwhile a collection may remove their messages.
func (x *exporter) each(ctx context.Context, write func(*conversation) error) error {
	for conv, err := range x.conversations(ctx) {
		if err != nil {
			return err
		}
		before := x.written
		err := write(conv)
		if err != nil && x.written == before && x.o.Scope.Threads == nil && x.o.Scope.Context == nil && errors.Is(err, lineage.ErrNotFound) {
			if _, failed := x.store.Thread(ctx, conv.info.ID); errors.Is(failed, lineage.ErrNotFound) {
				continue
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// conversations yields the conversations in scope. If the scope names no threads, one that was deleted before it is read is
// left out.
func (x *exporter) conversations(ctx context.Context) iter.Seq2[*conversation, error] {
	return func(yield func(*conversation, error) bool) {
		if x.o.Scope.Context != nil {
			yield(x.oneContext(ctx, x.o.Scope.Context))
			return
		}
		threads, err := x.threads(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		x.conversationsOf(ctx, threads, x.o.Scope.Threads == nil)(yield)
	}
}

// conversationsOf yields the conversations of threads. If leaveOut is set, those that were deleted before they are read are left
// out.
func (x *exporter) conversationsOf(ctx context.Context, threads []lineage.ThreadID, leaveOut bool) iter.Seq2[*conversation, error] {
	return func(yield func(*conversation, error) bool) {
		total := len(threads)
		for len(threads) > 0 {
			read, err := backend.AtOnce(ctx, x.store.View(), func(s backend.Snapshot) (readThreads, error) { return readSome(ctx, s, threads, leaveOut) })
			if err != nil {
				yield(nil, err)
				return
			}
			threads = threads[read.threads:]
			for i, conv := range read.conversations {
				if !yield(conv, nil) {
					return
				}
				x.o.Progress(total-len(threads)-len(read.conversations)+i+1, total)
			}
		}
	}
}

// readThreads are the conversations of the next threads.
type readThreads struct {
	conversations []*conversation
	threads       int
}

const (
	threadsAtOnce = 32
	tipsAtOnce    = 10_000
)

// readSome reads the next thread, or some if reads are round trips.
func readSome(ctx context.Context, s backend.Snapshot, threads []lineage.ThreadID, leaveOut bool) (read readThreads, err error) {
	ahead, far := s.(backend.ThreadsAhead)
	if !far {
		threads = threads[:1]
	} else {
		threads = threads[:min(threadsAtOnce, len(threads))]
		if err := errors.Join(ahead.ThreadsAhead(ctx, threads), ahead.ReachAhead(ctx, threads)); err != nil {
			return read, err
		}
	}
	tips := 0
	for _, id := range threads {
		read.threads++
		info, err := readInfo(ctx, s, id)
		if leaveOut && errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if err != nil {
			return read, err
		}
		conv, err := readThread(ctx, s, info)
		if err != nil {
			return read, err
		}
		read.conversations = append(read.conversations, conv)
		if tips += len(conv.tips) + len(conv.beside); tips >= tipsAtOnce {
			break
		}
	}
	return read, nil
}

// threads returns the threads in scope. Those of the whole store are the oldest first.
func (x *exporter) threads(ctx context.Context) (ids []lineage.ThreadID, err error) {
	if x.o.Scope.Threads != nil {
		for _, t := range x.o.Scope.Threads {
			ids = append(ids, t.ID())
		}
		return ids, nil
	}
	var all []lineage.ThreadInfo
	for t, err := range x.store.View().Threads(ctx, lineage.ThreadID{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, lineage.ThreadInfo{ID: t.ID, SourceID: t.SourceID, CreatedAt: t.CreatedAt})
	}
	slices.SortFunc(all, func(a, b lineage.ThreadInfo) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.SourceID, b.SourceID), bytes.Compare(a.ID[:], b.ID[:]))
	})
	for i := range all {
		ids = append(ids, all[i].ID)
	}
	return ids, nil
}

func (x *exporter) oneContext(ctx context.Context, c *lineage.Context) (*conversation, error) {
	return backend.AtOnce(ctx, x.store.View(), func(s backend.Snapshot) (*conversation, error) {
		state, err := s.Context(ctx, c.ID())
		if err != nil {
			return nil, err
		}
		conv := &conversation{}
		if !state.Thread.IsZero() {
			if conv.info, err = readInfo(ctx, s, state.Thread); err != nil {
				return nil, err
			}
		}
		conv.info.Active = c.ID()
		prompt, err := make(backend.Prompts).Of(ctx, s, c.ID())
		conv.tips = []tip{{state.Tip, "", true, prompt}}
		return conv, err
	})
}

func readInfo(ctx context.Context, s backend.Reader, id lineage.ThreadID) (lineage.ThreadInfo, error) {
	thread, err := s.Thread(ctx, id)
	if err != nil {
		return lineage.ThreadInfo{}, err
	}
	last, err := s.LastMessage(ctx, thread.Home())
	return lineage.ThreadInfoOf(backend.ThreadListing{Thread: thread, LastMessage: last}), err
}

// readThread reads the tips of a thread's contexts: branches first, then unnamed ones, oldest first.
func readThread(ctx context.Context, s backend.Reader, info lineage.ThreadInfo) (*conversation, error) {
	conv := &conversation{info: info}
	branches, err := backend.BranchesByCreation(ctx, s, info.ID)
	if err != nil {
		return nil, err
	}
	named := make(map[lineage.ContextID]bool, len(branches))
	prompts := make(backend.Prompts)
	add := func(c *backend.Context, branch string) error {
		if c.Tip.IsZero() {
			return nil
		}
		prompt, err := prompts.Of(ctx, s, c.ID)
		conv.tips = append(conv.tips, tip{c.Tip, branch, branch != "" && c.ID == info.Active, prompt})
		return err
	}
	for _, b := range branches {
		named[b.Context] = true
		c, err := s.Context(ctx, b.Context)
		if err == nil {
			err = add(&c, b.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	for c, err := range s.Contexts(ctx, info.ID, lineage.ContextID{}) {
		if err != nil {
			return nil, err
		}
		if named[c.ID] {
			continue
		}
		if lineage.BesideMessages(c.Metadata) {
			conv.beside = append(conv.beside, c.Tip)
		} else if err := add(&c, ""); err != nil {
			return nil, err
		}
	}
	return conv, nil
}
