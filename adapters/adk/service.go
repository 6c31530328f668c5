// Package adk keeps the sessions of agents that are built with ADK (google.golang.org/adk) in a store.
//
// A session is the active branch of a thread with the source id APPLICATION/USER/SESSION, each part
// escaped as in a URL. Its events are messages: the content of an event is the body, as Gemini has it,
// and all else of the event is the metadata of the message. So every reader of the store knows what was
// said: search, exports, the context engine, the command line. An event and the state that it leads to
// are one commit.
//
// State is kept as named values: keys with the prefix "app:" belong to the application, "user:" to a
// user of the application, "temp:" to no more than the session that was read, and all others to the
// branch, so that a branch from an earlier event has the state of that event. A key has at least one
// byte and at most 512.
package adk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/lineage-store/lineage/lineage"
)

// NewService returns a service that keeps sessions in a store. It is safe for concurrent use, also by
// several processes. A session that does not exist is [lineage.ErrNotFound], and an id that is taken
// [lineage.ErrExists], also that of an event.
func NewService(store *lineage.Store) session.Service { return service{store} }

type service struct{ store *lineage.Store }

type key struct{ app, userID, id string }

// user names a user of an application.
func (k key) user() string     { return url.PathEscape(k.app) + "/" + url.PathEscape(k.userID) }
func (k key) sourceID() string { return k.user() + "/" + url.PathEscape(k.id) }

// owners returns who has the state with each prefix.
func (k key) owners(branch *lineage.Context) map[string]lineage.Owner {
	return map[string]lineage.Owner{
		session.KeyPrefixApp:  {Scope: lineage.ApplicationScope, Name: k.app},
		session.KeyPrefixUser: {Scope: lineage.UserScope, Name: k.user()},
		"":                    {Context: branch.ID()},
	}
}

// Create implements session.Service.
func (s service) Create(ctx context.Context, r *session.CreateRequest) (*session.CreateResponse, error) {
	k := key{r.AppName, r.UserID, r.SessionID}
	if k.app == "" || k.userID == "" {
		return nil, fmt.Errorf("create session: %w: an application and a user are required", lineage.ErrInvalid)
	}
	if k.id == "" {
		k.id = uuid.NewString()
	}
	err := s.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		if _, err := tx.CreateThread(ctx, lineage.ThreadOptions{SourceID: k.sourceID(), UserID: k.userID}); err != nil {
			return err
		}
		_, branch, err := find(ctx, tx.Store, k)
		if err != nil {
			return err
		}
		return setState(ctx, tx, k.owners(branch), lasting(r.State))
	})
	if err != nil {
		return nil, err
	}
	got, err := s.Get(ctx, &session.GetRequest{AppName: k.app, UserID: k.userID, SessionID: k.id})
	if err != nil {
		return nil, err
	}
	return &session.CreateResponse{Session: got.Session}, nil
}

// lasting returns a change of state without what is not stored.
func lasting(delta map[string]any) map[string]any {
	delta = maps.Clone(delta)
	maps.DeleteFunc(delta, func(name string, _ any) bool { return strings.HasPrefix(name, session.KeyPrefixTemp) })
	return delta
}

// setState sets the values that a change of state consists of.
func setState(ctx context.Context, tx *lineage.Tx, owners map[string]lineage.Owner, delta map[string]any) error {
	for name, value := range delta {
		prefix := name[:strings.Index(name, ":")+1]
		if _, known := owners[prefix]; !known {
			prefix = ""
		}
		text, err := json.Marshal(value)
		if err == nil {
			err = tx.Values(owners[prefix]).Set(ctx, name, text)
		}
		if err != nil {
			return fmt.Errorf("state %q: %w", name, err)
		}
	}
	return nil
}

// AppendEvent implements session.Service.
func (s service) AppendEvent(ctx context.Context, to session.Session, e *session.Event) error {
	if to == nil || e == nil {
		return fmt.Errorf("append event: %w: no session or no event", lineage.ErrInvalid)
	}
	if e.Partial {
		return nil
	}
	k := key{to.AppName(), to.UserID(), to.ID()}
	kept := *e
	kept.Actions.StateDelta = lasting(e.Actions.StateDelta)
	item, err := s.item(ctx, k, kept)
	if err != nil {
		return fmt.Errorf("event %q: %w", e.ID, err)
	}
	err = s.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		_, branch, err := find(ctx, tx.Store, k)
		if err != nil {
			return err
		}
		if err := setState(ctx, tx, k.owners(branch), kept.Actions.StateDelta); err != nil { // first, so that it is that of the event
			return err
		}
		_, err = branch.Extend(ctx, item)
		return err
	})
	if read, ok := to.(*stored); ok && err == nil {
		return read.memory.AppendEvent(ctx, read.Session, e)
	}
	return err
}

