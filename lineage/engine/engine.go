package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage/chat"
)

// ErrNoMessages is returned when an operation needs a saved message and there is none.
var ErrNoMessages = errors.New("no messages in conversation")

// Options configure an engine.
type Options struct {
	// ChatID and UserID are required. If the chat does not exist, it is created for the user.
	ChatID, UserID string
	// Title is the title of a new chat.
	Title string
	// Metadata, when not nil, is a JSON object that is merged into the chat's metadata, as
	// UpdateChat does.
	Metadata json.RawMessage
	// Branch, when not empty, is the branch to work on, for example for a side question or a
	// subagent. The engine then never changes the active branch of the chat. Default: the active
	// branch.
	Branch string
	// Decode, when not nil, reads messages stored in a format of the caller. If it returns false,
	// package message reads them.
	Decode func(chat.Message) (m UIMessage, known bool, err error)
}

// Engine is an open conversation: context for the prompt, pending messages, and the branch of a
// chat that they are saved to. It is safe for concurrent use, and so are several engines on one
// chat, in one or more processes.
type Engine struct {
	store  chat.Store
	chatID string
	decode func(chat.Message) (UIMessage, bool, error)
	// keepActive prevents changes of the chat's active branch.
	keepActive bool

	// busy serialises the operations that use the store.
	busy semaphore.Semaphore

	// mu guards the fields below. It is not held while the store is used.
	mu        sync.Mutex
	fragments []Fragment
	pending   []*Fragment // never changed; a pointer identifies a call of Set
	branch    chat.Branch // as last read
	unsure    *attempt    // a save with an unknown result
}

// named returns the branch with a name.
func (e *Engine) named(ctx context.Context, name string) (*chat.Branch, error) {
	b, err := e.store.Branch(ctx, e.chatID, name)
	if err == nil && b == nil {
		err = e.noBranch(name)
	}
	return b, err
}

// active returns the active branch of the chat. If other programs left the chat without one, its
// main branch becomes active.
func (e *Engine) active(ctx context.Context) (*chat.Branch, error) {
	b, err := e.store.ActiveBranch(ctx, e.chatID)
	if err != nil || b != nil {
		return b, err
	}
	b, err = e.store.Branch(ctx, e.chatID, chat.MainBranch)
	if err != nil {
		return nil, err
	}
	if b == nil {
		made, err := e.store.CreateBranch(ctx, chat.Branch{ChatID: e.chatID, Name: chat.MainBranch, IsActive: true})
		if errors.Is(err, chat.ErrExists) { // another process has created it
			return e.active(ctx)
		}
		return &made, err
	}
	b.IsActive = true
	return b, e.store.SetActiveBranch(ctx, e.chatID, b.ID)
}

// ChatID returns the id of the chat.
func (e *Engine) ChatID() string { return e.chatID }

// Branch returns the name of the branch that the engine is on.
func (e *Engine) Branch() string { return e.seen().Name }

// Head returns the last message of the branch as last read, empty if the branch is empty.
func (e *Engine) Head() chat.Ref { return e.seen().HeadMessageID }

// Set adds messages to the pending ones and other fragments to the context. If one of them cannot
// be rendered or saved, none is added.
func (e *Engine) Set(fragments ...Fragment) error {
	context, messages, err := sorted(fragments)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fragments = append(e.fragments, context...)
	e.pending = append(e.pending, messages...)
	return nil
}

// Replace replaces the fragments for which match returns true, including pending messages. New
// context is placed where the first replaced context was, new messages where the first replaced
// message was; without a replaced one, they are appended. If a new fragment cannot be rendered or
// saved, nothing changes. Replace returns the number of replaced fragments. match must not use the
// engine.
func (e *Engine) Replace(match func(Fragment) bool, fragments ...Fragment) (int, error) {
	context, messages, err := sorted(fragments)
	if err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var replaced, dropped int
	e.fragments, replaced = replace(e.fragments, match, context)
	e.pending, dropped = replace(e.pending, func(f *Fragment) bool { return match(*f) }, messages)
	return replaced + dropped, nil
}

// Remove removes the fragments for which match returns true, including pending messages, and
// returns their number.
func (e *Engine) Remove(match func(Fragment) bool) int {
	n, _ := e.Replace(match)
	return n
}

// replace replaces items of a list by others and returns the number of replaced items.
func replace[T any](list []T, match func(T) bool, by []T) (out []T, replaced int) {
	at := -1
	for _, item := range list {
		switch {
		case !match(item):
			out = append(out, item)
		case at < 0:
			at = len(out)
		}
	}
	if at < 0 {
		at = len(out)
	}
	replaced = len(list) - len(out)
	return slices.Insert(out, at, by...), replaced
}

// sorted validates fragments and splits them into context and messages.
func sorted(fragments []Fragment) (context []Fragment, messages []*Fragment, err error) {
	for _, f := range fragments {
		if err := f.Validate(); err != nil {
			return nil, nil, err
		}
		if !IsMessage(f) {
			context = append(context, f)
			continue
		}
		if f, err = identified(f); err != nil {
			return nil, nil, err
		}
		messages = append(messages, &f)
	}
	return context, messages, nil
}

// identified sets the id of a message without one: that in its stored form, else a new one.
func identified(f Fragment) (Fragment, error) {
	if f.ID != "" || IsLazy(f) {
		return f, nil
	}
	data, err := f.Codec.Encode()
	if err != nil {
		return f, messageError("", err)
	}
	if m, err := DecodeMessage(data); err == nil {
		f.ID = m.ID
	}
	if f.ID == "" {
		f.ID = uuid.NewString()
	}
	return f, nil
}

// Fragments returns the context, in the order it was set.
func (e *Engine) Fragments() []Fragment {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.fragments)
}

// Pending returns the unsaved messages in the order of Set.
func (e *Engine) Pending() []Fragment {
	var fragments []Fragment
	for _, f := range e.waiting() {
		fragments = append(fragments, *f)
	}
	return fragments
}

func (e *Engine) waiting() []*Fragment {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.pending)
}

// begin waits until no other operation uses the store. end must be called.
func (e *Engine) begin(ctx context.Context) (end func(), err error) {
	if err := e.busy.Acquire(ctx); err != nil {
		return nil, err
	}
	return e.busy.Release, nil
}

// seen returns the branch as last read.
func (e *Engine) seen() chat.Branch {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.branch
}

// findBranch returns the branch with an id, nil if there is none. It tries name first.
func (e *Engine) findBranch(ctx context.Context, name, id string) (*chat.Branch, error) {
	b, err := e.store.Branch(ctx, e.chatID, name)
	if err != nil || b != nil && b.ID == id {
		return b, err
	}
	infos, err := e.store.ListBranches(ctx, e.chatID)
	for i := range infos {
		if infos[i].ID == id {
			return &infos[i].Branch, err
		}
	}
	return nil, err
}

func (e *Engine) noBranch(name string) error {
	return &chat.Error{Subject: chat.SubjectBranch, ID: name, ChatID: e.chatID, Err: chat.ErrNotFound}
}

func messageError(id string, err error) error {
	return &chat.Error{Subject: chat.SubjectMessage, ID: id, Err: err}
}

func now() int64 { return time.Now().UnixMilli() }

// attempt is an attempt to save.
type attempt struct {
	request chat.AppendRequest
	pending []*Fragment // the fragments to save
}
