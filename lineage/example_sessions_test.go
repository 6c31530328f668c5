package lineage_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// This file is the program of docs/adapters.md: an agent framework that keeps its sessions in a
// store. A session is a thread, its events are messages, its state is named values: keys with the
// prefix "app:" belong to the application, "user:" to the user, all others to the session. "temp:"
// is not stored.

// Event is something that happened in a session.
type Event struct {
	ID, Author, Text string
	Partial          bool // it will come again as a whole
	Time             time.Time
	StateDelta       map[string]any
}

// SessionKey names a session.
type SessionKey struct{ App, User, ID string }

// sourceID is the source id of the session's thread. Each part is escaped, so that the sessions of
// an application or user have a common prefix.
func (k SessionKey) sourceID() string {
	return url.PathEscape(k.App) + "/" + url.PathEscape(k.User) + "/" + url.PathEscape(k.ID)
}

// Session is the state of a session when it was read.
type Session struct {
	SessionKey
	State     map[string]any
	Events    []Event
	UpdatedAt time.Time
}

// Sessions keeps sessions in a store.
type Sessions struct{ Store *lineage.Store }

// Create makes a session. One that exists is lineage.ErrExists.
func (s Sessions) Create(ctx context.Context, k SessionKey, state map[string]any) (*Session, error) {
	if k.ID == "" {
		k.ID = rand.Text()
	}
	err := s.Store.Update(ctx, func(tx *lineage.Tx) error {
		thread, err := tx.CreateThread(ctx, lineage.ThreadOptions{SourceID: k.sourceID(), UserID: k.User})
		if err != nil {
			return err
		}
		return setState(ctx, tx, k, thread, state)
	})
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, k, 0, time.Time{})
}

// AppendEvent adds an event and the state that it leads to, both or neither.
func (s Sessions) AppendEvent(ctx context.Context, k SessionKey, e Event) error {
	if e.Partial {
		return nil
	}
	e.StateDelta = maps.Clone(e.StateDelta)
	maps.DeleteFunc(e.StateDelta, func(key string, _ any) bool { return strings.HasPrefix(key, "temp:") })
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	role := "assistant"
	if e.Author == "user" {
		role = "user"
	}
	return s.Store.Update(ctx, func(tx *lineage.Tx) error {
		thread, err := tx.FindThread(ctx, k.sourceID())
		if err != nil {
			return err
		}
		main, err := thread.Active(ctx)
		if err != nil {
			return err
		}
		item := lineage.Item{
			Role: role, Name: e.Author, Body: body, Type: "application/json", SourceID: e.ID, CreatedAt: e.Time,
			Origin: lineage.Origin{UserID: k.User},
		}
		if _, err := main.Extend(ctx, item); err != nil {
			return err
		}
		return setState(ctx, tx, k, thread, e.StateDelta)
	})
}

// setState sets the values that a change of state consists of. Nil deletes.
func setState(ctx context.Context, tx *lineage.Tx, k SessionKey, thread *lineage.Thread, delta map[string]any) error {
	for key, value := range delta {
		values := tx.Values(lineage.Owner{Thread: thread.ID()})
		switch scope, rest, _ := strings.Cut(key, ":"); scope {
		case "app":
			values, key = tx.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: k.App}), rest
		case "user":
			values, key = tx.Values(lineage.Owner{Scope: lineage.UserScope, Name: userOf(k)}), rest
		case "temp":
			continue
		}
		if value == nil {
			if err := values.Delete(ctx, key); err != nil && !errors.Is(err, lineage.ErrNotFound) {
				return err
			}
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := values.Set(ctx, key, text); err != nil {
			return err
		}
	}
	return nil
}

// userOf names a user of an application: other applications have their own.
func userOf(k SessionKey) string { return url.PathEscape(k.App) + "/" + url.PathEscape(k.User) }