func find(ctx context.Context, in *lineage.Store, k key) (*lineage.Thread, *lineage.Context, error) {
	thread, err := in.FindThread(ctx, k.sourceID())
	if err != nil {
		return nil, nil, err
	}
	branch, err := thread.Active(ctx)
	return thread, branch, err
}

// maxInline is the size from which content is stored before the transaction, whose size is limited.
const maxInline = 4 << 20

// item returns the message that stores an event.
func (s service) item(ctx context.Context, k key, e session.Event) (item lineage.Item, err error) {
	item = lineage.Item{
		Role: "assistant", Name: e.Author, Type: "application/json", SourceID: e.ID, CreatedAt: e.Timestamp,
		Origin: lineage.Origin{UserID: k.userID, ModelID: e.ModelVersion},
	}
	content := e.Content
	if e.Author == "user" {
		item.Role = "user"
	} else if content != nil && slices.ContainsFunc(content.Parts, func(p *genai.Part) bool { return p.FunctionResponse != nil }) {
		item.Role = "tool"
	}
	e.Content = nil
	if item.Metadata, err = json.Marshal(e); err == nil {
		item.Body, err = json.Marshal(content)
	}
	if err != nil || len(item.Body) < maxInline {
		return item, err
	}
	block, _, err := s.store.Put(ctx, bytes.NewReader(item.Body), lineage.BlockOptions{Type: item.Type})
	item.Body, item.Content = nil, block.ID
	return item, err
}

// event returns the event that a message stores. What was erased is missing.
func (s service) event(ctx context.Context, from *lineage.Entry) (*session.Event, error) {
	e := &session.Event{ID: from.SourceID, Author: from.Name, Timestamp: from.CreatedAt}
	content, err := s.store.Original(ctx, from)
	if errors.Is(err, lineage.ErrErased) {
		content, err = []byte("null"), nil
	}
	if err == nil && len(from.Metadata) > 0 {
		err = json.Unmarshal(from.Metadata, e)
	}
	if err == nil {
		err = json.Unmarshal(content, &e.Content)
	}
	return e, err
}

// Get implements session.Service. The events and the state of the session are those of one commit.
func (s service) Get(ctx context.Context, r *session.GetRequest) (*session.GetResponse, error) {
	k := key{r.AppName, r.UserID, r.SessionID}
	thread, branch, err := find(ctx, s.store, k)
	if err != nil {
		return nil, err
	}
	tip, err := branch.Tip(ctx)
	if err != nil {
		return nil, err
	}
	var events []*session.Event
	for entry, err := range s.store.History(ctx, tip, lineage.Window{Last: uint64(max(r.NumRecentEvents, 0))}) {
		var e *session.Event
		if err == nil {
			e, err = s.event(ctx, entry)
		}
		if err != nil {
			return nil, fmt.Errorf("session %q: %w", k.id, err)
		}
		if !e.Timestamp.Before(r.After) {
			events = append(events, e)
		}
	}
	read, err := s.read(ctx, k, thread, branch, tip, events)
	if err != nil {
		return nil, err
	}
	return &session.GetResponse{Session: read}, nil
}

// List implements session.Service. The session that was changed last comes first.
func (s service) List(ctx context.Context, r *session.ListRequest) (*session.ListResponse, error) {
	prefix := url.PathEscape(r.AppName) + "/"
	if r.UserID != "" {
		prefix += url.PathEscape(r.UserID) + "/"
	}
	list := &session.ListResponse{}
	for thread, err := range s.store.Threads(ctx, lineage.ThreadQuery{SourcePrefix: prefix}) {
		if err != nil {
			return nil, err
		}
		id, err := url.PathUnescape(path.Base(thread.Was.SourceID))
		if err != nil {
			return nil, err
		}
		var read *stored
		branch, err := thread.Active(ctx)
		if err == nil {
			read, err = s.read(ctx, key{r.AppName, thread.Was.UserID, id}, thread.Thread, branch, lineage.SpanRef{}, nil)
		}
		if errors.Is(err, lineage.ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		list.Sessions = append(list.Sessions, read)
	}
	return list, nil
}

// Delete implements session.Service. A session that does not exist is no error.
func (s service) Delete(ctx context.Context, r *session.DeleteRequest) error {
	thread, _, err := find(ctx, s.store, key{r.AppName, r.UserID, r.SessionID})
	if err == nil {
		err = thread.Delete(ctx)
	}
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	return err
}
