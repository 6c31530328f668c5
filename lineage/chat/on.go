package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// On returns the chats in a lineage store. It keeps nothing of its own: any number
// of them can be made for a store, which stays its owner's to close.
//
// A chat is a thread, its id the thread's source id; a branch and a checkpoint are
// what they are there. Threads and messages that come from elsewhere, such as an
// agent that uses the library, show too, under ids that the store gives them.
// Bodies that were erased read as null. It cannot search: see OnSearchable.
func On(store *lineage.Store) Store { return OnSearchable(store, nil) }

// OnSearchable is On with something to search the chats with. Package
// sqladapter/search has one.
func OnSearchable(store *lineage.Store, by Searcher) Store {
	return &onStore{store: store, engine: store.Engine(), searcher: by}
}

type onStore struct {
	store    *lineage.Store
	engine   backend.Engine
	searcher Searcher
}

// A message is a span, found by its id. Its run is a strand: a run
// that a context of the chat's thread stands for, under the run's own id. The
// strand's tip is the last message of the run, so no message is ever out of reach,
// and which chat a message belongs to is one lookup. A span after the strand's tip is
// not a message of the chat under its own id: a new version has replaced it (see
// replacing). Contexts go with their thread: a span whose strand is gone is a message
// no more.
func strandID(run structure.RunID) structure.ContextID { return structure.ContextID(run) }

// pointerID is the id in the store for a branch or checkpoint: the same if it is
// a UUID, as it mostly is, else one derived from it.
func pointerID[T ~[16]byte](kind Subject, id string) T {
	if parsed, err := structure.ParseID[structure.ContextID](id); err == nil && parsed.String() == id {
		return T(parsed)
	}
	return structure.DeriveID[T](string(kind), id)
}

// label is the metadata of a context that stands for a branch or a checkpoint: the
// id that its caller chose.
type label struct {
	Branch     string `json:"branch,omitempty"`
	Checkpoint string `json:"checkpoint,omitempty"`
}

func (l label) metadata() []byte {
	b, _ := json.Marshal(l) // strings always marshal
	return b
}

func labelOf(metadata []byte) label {
	var l label
	if json.Unmarshal(metadata, &l) != nil {
		return label{} // somebody else's
	}
	return l
}

func (s *onStore) apply(ctx context.Context, records []structure.Record, o backend.Options) error {
	_, err := s.engine.Apply(ctx, &structure.Commit{Records: records}, o)
	return err
}

// change states a thread anew, with other records in the same commit. make is
// called again when the thread changed meanwhile: no two changes are made for one
// state of it, so make may rely on what it finds in the thread.
func (s *onStore) change(ctx context.Context, id structure.ThreadID, make func(*structure.Thread) ([]structure.Record, error)) error {
	return s.changeWith(ctx, id, func(t *structure.Thread) ([]structure.Record, []backend.ExpectSource, error) {
		records, err := make(t)
		return records, nil, err
	})
}

// changeWith is change for records that count on what ids lead to.
func (s *onStore) changeWith(ctx context.Context, id structure.ThreadID, make func(*structure.Thread) ([]structure.Record, []backend.ExpectSource, error)) error {
	for {
		was, err := s.engine.Thread(ctx, id)
		if err != nil {
			return err
		}
		is := *was
		if err := s.forgetGone(ctx, &is); err != nil {
			return err
		}
		records, sources, err := make(&is)
		if err != nil {
			return err
		}
		is.UpdatedAt = updatedNow(was)
		o := asIs(was)
		o.Sources = sources
		err = s.apply(ctx, append(records, &is), o)
		if !isAbout(err, "thread", lineage.ErrConflict) {
			return err
		}
	}
}

// updatedNow returns the time of an update that is made now: every state of a thread differs.
func updatedNow(t *structure.Thread) time.Time {
	if at := now(); at.After(t.UpdatedAt) {
		return at
	}
	return t.UpdatedAt.Add(time.Millisecond)
}

// touch adds to a commit for a state of a thread that the thread was updated now.
func (s *onStore) touch(ctx context.Context, t *structure.Thread, records []structure.Record, o *backend.Options) ([]structure.Record, error) {
	is := *t
	if err := s.forgetGone(ctx, &is); err != nil {
		return nil, err
	}
	is.UpdatedAt = updatedNow(t)
	o.Threads = asIs(t).Threads
	return append(records, &is), nil
}

// tellTime reports whether messages say by their own times that a chat was updated now, or a
// moment ago. To add messages that are older updates it as well.
func tellTime(messages []Message) bool {
	limit := now().Add(-time.Second).UnixMilli()
	return slices.ContainsFunc(messages, func(m Message) bool { return m.CreatedAt == 0 || m.CreatedAt > limit })
}

// forgetGone leaves a thread without an active context if that was deleted, as an import
// of contexts can bring about: a thread cannot be stated with one that is not there.
func (s *onStore) forgetGone(ctx context.Context, t *structure.Thread) error {
	if t.Active.IsZero() {
		return nil
	}
	_, err := s.engine.Context(ctx, t.Active)
	if isNotFound(err) {
		t.Active = structure.ContextID{}
		return nil
	}
	return err
}

func (s *onStore) runs(ctx context.Context) structure.RunLookup { return backend.Runs(ctx, s.engine) }

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// moment returns a time of the caller's, or now.
func moment(millis int64) time.Time {
	if millis == 0 {
		return now()
	}
	return time.UnixMilli(millis).UTC()
}

// isCollected reports whether a collection took a body, or a piece of one, between its
// being stored and its being used.
func isCollected(err error) bool {
	return isAbout(err, "block", ErrNotFound) || isAbout(err, "chunk", ErrNotFound)
}

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// isAbout reports whether an engine refused a commit for this reason.
func isAbout(err error, subject string, reason error) bool {
	var e *backend.SubjectError
	return errors.As(err, &e) && e.Subject == subject && errors.Is(err, reason)
}

func isTipMoved(err error) bool {
	var tip *backend.TipError
	return errors.As(err, &tip)
}

// SearchMessages implements Store.
func (s *onStore) SearchMessages(ctx context.Context, chatID, query string, o SearchOptions) ([]SearchResult, error) {
	if s.searcher == nil {
		return nil, ErrSearchUnavailable
	}
	return s.searcher.SearchMessages(ctx, chatID, query, o)
}
