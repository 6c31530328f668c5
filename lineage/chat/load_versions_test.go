package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// stopping is an engine that refuses commits after a number of them.
type stopping struct {
	backend.Engine
	left int
}

var errStopped = errors.New("stopped")

func (e *stopping) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if e.left--; e.left < 0 {
		return backend.Receipt{}, errStopped
	}
	return e.Engine.Apply(ctx, c, o)
}

// changing is a chat elsewhere, whose messages are changed in place.
type changing struct {
	ids     []string // parents before their children
	parents map[string]string
	says    map[string]string
	heads   map[string]string
}

func (c *changing) loading(problem func(error)) Loading {
	l := Loading{Chat: Chat{ID: "c", UserID: "ada", CreatedAt: 1, UpdatedAt: 2}, Problem: problem}
	var messages []Message
	for _, id := range c.ids {
		data, _ := json.Marshal(c.says[id])
		messages = append(messages, Message{ID: id, ParentID: Ref(c.parents[id]), Name: "user", Data: data, CreatedAt: 1})
	}
	l.Messages = pairs(messages)
	for _, name := range []string{"main", "side"} {
		l.Branches = append(l.Branches, Branch{ID: name, Name: name, HeadMessageID: Ref(c.heads[name]), CreatedAt: 1})
	}
	return l
}

// Loadings that are stopped anywhere, with messages changed in place between them, leave
// what the last whole one says, and every message that only the store has.
func TestLoadChangedAndStopped(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(r *rapid.T) {
		store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer store.Close()
		on := On(store)
		c := &changing{parents: map[string]string{}, says: map[string]string{}, heads: map[string]string{}}
		own := map[string]string{}
		n := 0
		load := func(engine backend.Engine) error {
			l := c.loading(func(err error) { require.NoError(r, err) })
			_, err := Load(ctx, lineage.New(engine), l)
			return err
		}
		for range rapid.IntRange(1, 4).Draw(r, "loadings") {
			for range rapid.IntRange(0, 6).Draw(r, "new") {
				n++
				id := fmt.Sprint("m", n)
				c.parents[id] = rapid.SampledFrom(append([]string{""}, c.ids...)).Draw(r, "parent")
				c.says[id], c.ids = id, append(c.ids, id)
				c.heads[rapid.SampledFrom([]string{"main", "side"}).Draw(r, "branch")] = id
			}
			for range rapid.IntRange(0, 3).Draw(r, "changed") {
				n++
				if len(c.ids) == 0 {
					continue
				}
				at := rapid.IntRange(0, len(c.ids)-1).Draw(r, "at")
				if id := c.ids[at]; rapid.Bool().Draw(r, "move") {
					c.parents[id] = rapid.SampledFrom(append([]string{""}, c.ids[:at]...)).Draw(r, "new parent")
				} else {
					c.says[id] = fmt.Sprint("changed ", n)
				}
			}
			if rapid.Bool().Draw(r, "stop") {
				err := load(&stopping{Engine: write.Of(store).Engine(), left: rapid.IntRange(0, 8).Draw(r, "commits")})
				if err != nil {
					require.ErrorIs(r, err, errStopped)
				}
			}
			require.NoError(r, load(write.Of(store).Engine()))
			for name, head := range c.heads {
				b, err := on.Branch(ctx, "c", name)
				require.NoError(r, err)
				if _, ours := own[string(b.HeadMessageID)]; !ours {
					require.Equal(r, Ref(head), b.HeadMessageID)
				}
			}
			for _, id := range c.ids {
				m, err := on.Message(ctx, "c", id)
				require.NoError(r, err)
				require.NotNil(r, m, id)
				require.Equal(r, Ref(c.parents[id]), m.ParentID, id)
				require.JSONEq(r, fmt.Sprintf("%q", c.says[id]), string(m.Data))
			}
			for id, parent := range own {
				m, err := on.Message(ctx, "c", id)
				require.NoError(r, err)
				require.NotNil(r, m, id)
				require.Equal(r, Ref(parent), m.ParentID, id)
			}
			before, err := store.View().Head(ctx)
			require.NoError(r, err)
			require.NoError(r, load(write.Of(store).Engine()))
			after, err := store.View().Head(ctx)
			require.NoError(r, err)
			require.Equal(r, before, after)
			for range rapid.IntRange(0, 2).Draw(r, "of the store's own") {
				n++
				id := fmt.Sprint("own", n)
				known := append([]string{""}, c.ids...)
				known = append(known, slices.Sorted(maps.Keys(own))...)
				parent := known[rapid.IntRange(0, len(known)-1).Draw(r, "follows")]
				require.NoError(r, on.AddMessage(ctx, Message{ID: id, ChatID: "c", ParentID: Ref(parent), Name: "user", Data: []byte(`"own"`), CreatedAt: 1}))
				own[id] = parent
			}
		}
		// Nobody's id leads elsewhere: the graph has each message once.
		g, err := on.Graph(ctx, "c")
		require.NoError(r, err)
		seen := map[string]int{}
		for _, node := range g.Nodes {
			seen[node.ID]++
		}
		for _, id := range c.ids {
			require.Equal(r, 1, seen[id], id)
		}
	})
}

