package adk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/sessiontestsuite"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/message"
)

var background = context.Background()

func open(t testing.TB, dir string) *lineage.Store {
	s, err := lineage.Open(background, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	return s
}

// TestService runs the framework's own suite: in memory, in a directory, and through another process's
// hold of the directory.
func TestService(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) *lineage.Store{
		"memory": func(t *testing.T) *lineage.Store { return lineagetest.New(t, lineage.Options{}) },
		"directory": func(t *testing.T) *lineage.Store {
			s := open(t, filepath.Join(t.TempDir(), "store"))
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
		"guest": func(t *testing.T) *lineage.Store {
			dir := filepath.Join(t.TempDir(), "store")
			owner, guest := open(t, dir), open(t, dir)
			t.Cleanup(func() { require.NoError(t, errors.Join(guest.Close(), owner.Close())) })
			return guest
		},
	} {
		t.Run(name, func(t *testing.T) {
			sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}, func(t *testing.T) session.Service {
				return NewService(store(t))
			})
		})
	}
}

func create(t testing.TB, s session.Service, app, user, id string, state map[string]any) session.Session {
	made, err := s.Create(background, &session.CreateRequest{AppName: app, UserID: user, SessionID: id, State: state})
	require.NoError(t, err)
	return made.Session
}

func get(t testing.TB, s session.Service, app, user, id string) session.Session {
	got, err := s.Get(background, &session.GetRequest{AppName: app, UserID: user, SessionID: id})
	require.NoError(t, err)
	return got.Session
}

func says(id, author, text string) *session.Event {
	role := genai.Role(genai.RoleModel)
	if author == "user" {
		role = genai.RoleUser
	}
	return &session.Event{ID: id, Author: author, Timestamp: time.Now(), LLMResponse: model.LLMResponse{Content: genai.NewContentFromText(text, role)}}
}

func head(t testing.TB, s *lineage.Store) uint64 {
	at, err := s.View().Head(background)
	require.NoError(t, err)
	return at.Number
}

// TestOneCommit adds events, each with its state in one commit, all or nothing.
func TestOneCommit(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	s := NewService(store)
	in := create(t, s, "app", "ada", "1", map[string]any{"n": 0.0, "temp:x": 1.0})
	before := head(t, store)
	for i := range 3 {
		e := says(fmt.Sprint(i), "agent", "said")
		e.Actions.StateDelta = map[string]any{"n": float64(i), "app:n": float64(i), "user:n": nil, "temp:y": "z", "a:b": "c"}
		require.NoError(t, s.AppendEvent(background, in, e))
		require.Contains(t, e.Actions.StateDelta, "temp:y", "the event of the caller stays as it is")
		require.NotContains(t, in.Events().At(i).Actions.StateDelta, "temp:y")
		y, err := in.State().Get("temp:y")
		require.NoError(t, err)
		require.Equal(t, "z", y, "temporary state lasts as long as the session that was read")
	}
	require.Equal(t, before+3, head(t, store))
	require.Equal(t, 3, in.Events().Len())

	require.ErrorIs(t, s.AppendEvent(background, in, says("1", "agent", "again")), lineage.ErrExists)
	bad := says("bad", "agent", "said")
	bad.Actions.StateDelta = map[string]any{"f": func() {}}
	require.Error(t, s.AppendEvent(background, in, bad))
	require.ErrorIs(t, s.AppendEvent(background, create(t, NewService(lineagetest.New(t, lineage.Options{})), "app", "ada", "2", nil), says("x", "user", "hi")), lineage.ErrNotFound)
	require.Equal(t, before+3, head(t, store))

	got := sessiontestsuite.Snapshot(get(t, s, "app", "ada", "1"))
	require.Equal(t, map[string]any{"n": 2.0, "app:n": 2.0, "user:n": nil, "a:b": "c"}, got.State)
	require.Len(t, got.Events, 3)
	require.Equal(t, map[string]any{"n": 1.0, "app:n": 1.0, "user:n": nil, "a:b": "c"}, got.Events[1].Actions.StateDelta)
	_, err := s.Create(background, &session.CreateRequest{AppName: "app", UserID: "ada", SessionID: "1"})
	require.ErrorIs(t, err, lineage.ErrExists)
	_, err = s.Create(background, &session.CreateRequest{AppName: "app"})
	require.ErrorIs(t, err, lineage.ErrInvalid)
}

