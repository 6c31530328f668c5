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

// On returns the chats in a lineage store. It has no state of its own: any number of them may be created for a store,
// and the owner of the store closes it.
//
// A chat is a thread that keeps its messages. Its id is the source id of the thread. A message is a span of the
// thread, and its id is the source id that it was added with. Branches and checkpoints are those of the thread. So
// threads and messages from other sources, such as an agent that uses the library, are visible too. If they have no
// id of their own, or if a thread shares them with another one, their ids are derived from the thread and the span.
// Ids of messages and checkpoints are unique in a chat, but not in the store: several chats may have the same. For
// erased content see Message.Data. These chats cannot be searched: see OnSearchable.
//
// The store may be that of a transaction: changes are then part of it.
func On(store *lineage.Store) Store { return OnSearchable(store, nil) }

// OnSearchable is On with a searcher. Package lineage/search has one.
func OnSearchable(store *lineage.Store, by Searcher) Store {
	return &onStore{state: latest(store), searcher: by}
}

type onStore struct {
	state
	searcher Searcher
}

// state is a state of a store from which chats are read: the current state, or that inside a transaction. Inside,
// store is the transaction's.
type state struct {
	store *lineage.Store
	from  backend.Reader
}

func latest(store *lineage.Store) state {
	return state{store: store, from: write.Of(store).Engine()}
}

// update changes the store in one transaction, that of the caller if there is one: see lineage.Store.Update. do works on
// the state inside it.
func (s *state) update(ctx context.Context, do func(in *state) error) error {
	if _, inside := s.from.(*write.Stage); inside {
		return do(s)
	}
	return s.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		in := latest(tx.Store)
		in.stage().AllowLarge() // what a caller passes at once is in memory already
		return do(&in)
	})
}

// change is a chat in a state: inside a transaction, where it is changed, or in the current state, where it is only
// read.
type change struct {
	*state
	t      *structure.Thread // as of the start of the change
	thread *lineage.Thread
}

// change changes an existing chat in one transaction.
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

// stage returns the reader of a transaction.
func (s *state) stage() *write.Stage { return s.from.(*write.Stage) }

// committed returns the state before the transaction, for listings that are refused inside it. Outside of a
// transaction it returns the current state.
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

// moment returns the caller's time, or now if it is 0.
func moment(millis int64) time.Time {
	if millis == 0 {
		return now()
	}
	return time.UnixMilli(millis).UTC()
}

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// ignoreNotFound returns the error of a lookup, but nil if nothing was found.
func ignoreNotFound(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// orNone returns the result of a lookup, nil if nothing was found.
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