// A message that somebody appends while earlier ones are replaced follows their new
// versions in the next loading, and is found all the time.
func TestAppendedWhileReplaced(t *testing.T) {
	ctx := context.Background()
	store, e, s := besideOthers(t)
	first := []Message{said("m1", ""), said("m2", "m1"), said("m3", "m2")}
	branches := []Branch{{ID: "main", Name: "main", HeadMessageID: "m3", IsActive: true}}
	require.NoError(t, loadInto(t, s, Loading{Messages: pairs(first), Branches: branches}))
	changed := said("m2", "m1")
	changed.Data = json.RawMessage(`"changed"`)
	e.once(isKind[*structure.Run], func() {
		_, err := store.Append(ctx, AppendRequest{ChatID: "c", BranchID: "main", ExpectedHead: "m3", Messages: []Message{said("n", "")}})
		require.NoError(t, err)
	})
	require.NoError(t, loadInto(t, s, Loading{Messages: pairs([]Message{first[0], changed, first[2]}), Branches: branches}))
	require.Nil(t, e.before, "somebody else was faster")
	ids := []string{}
	for m, err := range store.Messages(ctx, "c") {
		require.NoError(t, err)
		ids = append(ids, m.ID+" "+string(m.Data))
	}
	require.Equal(t, []string{`m1 "m1"`, `m2 "changed"`, `m3 "m3"`, `n "n"`}, ids)
}

// New versions come into force together: a loading that is stopped anywhere leaves the earlier
// ones or has all new ones, and nobody sees some of each.
func TestVersionsComeTogether(t *testing.T) {
	ctx := context.Background()
	for left := 0; ; left++ {
		store, _, s := besideOthers(t)
		var messages []Message
		for i := range 2*pageMessages + 10 {
			m := said(fmt.Sprint("m", i), "")
			if i > 0 {
				m.ParentID = Ref(messages[i-1].ID)
			}
			messages = append(messages, m)
		}
		load := func(s *onStore) error {
			last := messages[len(messages)-1]
			return loadInto(t, s, Loading{Messages: pairs(messages), Branches: []Branch{{Name: "main", HeadMessageID: Ref(last.ID), CreatedAt: 1}}})
		}
		require.NoError(t, load(s))
		add := said("own", messages[20].ID)
		require.NoError(t, store.AddMessage(ctx, add))
		old := said("m1", "m0")
		messages[1].Data, messages[300].Data = json.RawMessage(`"changed"`), json.RawMessage(`"too"`)
		messages = append(messages, said("new", messages[len(messages)-1].ID))
		engine := &stopping{Engine: write.Of(s.store).Engine(), left: left}
		err := load(&onStore{state: latest(lineage.New(engine))})
		if err != nil {
			require.ErrorIs(t, err, errStopped)
		}
		changed := 0
		for _, head := range []string{messages[len(messages)-2].ID, "own"} {
			at := 0
			for m, err := range store.MessageChain(ctx, "c", head) {
				require.NoError(t, err)
				if m.ID != "own" {
					require.Equal(t, messages[at].ID, m.ID)
				}
				if at == 1 && string(m.Data) != string(old.Data) {
					changed++
				}
				at++
			}
		}
		if err == nil {
			require.Equal(t, 2, changed)
			require.Greater(t, left, 0)
			return
		}
		require.Zero(t, changed)
		require.NoError(t, load(s), "the next goes on")
		m, err := store.Message(ctx, "c", "m300")
		require.NoError(t, err)
		require.Equal(t, `"too"`, string(m.Data))
	}
}