// TestApart has applications and users whose names could be mistaken for each other.
func TestApart(t *testing.T) {
	s := NewService(lineagetest.New(t, lineage.Options{}))
	names := [][2]string{{"a", "b/c"}, {"a/b", "c"}, {"a", "b"}, {"a%2Fb", "c"}, {"A", "b"}, {"a", "b "}, {"ä", "ü"}}
	for _, n := range names {
		create(t, s, n[0], n[1], "s/1", map[string]any{"user:is": n[1], "app:" + n[1]: n[0]})
	}
	for _, n := range names {
		got := sessiontestsuite.Snapshot(get(t, s, n[0], n[1], "s/1"))
		require.Equal(t, n[1], got.State["user:is"])
		list, err := s.List(background, &session.ListRequest{AppName: n[0], UserID: n[1]})
		require.NoError(t, err)
		require.Len(t, list.Sessions, 1)
		require.Equal(t, [3]string{n[0], n[1], "s/1"}, [3]string{list.Sessions[0].AppName(), list.Sessions[0].UserID(), list.Sessions[0].ID()})
	}
	all, err := s.List(background, &session.ListRequest{AppName: "a"})
	require.NoError(t, err)
	require.Len(t, all.Sessions, 3)
}

// TestTogether has many agents add to two sessions at once, through two handles of one store.
func TestTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	one, two := open(t, dir), open(t, dir)
	defer func() { require.NoError(t, errors.Join(two.Close(), one.Close())) }()
	services := []session.Service{NewService(one), NewService(two)}
	for _, id := range []string{"0", "1"} {
		create(t, services[0], "app", "ada", id, nil)
	}
	var all sync.WaitGroup
	for w := range 6 {
		all.Go(func() {
			s := services[w/3]
			in := get(t, s, "app", "ada", fmt.Sprint(w%2))
			for i := range 10 {
				e := says(fmt.Sprint(w, "-", i), "agent", "said")
				e.Actions.StateDelta = map[string]any{"app:" + e.ID: 1.0, "n": e.ID}
				if err := s.AppendEvent(background, in, e); err != nil {
					t.Error(err)
				}
				seen, err := s.Get(background, &session.GetRequest{AppName: "app", UserID: "ada", SessionID: in.ID()})
				if err != nil {
					t.Error(err)
					return
				}
				last := seen.Session.Events().At(seen.Session.Events().Len() - 1)
				if n, err := seen.Session.State().Get("n"); err != nil || n != last.ID {
					t.Errorf("the state is that of event %v, and the last one is %s (%v)", n, last.ID, err)
				}
				for e := range seen.Session.Events().All() {
					if _, err := seen.Session.State().Get("app:" + e.ID); err != nil {
						t.Error(e.ID, err)
					}
				}
			}
		})
	}
	all.Wait()
	for _, id := range []string{"0", "1"} {
		got := sessiontestsuite.Snapshot(get(t, services[1], "app", "ada", id))
		require.Len(t, got.Events, 30)
		require.Len(t, got.State, 61)
	}
}

// TestRewind continues a session from an earlier event, on another branch: with the state of that event.
func TestRewind(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	s := NewService(store)
	in := create(t, s, "app", "ada", "1", map[string]any{"n": "start", "first": true})
	for _, id := range []string{"a", "b", "c"} {
		e := says(id, "agent", "said "+id)
		e.Actions.StateDelta = map[string]any{"n": id, "user:last": id}
		require.NoError(t, s.AppendEvent(background, in, e))
	}
	thread, err := store.FindThread(background, "app/ada/1")
	require.NoError(t, err)
	entry, err := thread.Find(background, "b")
	require.NoError(t, err)
	_, err = thread.CreateBranch(background, "", lineage.BranchOptions{At: entry.Span, Switch: true})
	require.NoError(t, err)
	in = get(t, s, "app", "ada", "1")
	require.Equal(t, 2, in.Events().Len())
	require.Equal(t, map[string]any{"n": "b", "first": true, "user:last": "c"}, sessiontestsuite.Snapshot(in).State)
	e := says("d", "agent", "said d")
	e.Actions.StateDelta = map[string]any{"n": "d"}
	require.NoError(t, s.AppendEvent(background, in, e))
	require.Equal(t, map[string]any{"n": "d", "first": true, "user:last": "c"}, sessiontestsuite.Snapshot(get(t, s, "app", "ada", "1")).State)

	require.NoError(t, thread.Switch(background, lineage.MainBranch))
	in = get(t, s, "app", "ada", "1")
	require.Equal(t, 3, in.Events().Len())
	require.Equal(t, "c", sessiontestsuite.Snapshot(in).State["n"])
}