// Get returns a session with its last events (all if last is 0) that happened not before a
// time.
func (s Sessions) Get(ctx context.Context, k SessionKey, last uint64, from time.Time) (*Session, error) {
	thread, err := s.Store.FindThread(ctx, k.sourceID())
	if err != nil {
		return nil, err
	}
	session, err := s.session(ctx, k, thread)
	if err != nil {
		return nil, err
	}
	main, err := thread.Active(ctx)
	if err != nil {
		return nil, err
	}
	for entry, err := range main.Entries(ctx, lineage.Window{Last: last}) {
		if err != nil {
			return nil, err
		}
		var e Event
		text, err := s.Store.Text(ctx, entry)
		if err == nil {
			err = json.Unmarshal([]byte(text), &e)
		}
		if err != nil {
			return nil, err
		}
		if !e.Time.Before(from) {
			session.Events = append(session.Events, e)
		}
	}
	return session, nil
}

// session returns a session without its events.
func (s Sessions) session(ctx context.Context, k SessionKey, thread *lineage.Thread) (*Session, error) {
	info, err := thread.Info(ctx)
	if err != nil {
		return nil, err
	}
	session := &Session{SessionKey: k, State: make(map[string]any), UpdatedAt: info.UpdatedAt}
	for prefix, values := range map[string]*lineage.Values{
		"": s.Store.Values(lineage.Owner{Thread: thread.ID()}), "user:": s.Store.Values(lineage.Owner{Scope: lineage.UserScope, Name: userOf(k)}), "app:": s.Store.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: k.App}),
	} {
		for v, err := range values.All(ctx, "") {
			if err != nil {
				return nil, err
			}
			var value any
			if err := json.Unmarshal(v.JSON, &value); err != nil {
				return nil, err
			}
			session.State[prefix+v.Key] = value
		}
	}
	return session, nil
}

// List returns the sessions of an application, or of one of its users, the one that was
// updated last first.
func (s Sessions) List(ctx context.Context, app, user string) ([]*Session, error) {
	prefix := url.PathEscape(app) + "/"
	if user != "" {
		prefix += url.PathEscape(user) + "/"
	}
	var sessions []*Session
	for thread, err := range s.Store.Threads(ctx, lineage.ThreadQuery{SourcePrefix: prefix}) {
		if err != nil {
			return nil, err
		}
		parts := strings.Split(thread.Was.SourceID, "/")
		for i := range parts {
			if parts[i], err = url.PathUnescape(parts[i]); err != nil {
				return nil, err
			}
		}
		session, err := s.session(ctx, SessionKey{parts[0], parts[1], parts[2]}, thread.Thread)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, session)
	}
	return sessions, nil
}

// Delete deletes a session with its state, if there is one.
func (s Sessions) Delete(ctx context.Context, k SessionKey) error {
	thread, err := s.Store.FindThread(ctx, k.sourceID())
	if err == nil {
		err = thread.Delete(ctx)
	}
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	return err
}