// What an agent said without ids after a message that is replaced follows its new version,
// once.
func TestAgentBehindReplaced(t *testing.T) {
	ctx := context.Background()
	store, _, s := besideOthers(t)
	messages := []Message{said("m1", ""), said("m2", "m1"), said("m3", "m2")}
	load := func() error {
		return loadInto(t, s, Loading{Messages: pairs(messages), Branches: []Branch{{Name: "main", HeadMessageID: "m3", CreatedAt: 1}}})
	}
	require.NoError(t, load())
	thread, err := s.store.FindThread(ctx, "c")
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.Assistant("one"), lineage.Assistant("one"), lineage.User("two").WithID("theirs"))
	require.NoError(t, err)
	for round := range 3 {
		messages[1].Data = json.RawMessage(fmt.Sprint(round))
		for range 2 {
			require.NoError(t, load())
			text := ""
			for m, err := range store.Messages(ctx, "c") {
				require.NoError(t, err)
				text += " " + Preview(m.Data)
			}
			require.Equal(t, fmt.Sprint(" m1 ", round, " m3 one one two"), text)
			g, err := store.Graph(ctx, "c")
			require.NoError(t, err)
			require.Len(t, g.Nodes, 6+5*(round+1))
			chain := 0
			for range store.MessageChain(ctx, "c", "theirs") {
				chain++
			}
			require.Equal(t, 6, chain)
		}
	}
}

// Messages go by the same ids whichever way they are read, also where somebody goes on in the
// run of an earlier version: after it, or in a context that still ends there.
func TestIDsBehindEarlierVersion(t *testing.T) {
	ctx := context.Background()
	store, _, s := besideOthers(t)
	messages := []Message{said("m1", ""), said("m2", "m1"), said("m3", "m2")}
	load := func() {
		require.NoError(t, loadInto(t, s, Loading{Messages: pairs(messages), Branches: []Branch{{Name: "main", HeadMessageID: "m3", CreatedAt: 1}}}))
	}
	load()
	thread, err := s.store.FindThread(ctx, "c")
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	side, err := main.Fork(ctx, lineage.ForkOptions{})
	require.NoError(t, err)
	end, err := side.Tip(ctx)
	require.NoError(t, err)
	messages[1].Data = json.RawMessage(`"changed"`)
	load()

	_, err = side.Extend(ctx, lineage.User("theirs").WithID("theirs"))
	require.NoError(t, err)
	require.NoError(t, store.AddMessage(ctx, said("behind", foreignID(thread.ID(), end))))
	earlier := structure.SpanRef{Run: end.Run, Seq: end.Seq - 1}
	old := []string{"m1", foreignID(thread.ID(), earlier), foreignID(thread.ID(), end)}
	require.Equal(t, append(old, "theirs"), chainOf(t, store, "theirs"))
	require.Equal(t, append(old, "behind"), chainOf(t, store, "behind"))
	requireGraphAgrees(t, store, 7)

	load()
	for _, id := range []string{"theirs", "behind"} {
		require.Equal(t, []string{"m1", "m2", "m3", id}, chainOf(t, store, id))
	}
	requireGraphAgrees(t, store, 9)
}

// requireGraphAgrees compares the graph of the chat "c", of so many messages, with its messages.
func requireGraphAgrees(t *testing.T, s Store, messages int) {
	t.Helper()
	ctx := context.Background()
	g, err := s.Graph(ctx, "c")
	require.NoError(t, err)
	require.Len(t, g.Nodes, messages)
	parents := make(map[string]Ref)
	for _, n := range g.Nodes {
		parents[n.ID] = n.ParentID
	}
	require.Len(t, parents, messages)
	for _, n := range g.Nodes {
		m, err := s.Message(ctx, "c", n.ID)
		require.NoError(t, err)
		require.NotNil(t, m, n.ID)
		require.Equal(t, n, m.Node())
		chain := chainOf(t, s, n.ID)
		for id := n.ID; id != ""; id = string(parents[id]) {
			require.NotEmpty(t, chain)
			require.Equal(t, id, chain[len(chain)-1])
			chain = chain[:len(chain)-1]
		}
		require.Empty(t, chain)
	}
}