// TestLargeAndErased stores content of more than a transaction takes, and erases content.
func TestLargeAndErased(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	s := NewService(store)
	in := create(t, s, "app", "ada", "1", nil)
	image := make([]byte, 20<<20)
	for i := range image {
		image[i] = byte(i * i >> 7)
	}
	large := says("large", "user", "look")
	large.Content.Parts = append(large.Content.Parts, genai.NewPartFromBytes(image, "image/png"))
	require.NoError(t, s.AppendEvent(background, in, large))
	require.NoError(t, s.AppendEvent(background, in, says("secret", "user", "the secret")))
	got := get(t, s, "app", "ada", "1").Events()
	require.Equal(t, large.Content, got.At(0).Content)

	thread, err := store.FindThread(background, "app/ada/1")
	require.NoError(t, err)
	entry, err := thread.Find(background, "secret")
	require.NoError(t, err)
	require.NoError(t, store.Erase(background, entry.Content))
	got = get(t, s, "app", "ada", "1").Events()
	require.Equal(t, 2, got.Len())
	require.Nil(t, got.At(1).Content)
	require.Equal(t, "secret", got.At(1).ID)
}

// script is a model that gives prepared answers and keeps what it was asked.
type script struct {
	answers []*genai.Content
	asked   []*model.LLMRequest
}

func (*script) Name() string { return "scripted-1" }

func (m *script) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		m.asked = append(m.asked, r)
		answer := m.answers[0]
		m.answers = m.answers[1:]
		yield(&model.LLMResponse{Content: answer, ModelVersion: "scripted-1.1", TurnComplete: true}, nil)
	}
}

// TestAgent runs an agent of the framework, with a tool that changes state, continues its session in
// another process, and reads the history as every other program of the store does.
func TestAgent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	m := &script{answers: []*genai.Content{
		genai.NewContentFromFunctionCall("paint", map[string]any{"color": "blue"}, genai.RoleModel),
		genai.NewContentFromText("It is blue now.", genai.RoleModel),
		genai.NewContentFromText("You wanted blue.", genai.RoleModel),
	}}
	turn := func(store *lineage.Store, text string) {
		paint, err := functiontool.New(functiontool.Config{Name: "paint", Description: "paints the house"}, func(ctx agent.Context, in struct {
			Color string `json:"color"`
		},
		) (map[string]any, error) {
			return map[string]any{"painted": in.Color}, ctx.State().Set("user:color", in.Color)
		})
		require.NoError(t, err)
		painter, err := llmagent.New(llmagent.Config{Name: "painter", Model: m, Tools: []tool.Tool{paint}})
		require.NoError(t, err)
		run, err := runner.New(runner.Config{AppName: "house", Agent: painter, SessionService: NewService(store), AutoCreateSession: true})
		require.NoError(t, err)
		for _, err := range run.Run(background, "ada", "s", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			require.NoError(t, err)
		}
	}
	store := open(t, dir)
	turn(store, "Paint it blue.")
	require.NoError(t, store.Close())
	store = open(t, dir)
	defer func() { require.NoError(t, store.Close()) }()
	turn(store, "What did I want?")
	require.Len(t, m.asked[2].Contents, 5, "the model gets the whole history after a restart")

	got := sessiontestsuite.Snapshot(get(t, NewService(store), "house", "ada", "s"))
	require.Equal(t, "blue", got.State["user:color"])
	require.Len(t, got.Events, 6)
	thread, err := store.FindThread(background, "house/ada/s")
	require.NoError(t, err)
	main, err := thread.Active(background)
	require.NoError(t, err)
	entries, err := main.All(background)
	require.NoError(t, err)
	var history []message.Message
	var roles []string
	for _, e := range entries {
		roles = append(roles, e.Role)
		history = append(history, message.Decode(e.Body, e.Type, e.Role)...)
	}
	require.Equal(t, []string{"user", "assistant", "tool", "assistant", "user", "assistant"}, roles)
	origin, _, err := store.Author(background, entries[1])
	require.NoError(t, err)
	require.Equal(t, "scripted-1.1", origin.ModelID)
	require.Equal(t, "ada", origin.UserID)
	request, err := message.Encode(message.Anthropic, history)
	require.NoError(t, err)
	require.Empty(t, request.Losses)
	require.Contains(t, string(slices.Concat(request.Items...)), `"type":"tool_use"`)
	require.Contains(t, string(slices.Concat(request.Items...)), `"type":"tool_result"`)
}