func Example_sessions() {
	ctx := context.Background()
	store, err := lineage.OpenMemory(ctx, lineage.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	sessions := Sessions{store}
	session, err := sessions.Create(ctx, SessionKey{App: "shop", User: "ada", ID: "1"}, map[string]any{"step": "cart"})
	if err != nil {
		fmt.Println(err)
		return
	}
	event := Event{ID: "e1", Author: "user", Text: "Blue, please.", StateDelta: map[string]any{"step": "paid", "user:color": "blue"}}
	if err := sessions.AppendEvent(ctx, session.SessionKey, event); err != nil {
		fmt.Println(err)
		return
	}
	if session, err = sessions.Get(ctx, session.SessionKey, 0, time.Time{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(session.Events), session.State)
	// Output: 1 map[step:paid user:color:blue]
}

func TestExampleSessions(t *testing.T) {
	store := newStore(t)
	sessions := Sessions{store}
	key := SessionKey{App: "a/b", User: "u 1", ID: "s"}
	_, err := sessions.Create(bg, key, map[string]any{"k": 5.0, "app:name": "n", "user:lang": "en", "temp:x": 1.0})
	require.NoError(t, err)
	_, err = sessions.Create(bg, key, nil)
	require.ErrorIs(t, err, lineage.ErrExists)
	got, err := sessions.Get(bg, key, 0, time.Time{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"k": 5.0, "app:name": "n", "user:lang": "en"}, got.State)

	// An event and its state are one commit.
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	before := head(t, store)
	for i := range 5 {
		e := Event{ID: fmt.Sprint(i), Author: "user", Time: start.Add(time.Duration(i) * time.Second), StateDelta: map[string]any{
			"k": nil, "n": float64(i), "app:n": float64(i), "temp:y": "z",
		}}
		require.NoError(t, sessions.AppendEvent(bg, key, e))
	}
	require.Equal(t, before+5, head(t, store))
	require.NoError(t, sessions.AppendEvent(bg, key, Event{ID: "p", Partial: true}))
	require.ErrorIs(t, sessions.AppendEvent(bg, key, Event{ID: "1"}), lineage.ErrExists)
	require.Equal(t, before+5, head(t, store))
	got, err = sessions.Get(bg, key, 0, time.Time{})
	require.NoError(t, err)
	require.Len(t, got.Events, 5)
	require.Equal(t, map[string]any{"n": 4.0, "app:n": 4.0, "app:name": "n", "user:lang": "en"}, got.State)
	require.Equal(t, map[string]any{"k": nil, "n": 1.0, "app:n": 1.0}, got.Events[1].StateDelta)
	for want, get := range map[int]func() (*Session, error){
		3: func() (*Session, error) { return sessions.Get(bg, key, 3, time.Time{}) },
		4: func() (*Session, error) { return sessions.Get(bg, key, 0, start.Add(time.Second)) },
		2: func() (*Session, error) { return sessions.Get(bg, key, 2, start) },
	} {
		got, err := get()
		require.NoError(t, err)
		require.Len(t, got.Events, want)
	}

	// Users and applications are kept apart, and share what they share.
	other := SessionKey{App: "a/b", User: "u 1"}
	made, err := sessions.Create(bg, other, nil)
	require.NoError(t, err)
	require.NotEmpty(t, made.ID)
	require.Equal(t, map[string]any{"app:n": 4.0, "app:name": "n", "user:lang": "en"}, made.State)
	_, err = sessions.Create(bg, SessionKey{App: "a/b", User: "u 2"}, nil)
	require.NoError(t, err)
	_, err = sessions.Create(bg, SessionKey{App: "a", User: "b/u 1"}, nil)
	require.NoError(t, err)
	_, err = sessions.Get(bg, SessionKey{App: "a/b", User: "u 2", ID: "s"}, 0, time.Time{})
	require.ErrorIs(t, err, lineage.ErrNotFound)
	for user, want := range map[string]int{"u 1": 2, "u 2": 1, "": 3, "none": 0} {
		list, err := sessions.List(bg, "a/b", user)
		require.NoError(t, err)
		require.Len(t, list, want)
	}

	require.NoError(t, sessions.Delete(bg, SessionKey{App: "a/b", User: "u 2", ID: "s"}))
	require.NoError(t, sessions.Delete(bg, key))
	_, err = sessions.Get(bg, key, 0, time.Time{})
	require.ErrorIs(t, err, lineage.ErrNotFound)
	require.ErrorIs(t, sessions.AppendEvent(bg, key, Event{ID: "9"}), lineage.ErrNotFound)
	again, err := sessions.Create(bg, key, nil)
	require.NoError(t, err)
	require.Empty(t, again.Events)
	require.NotContains(t, again.State, "n")
}

// Many agents append to sessions at the same time, and none of what they count is lost.
func TestExampleSessionsTogether(t *testing.T) {
	sessions := Sessions{newStore(t)}
	keys := []SessionKey{{App: "a", User: "u", ID: "1"}, {App: "a", User: "u", ID: "2"}}
	for _, k := range keys {
		_, err := sessions.Create(bg, k, nil)
		require.NoError(t, err)
	}
	var all sync.WaitGroup
	for w := range 6 {
		all.Go(func() {
			for i := range 10 {
				e := Event{ID: fmt.Sprint(w, "-", i), Author: "agent", StateDelta: map[string]any{fmt.Sprint("app:", w, "-", i): 1.0}}
				if err := sessions.AppendEvent(bg, keys[w%2], e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, k := range keys {
		got, err := sessions.Get(bg, k, 0, time.Time{})
		require.NoError(t, err)
		require.Len(t, got.Events, 30)
		require.Len(t, got.State, 60)
	}
}
