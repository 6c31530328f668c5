package chat

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

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

// staged is the state inside a transaction. Its lists are those from before the transaction. The placer finds the
// runs that it started without them.
type staged struct{ *write.Stage }

func (s staged) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return s.Reader.RunsOf(ctx, thread, after)
}

func (s staged) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return s.Reader.ForksAt(ctx, at)
}

// thread returns the thread of a chat: the one whose source id is the chat's id, or the one without a source id whose
// thread id is the chat's id.
func (s *state) thread(ctx context.Context, chatID string) (*structure.Thread, error) {
	t, err := s.from.Thread(ctx, write.SourceThread(chatID))
	id, noID := structure.ParseID[structure.ThreadID](chatID)
	if isNotFound(err) && noID == nil {
		t, err = s.from.Thread(ctx, id)
	}
	if isNotFound(err) || err == nil && IDOfThread(t) != chatID {
		return nil, noChat(chatID)
	}
	return t, err
}

// isChat reports whether a thread is a chat: see IsChat.
func (s *state) isChat(ctx context.Context, id structure.ThreadID, sourceID string) (bool, error) {
	if sourceID != "" {
		return true, nil
	}
	_, err := s.from.Thread(ctx, write.SourceThread(id.String()))
	return isNotFound(err), ignoreNotFound(err)
}

func noChat(id string) error { return &Error{Subject: SubjectChat, ID: id, Err: ErrNotFound} }
