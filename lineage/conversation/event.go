package conversation

import (
	"slices"
	"sync"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
)

// EventKind is the kind of a change.
type EventKind string

// The kinds of event.
const (
	// BranchCreated has ID, Name and ParentID.
	BranchCreated EventKind = "branch:created"
	// BranchForked follows BranchCreated, and BranchCheckout follows it. It has From, To and Name, and
	// MessageIndex if one was given.
	BranchForked EventKind = "branch:forked"
	// BranchCheckout has From and To. Each change of the current branch has one: also a fork, and the deletion of the
	// current branch, before BranchDeleted.
	BranchCheckout EventKind = "branch:checkout"
	// BranchMerged has Source, Target, Strategy and Changed.
	BranchMerged EventKind = "branch:merged"
	// BranchDeleted has ID.
	BranchDeleted EventKind = "branch:deleted"
	// BranchRenamed has ID and Name.
	BranchRenamed EventKind = "branch:renamed"
)

// Event is a change of a conversation's branches. Kind determines which fields are set. Branches are given by
// id.
type Event struct {
	Kind EventKind
	ID   string
	// Name is the branch's name for people.
	Name           string
	ParentID       string
	From, To       string
	MessageIndex   *int
	Source, Target string
	Strategy       MergeStrategy
	// Changed reports whether a merge changed the target, which may have had all messages of the source.
	Changed bool
}

// On has a listener called with every event of a change made through this
// Conversation, or through another one of the same session and store, from now until cancel is called.
//
// A listener is called after the change was committed, one event at a time and in the
// order of the changes, by a goroutine that made a change, and before that one's call
// returns unless another goroutine is delivering already. No lock is held: a listener
// may change the conversation, and hears of that after the event it is at. So a listener that
// applies the events to the branches as they were knows the branches and which one is current. Changes
// made by other processes, or to the thread by other means, have no events.
func (c *Conversation) On(listener func(Event)) (cancel func()) {
	all := c.announcers()
	all.mu.Lock()
	defer all.mu.Unlock()
	a := all.byThread[c.thread.ID()]
	if a == nil {
		a = new(announcer)
		all.byThread[c.thread.ID()] = a
	}
	hear := &listener
	a.listeners = append(a.listeners, hear)
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		a.listeners = slices.DeleteFunc(a.listeners, func(other *func(Event)) bool { return other == hear })
		if len(a.listeners) == 0 && len(a.waiting) == 0 && all.byThread[c.thread.ID()] == a {
			delete(all.byThread, c.thread.ID())
		}
	}
}

// announcers has an announcer for each thread of a store with listeners.
type announcers struct {
	mu       sync.Mutex // guards the announcers, too
	byThread map[lineage.ThreadID]*announcer
	// changing are locks of threads. Their holders put events in the order of the changes, and keep the current
	// branch from changing under a message that is being added. Threads may share one.
	changing [64]sync.RWMutex
}

// changing returns the lock for changes of the conversation. No listener is called while it is held.
func (c *Conversation) changing() *sync.RWMutex {
	id, all := c.thread.ID(), c.announcers()
	return &all.changing[int(id[len(id)-1])%len(all.changing)]
}

// attachment is the key of a store's announcers.
type attachment struct{}

func (c *Conversation) announcers() *announcers {
	return write.Of(c.store).Attached(attachment{}, func() any { return &announcers{byThread: make(map[lineage.ThreadID]*announcer)} }).(*announcers)
}

// announcer delivers the events of a thread to listeners, in order and without holding a lock.
type announcer struct {
	listeners  []*func(Event)
	waiting    []Event
	delivering bool
}

// enqueue adds events to be delivered, in the order of the calls.
func (c *Conversation) enqueue(events ...Event) {
	all := c.announcers()
	all.mu.Lock()
	defer all.mu.Unlock()
	if a := all.byThread[c.thread.ID()]; a != nil {
		a.waiting = append(a.waiting, events...)
	}
}

// deliver delivers the pending events, unless another call does so already, possibly one further up this
// stack.
func (c *Conversation) deliver() {
	all := c.announcers()
	all.mu.Lock()
	defer all.mu.Unlock()
	a := all.byThread[c.thread.ID()]
	if a == nil || a.delivering {
		return
	}
	a.delivering = true
	defer func() { a.delivering = false }()
	for len(a.waiting) > 0 {
		e := a.waiting[0]
		a.waiting = a.waiting[1:]
		for _, hear := range slices.Clone(a.listeners) {
			if slices.Contains(a.listeners, hear) { // not cancelled meanwhile
				all.tell(*hear, e)
			}
		}
	}
}

// tell calls a listener. It releases the lock of its caller meanwhile.
func (all *announcers) tell(hear func(Event), e Event) {
	all.mu.Unlock()
	defer all.mu.Lock()
	if e.MessageIndex != nil {
		index := *e.MessageIndex
		e.MessageIndex = &index
	}
	hear(e)
}

// MergeStrategy selects how Conversation.Merge combines two branches.
type MergeStrategy int