// A message without an id of its own that was changed elsewhere stays as it is.
func TestLoadChangedForeign(t *testing.T) {
	ctx := context.Background()
	store, _, s := besideOthers(t)
	require.NoError(t, loadInto(t, s, Loading{Messages: pairs([]Message{said("m1", "")}), Branches: []Branch{{Name: "main", HeadMessageID: "m1"}}}))
	thread, err := s.store.FindThread(ctx, "c")
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.Assistant("one"))
	require.NoError(t, err)
	b, err := store.ActiveBranch(ctx, "c")
	require.NoError(t, err)
	changed := said(string(b.HeadMessageID), "m1")
	changed.Data = json.RawMessage(`"changed"`)
	for range 3 {
		var problems []error
		messages := []Message{said("m1", ""), changed, said("next", changed.ID)}
		_, err := Load(ctx, s.store, Loading{
			Chat: Chat{ID: "c", UserID: "ada", CreatedAt: 1, UpdatedAt: 2}, Problem: func(err error) { problems = append(problems, err) },
			Messages: pairs(messages), Branches: []Branch{{Name: "main", HeadMessageID: "next"}},
		})
		require.NoError(t, err)
		require.Len(t, problems, 1)
		require.ErrorIs(t, problems[0], ErrExists)
		chain := ""
		for m, err := range store.Messages(ctx, "c") {
			require.NoError(t, err)
			chain += " " + Preview(m.Data)
		}
		require.Equal(t, " m1 one next", chain)
		g, err := store.Graph(ctx, "c")
		require.NoError(t, err)
		require.Len(t, g.Nodes, 3)
	}
}

// A message cannot be loaded after one that only the store has and that follows it. That two
// messages change places is no such thing.
func TestLoadCircular(t *testing.T) {
	ctx := context.Background()
	store, _, s := besideOthers(t)
	require.NoError(t, loadInto(t, s, Loading{Messages: pairs([]Message{said("m1", ""), said("m2", "m1"), said("m3", "m2")})}))
	require.NoError(t, store.AddMessage(ctx, said("own", "m3")))
	for range 2 {
		require.NoError(t, loadInto(t, s, Loading{Messages: pairs([]Message{said("m2", ""), said("m1", "m2"), said("m3", "m1")})}))
	}
	require.Equal(t, []string{"m2", "m1", "m3", "own"}, chainOf(t, store, "own"))
	for range 2 {
		var problems []error
		_, err := Load(ctx, s.store, Loading{
			Chat: Chat{ID: "c", UserID: "ada", CreatedAt: 1, UpdatedAt: 3}, Problem: func(err error) { problems = append(problems, err) },
			Messages: pairs([]Message{said("m2", "own"), said("m1", "m2"), said("m3", "m1")}),
		})
		require.NoError(t, err)
		require.Len(t, problems, 1)
		require.ErrorIs(t, problems[0], ErrInvalid)
		require.Equal(t, []string{"m2", "m1", "m3", "own"}, chainOf(t, store, "own"))
	}
}

// Chats of several databases that have the same message ids are all loaded, whatever the order and the users.
func TestLoadIDsOfOtherChats(t *testing.T) {
	ctx := context.Background()
	store, _, s := besideOthers(t)
	for round := range 2 {
		for _, user := range []string{"alice", "bob"} {
			l := Loading{Chat: Chat{ID: "chat of " + user, UserID: user, CreatedAt: 1, UpdatedAt: 2}}
			var messages []Message
			for i, id := range []string{"1", "2", "3"} {
				l.Branches = []Branch{{Name: "main", HeadMessageID: Ref(id), CreatedAt: 1}}
				m := Message{ID: id, Name: "user", Data: json.RawMessage(fmt.Sprintf("%q", user+" says "+id)), CreatedAt: 1}
				if i > 0 {
					m.ParentID = Ref(fmt.Sprint(i))
				}
				messages = append(messages, m)
			}
			l.Messages, l.Problem = pairs(messages), func(err error) { require.NoError(t, err) }
			done, err := Load(ctx, s.store, l)
			require.NoError(t, err)
			require.Equal(t, 3*(1-round), done.New)
		}
	}
	for _, user := range []string{"alice", "bob"} {
		var texts []string
		for m, err := range store.Messages(ctx, "chat of "+user) {
			require.NoError(t, err)
			texts = append(texts, string(m.Data))
		}
		require.Equal(t, []string{`"` + user + ` says 1"`, `"` + user + ` says 2"`, `"` + user + ` says 3"`}, texts)
	}
}

func chainOf(t *testing.T, s Store, id string) (ids []string) {
	t.Helper()
	for m, err := range s.MessageChain(context.Background(), "c", id) {
		require.NoError(t, err)
		ids = append(ids, m.ID)
	}
	return ids
}