// TestModel compares the service with the framework's own in memory.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, err := lineage.OpenMemory(background, lineage.Options{})
		require.NoError(t, err)
		defer store.Close()
		services := []session.Service{NewService(store), session.InMemoryService()}
		of := func(t *rapid.T) (app, user, id string) {
			name := rapid.SampledFrom([]string{"a", "b", "a/b"})
			return name.Draw(t, "app"), name.Draw(t, "user"), name.Draw(t, "id")
		}
		values := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any](1.5), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Just[any](map[string]any{"list": []any{1.0, "x", nil, true}}))
		states := rapid.MapOfN(rapid.SampledFrom([]string{"k", "l", "app:k", "user:k", "user:", "x:y", ":"}), values, 0, 3)
		open := make(map[string][2]session.Session)
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"create": func(t *rapid.T) {
				app, user, id := of(t)
				state := states.Draw(t, "state")
				var made [2]session.Session
				var errs [2]error
				for i, s := range services {
					r, err := s.Create(background, &session.CreateRequest{AppName: app, UserID: user, SessionID: id, State: maps.Clone(state)})
					if errs[i] = err; err == nil {
						made[i] = r.Session
					}
				}
				require.Equal(t, errs[1] == nil, errs[0] == nil)
				if errs[0] == nil {
					require.Equal(t, sessiontestsuite.Snapshot(made[1]), sessiontestsuite.Snapshot(made[0]))
					open[app+" "+user+" "+id] = made
				}
			},
			"append": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("no session")
				}
				to := open[rapid.SampledFrom(slices.Sorted(maps.Keys(open))).Draw(t, "session")]
				n++
				state := states.Draw(t, "state")
				var errs [2]error
				for i, s := range services {
					e := &session.Event{ID: fmt.Sprint(n), Author: "user", Timestamp: time.Unix(int64(n), int64(n)).UTC(), Branch: "x"}
					e.TurnComplete = true
					e.Content = genai.NewContentFromText(fmt.Sprint("text ", n), genai.RoleUser)
					e.Actions.StateDelta = maps.Clone(state)
					if n%2 == 0 { // of a workflow
						e.IsolationScope, e.Routes, e.Output = "scope", []string{"a", "b"}, map[string]any{"n": float64(n), "list": []any{"x", nil}}
						e.NodeInfo = &session.NodeInfo{Path: "p/c@1", OutputFor: []string{"p"}}
					}
					errs[i] = s.AppendEvent(background, to[i], e)
				}
				require.Equal(t, errs[1] == nil, errs[0] == nil)
				if errs[0] == nil {
					require.Equal(t, sessiontestsuite.Snapshot(to[1]).Events, sessiontestsuite.Snapshot(to[0]).Events)
					require.Equal(t, to[1].LastUpdateTime(), to[0].LastUpdateTime())
				}
			},
			"get": func(t *rapid.T) {
				app, user, id := of(t)
				r := &session.GetRequest{AppName: app, UserID: user, SessionID: id, NumRecentEvents: rapid.IntRange(0, 3).Draw(t, "last")}
				if rapid.Bool().Draw(t, "after") {
					r.After = time.Unix(rapid.Int64Range(0, int64(n)+1).Draw(t, "time"), 0)
				}
				var got [2]sessiontestsuite.ExpectedSession
				var errs [2]error
				for i, s := range services {
					r, err := s.Get(background, r)
					if errs[i] = err; err == nil {
						got[i] = sessiontestsuite.Snapshot(r.Session)
					}
				}
				require.Equal(t, errs[1] == nil, errs[0] == nil)
				require.Equal(t, got[1], got[0])
			},
			"list": func(t *rapid.T) {
				app, user, _ := of(t)
				if rapid.Bool().Draw(t, "of all users") {
					user = ""
				}
				var got [2]map[string]map[string]any
				for i, s := range services {
					r, err := s.List(background, &session.ListRequest{AppName: app, UserID: user})
					require.NoError(t, err)
					got[i] = make(map[string]map[string]any)
					for _, one := range r.Sessions {
						got[i][one.UserID()+" "+one.ID()] = sessiontestsuite.Snapshot(one).State
					}
				}
				require.Equal(t, got[1], got[0])
			},
			"delete": func(t *rapid.T) {
				app, user, id := of(t)
				for _, s := range services {
					require.NoError(t, s.Delete(background, &session.DeleteRequest{AppName: app, UserID: user, SessionID: id}))
				}
				delete(open, app+" "+user+" "+id)
			},
		})
	})
}
