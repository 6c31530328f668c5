package chat

import (
	"context"
	"errors"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// On returns the chats in a lineage store. It keeps nothing of its own: any number
// of them can be made for a store, which stays its owner's to close.
//
// A chat is a thread that keeps its messages, its id the thread's source id. A message is
// a span of the thread, its id the source id that it was added with. A branch and a
// checkpoint are what they are there. So threads and messages that come from elsewhere,
// such as an agent that uses the library, show too. Those without an id of their own, and
// those that a thread shares with another, have ids that follow from the thread and the
// span. Message ids are unique in a chat, not in the store: several chats may have messages with the
// same id. What was erased reads as Message.Data says. It cannot search: see OnSearchable.
//
// The store may be that of a transaction: what is changed is then part of it.
func On(store *lineage.Store) Store { return OnSearchable(store, nil) }

// OnSearchable is On with something to search the chats with. Package
// lineage/search has one.
func OnSearchable(store *lineage.Store, by Searcher) Store {
	return &onStore{state: latest(store), searcher: by}
}

type onStore struct {
	state
	searcher Searcher
}

// state is a state of a store that chats are read from: the latest, or the one inside a
// transaction, whose store is that of the transaction.
type state struct {
	store *lineage.Store
	from  backend.Reader
}

func latest(store *lineage.Store) state {
	return state{store: store, from: write.Of(store).Engine()}
}

// update changes the store in one transaction, that of the caller if there is one: see
// lineage.Store.Update. do works on the state inside of it.
func (s *state) update(ctx context.Context, do func(in *state) error) error {
	if _, inside := s.from.(*write.Stage); inside {
		return do(s)
	}
	return s.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		in := latest(tx.Store)
		in.stage().AllowLarge() // what a caller gives at once is in memory already
		return do(&in)
	})
}

// change is a chat in the state of a transaction, in which it is changed, or in the latest one, to look only.
type change struct {
	*state
	t      *structure.Thread // as it was when the change began
	thread *lineage.Thread
}

// change changes a chat, which must be there, in one transaction.
func (s *state) change(ctx context.Context, chatID string, do func(c *change) error) error {
	return s.update(ctx, func(in *state) error {
		t, err := in.thread(ctx, chatID)
		if err != nil {
			return err
		}
		thread, err := in.store.Thread(ctx, t.ID)
		if err != nil {
			return err
		}
		return do(&change{state: in, t: t, thread: thread})
	})
}

// stage is what the state of a transaction is read from.
func (s *state) stage() *write.Stage { return s.from.(*write.Stage) }

// committed is the state that a transaction began with, for listings that are refused inside
// of it, or the latest state.
func (s *state) committed() *state {
	switch from := s.from.(type) {
	case *write.Stage:
		return &state{store: s.store, from: from.Reader}
	case staged:
		return &state{store: s.store, from: from.Reader}
	}
	return s
}

func (s *state) runs(ctx context.Context) structure.RunLookup { return backend.Runs(ctx, s.from) }

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// moment returns a time of the caller's, or now.
func moment(millis int64) time.Time {
	if millis == 0 {
		return now()
	}
	return time.UnixMilli(millis).UTC()
}

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// ignoreNotFound returns the error of a lookup whose answer is none where there is nothing.
func ignoreNotFound(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// orNone returns what was found, nil if there is nothing.
func orNone[T any](found T, err error) (*T, error) {
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return &found, nil
}

// SearchMessages implements Store.
func (s *onStore) SearchMessages(ctx context.Context, chatID, query string, o SearchOptions) ([]SearchResult, error) {
	if s.searcher == nil {
		return nil, ErrSearchUnavailable
	}
	return s.searcher.SearchMessages(ctx, chatID, query, o)
}
