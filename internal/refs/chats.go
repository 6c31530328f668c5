package refs

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Chats finds things by their names in a chat store.
type Chats struct {
	store chat.Store
	// id is the id of the current thread, or empty.
	id string
}

// NewChats returns a resolver for names as used in the thread with the given id, which may be empty.
func NewChats(store chat.Store, id string) *Chats { return &Chats{store: store, id: id} }

// ChatRef is the meaning of a name: a message of a thread, and the branch or checkpoint that names it, if any.
type ChatRef struct {
	Text       string
	Branch     *chat.Branch
	Checkpoint string
	// Message is the id of the message, empty for a branch without messages.
	Message string
	Moved   bool
}

// Chat returns the thread with a name: its id, the beginning or end of its id, or its title.
func (r *Chats) Chat(ctx context.Context, text string) (*chat.Chat, error) {
	c, err := r.store.Chat(ctx, text)
	if c != nil || err != nil {
		return c, err
	}
	var found, all []chat.Chat
	var names []string
	for c, err := range r.titles(ctx) {
		if err != nil {
			return nil, err
		}
		if strings.EqualFold(c.Title, text) || len(text) >= minShort && matchesAny(c.ID, text) {
			found = append(found, c)
		}
		if len(found) == 0 {
			all = append(all, c)
		}
		if len(names) < maxThreads {
			names = append(names, c.ID, c.Title)
		}
	}
	if len(found) == 0 {
		if found, err = r.shown(ctx, text, all); err != nil {
			return nil, err
		}
	}
	match, err := one("thread", text, found, func(c chat.Chat) Match { return Match{ID: c.ID, Title: c.Title} })
	if err != nil {
		return nil, err
	}
	if match == nil {
		return nil, &UnknownError{Kind: "thread", Text: text, Near: Nearest(text, names)}
	}
	if c, err = r.store.Chat(ctx, match.ID); c == nil && err == nil {
		err = &UnknownError{Kind: "thread", Text: text} // deleted meanwhile
	}
	return c, err
}

// shown returns those chats that are listed under a title; most untitled ones are listed under their first words.
func (r *Chats) shown(ctx context.Context, text string, all []chat.Chat) (found []chat.Chat, err error) {
	for _, c := range all {
		if c.Title, err = chat.ShownTitle(ctx, r.store, &c); err != nil {
			return nil, err
		}
		if isTitle(c.Title, text) {
			found = append(found, c)
		}
	}
	return found, nil
}

// titled is a store that can yield the ids and titles of threads more cheaply than ListChats.
type titled interface {
	Titles(ctx context.Context) iter.Seq2[chat.Chat, error]
}

// titles yields at least the id and title of every thread.
func (r *Chats) titles(ctx context.Context) iter.Seq2[chat.Chat, error] {
	if s, ok := r.store.(titled); ok {
		return s.Titles(ctx)
	}
	return func(yield func(chat.Chat, error) bool) {
		for c, err := range r.store.ListChats(ctx, chat.ListOptions{}) {
			if !yield(c.Chat, err) || err != nil {
				return
			}
		}
	}
}

// Find returns the meaning of a name.
func (r *Chats) Find(ctx context.Context, text string) (*ChatRef, error) {
	if r.id == "" {
		return nil, &NoThreadError{"database"}
	}
	found, steps, err := find(ctx, text, r.named, r.names)
	if err != nil {
		return nil, err
	}
	found.Text = text
	return found, r.walk(ctx, found, steps)
}

// Branch returns the branch with a name.
func (r *Chats) Branch(ctx context.Context, text string) (*chat.Branch, error) {
	found, err := r.Find(ctx, text)
	if err != nil {
		return nil, err
	}
	if found.Branch == nil || found.Moved {
		return nil, &KindError{Text: text, Want: "a branch"}
	}
	return found.Branch, nil
}

func (r *Chats) named(ctx context.Context, name string) (*ChatRef, error) {
	if name == "" || name == "@" {
		b, err := r.store.ActiveBranch(ctx, r.id)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, fmt.Errorf("active branch of thread %q: %w", shorten(r.id), lineage.ErrNotFound)
		}
		return &ChatRef{Branch: b, Message: string(b.HeadMessageID)}, nil
	}
	b, err := r.store.Branch(ctx, r.id, name)
	if err != nil {
		return nil, err
	}
	if b != nil {
		return &ChatRef{Branch: b, Message: string(b.HeadMessageID)}, nil
	}
	c, err := r.store.Checkpoint(ctx, r.id, name)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return &ChatRef{Checkpoint: name, Message: c.MessageID}, nil
	}
	m, err := r.store.Message(ctx, r.id, name)
	if err != nil {
		return nil, err
	}
	if m != nil {
		return &ChatRef{Message: m.ID}, nil
	}
	if len(name) < minShort {
		return nil, nil
	}
	graph, err := r.store.Graph(ctx, r.id)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, n := range graph.Nodes {
		if matchesAny(n.ID, name) {
			found = append(found, n.ID)
		}
	}
	id, err := one("message", name, found, func(id string) Match { return Match{ID: id} })
	if id == nil {
		return nil, err
	}
	return &ChatRef{Message: *id}, nil
}

func (r *Chats) walk(ctx context.Context, found *ChatRef, steps []step) error {
	if len(steps) == 0 {
		return nil
	}
	var chain []string
	for m, err := range r.store.MessageChain(ctx, r.id, found.Message) {
		if err != nil {
			return err
		}
		chain = append(chain, m.ID)
	}
	for _, s := range steps {
		n := uint64(len(chain))
		switch {
		case s.kind == moved:
			return fmt.Errorf("%q: a database does not keep moves of branches: %w", shorten(found.Text), lineage.ErrInvalid)
		case s.n > n:
			return &StepError{Text: found.Text, Step: s.text, Length: n}
		case s.kind == back:
			chain = chain[:n-s.n]
		default:
			chain = chain[:s.n]
		}
	}
	found.Moved, found.Message = true, ""
	if len(chain) > 0 {
		found.Message = chain[len(chain)-1]
	}
	return nil
}

func (r *Chats) names(ctx context.Context) ([]string, error) {
	branches, err := r.store.ListBranches(ctx, r.id)
	if err != nil {
		return nil, err
	}
	checkpoints, err := r.store.ListCheckpoints(ctx, r.id)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, b := range branches {
		names = append(names, b.Name)
	}
	for _, c := range checkpoints {
		names = append(names, c.Name)
	}
	return names, nil
}
