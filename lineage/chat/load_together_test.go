package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// drawState draws a state of the chat "c": a tree of some messages of a few ids.
func drawState(t *rapid.T, label string) []Message {
	ids := []string{"a", "b", "c", "d", "e", "f", "g"}
	var messages []Message
	for _, id := range rapid.Permutation(ids).Draw(t, label)[:rapid.IntRange(1, len(ids)).Draw(t, "messages")] {
		parent := ""
		if n := rapid.IntRange(0, len(messages)).Draw(t, "parent"); n > 0 {
			parent = messages[n-1].ID
		}
		m := said(id, parent)
		m.Data = json.RawMessage(fmt.Sprintf(`{"id":%q,"role":"user","content":%q}`, id, rapid.SampledFrom([]string{"one", "two"}).Draw(t, "says")))
		messages = append(messages, m)
	}
	return messages
}

// loadState loads a state of the chat "c".
func loadState(ctx context.Context, store *lineage.Store, messages []Message) error {
	_, err := Load(ctx, store, Loading{
		Chat: Chat{ID: "c", UserID: "ada", CreatedAt: 1, UpdatedAt: 2}, Messages: pairs(messages),
		Branches: []Branch{{ID: "main", Name: "main", HeadMessageID: Ref(messages[len(messages)-1].ID), CreatedAt: 1}},
		// Only what the other state has can be in the way: where messages of both follow one another in a circle.
		Problem: func(error) {},
	})
	return err
}

// requireState requires that the ids of a state lead to it, once each.
func requireState(t require.TestingT, chats Store, messages []Message) {
	ctx := context.Background()
	g, err := chats.Graph(ctx, "c")
	require.NoError(t, err)
	seen := make(map[string]int)
	for _, n := range g.Nodes {
		seen[n.ID]++
	}
	for _, m := range messages {
		got, err := chats.Message(ctx, "c", m.ID)
		require.NoError(t, err)
		require.NotNil(t, got, m.ID)
		require.Equal(t, m.ParentID, got.ParentID, m.ID)
		require.JSONEq(t, string(m.Data), string(got.Data), m.ID)
		require.Equal(t, 1, seen[m.ID], m.ID)
	}
}

// meddling does something before one of the commits to an engine.
type meddling struct {
	backend.Engine
	left int
	do   func()
}

func (e *meddling) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if e.left--; e.left == 0 {
		e.do()
	}
	return e.Engine.Apply(ctx, c, o)
}

// A loading during which another one loads the same state of the chat, before any of its commits, adds nothing twice.
// Of two different states the one that is loaded last counts, as a whole.
func TestLoadDuringAnother(t *testing.T) {
	ctx := context.Background()
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		store, err := lineage.Open(ctx, fmt.Sprint(dir, "/", n), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer store.Close()
		if rapid.Bool().Draw(t, "after an earlier state") {
			require.NoError(t, loadState(ctx, store, drawState(t, "earlier")))
		}
		mine, theirs := drawState(t, "mine"), drawState(t, "theirs")
		same := rapid.Bool().Draw(t, "the same")
		if same {
			theirs = mine
		}
		engine := &meddling{Engine: write.Of(store).Engine(), left: rapid.IntRange(1, 4).Draw(t, "before commit")}
		engine.do = func() { require.NoError(t, loadState(ctx, store, theirs)) }
		require.NoError(t, loadState(ctx, lineage.New(engine), mine))
		if same {
			requireState(t, On(store), mine)
		}
		for _, state := range [][]Message{mine, theirs, mine} {
			for range 2 {
				require.NoError(t, loadState(ctx, store, state))
			}
			if same {
				requireState(t, On(store), state)
			}
			first, err := store.View().Head(ctx)
			require.NoError(t, err)
			require.NoError(t, loadState(ctx, store, state))
			again, err := store.View().Head(ctx)
			require.NoError(t, err)
			require.Equal(t, first, again)
		}
	})
}

// Loadings at the same time, each with a handle of its own, all end, and add equal messages once.
func TestLoadTogether(t *testing.T) {
	ctx := context.Background()
	for _, same := range []bool{true, false} {
		store := storetest.New(t)
		states := make([][]Message, 4)
		for i := range states {
			for k := range 3 * pageMessages {
				m := said(fmt.Sprint("m", k), "")
				if k > 0 {
					m.ParentID = Ref(fmt.Sprint("m", (k-1)/(k%3+1)))
				}
				if !same && k%(100+i) == 7 {
					m.Data = json.RawMessage(fmt.Sprint(i))
				}
				states[i] = append(states[i], m)
			}
		}
		var loaders sync.WaitGroup
		failed := make([]error, len(states))
		for i := range states {
			loaders.Go(func() { failed[i] = loadState(ctx, lineage.New(write.Of(store).Engine()), states[i]) })
		}
		loaders.Wait()
		for _, err := range failed {
			require.NoError(t, err)
		}
		if same {
			stats, err := store.Stats(ctx)
			require.NoError(t, err)
			require.EqualValues(t, len(states[0]), stats.Spans)
		}
		for _, state := range states {
			require.NoError(t, loadState(ctx, store, state))
			requireState(t, On(store), state)
		}
	}
}

// What the store has of a chat is added again where it was deleted and collected while the chat was loaded.
func TestLoadCollectedMeanwhile(t *testing.T) {
	ctx := context.Background()
	for _, more := range []int{0, 1, pageMessages + 1} {
		store := storetest.New(t)
		thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "c", UserID: "ada"})
		require.NoError(t, err)
		side, err := thread.CreateBranch(ctx, "side", lineage.BranchOptions{Empty: true})
		require.NoError(t, err)
		items := make([]lineage.Item, 2*pageMessages)
		for i := range items {
			items[i] = lineage.User(fmt.Sprint("says ", i)).WithID(fmt.Sprint("m", i))
		}
		_, err = side.Extend(ctx, items...)
		require.NoError(t, err)
		chats := On(store)
		var messages []Message
		for m, err := range chats.MessageChain(ctx, "c", fmt.Sprint("m", len(items)-1)) {
			require.NoError(t, err)
			messages = append(messages, m)
		}
		for i := range more {
			messages = append(messages, said(fmt.Sprint("new", i), messages[len(messages)-1].ID))
		}
		head := Ref(messages[len(messages)-1].ID)
		deleted := false
		load := func() (Loaded, error) {
			return Load(ctx, store, Loading{
				Chat: Chat{ID: "c", UserID: "ada", CreatedAt: 1, UpdatedAt: 2},
				Messages: func(yield func(Message, error) bool) {
					for i, m := range messages {
						if i == len(items)-1 && !deleted {
							deleted = true
							require.NoError(t, thread.DeleteBranch(ctx, "side"))
							_, err := store.Collect(ctx, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
							require.NoError(t, err)
						}
						if !yield(m, nil) {
							return
						}
					}
				},
				Branches: []Branch{{ID: "main", Name: "main", HeadMessageID: head, CreatedAt: 1}},
				Problem:  func(err error) { require.NoError(t, err) },
			})
		}
		done, err := load()
		require.NoError(t, err)
		require.True(t, deleted)
		require.Equal(t, len(messages), done.Messages)
		require.Equal(t, len(messages), done.New)
		chain := slices.Collect(func(yield func(string) bool) {
			for m, err := range chats.Messages(ctx, "c") {
				require.NoError(t, err)
				yield(m.ID)
			}
		})
		require.Len(t, chain, len(messages))
		done, err = load()
		require.NoError(t, err)
		require.Equal(t, Loaded{Messages: len(messages)}, done)
	}
}

// A state of the store that expires while it is read, as where the process that has the store open ends, is read again.
func TestLoadExpired(t *testing.T) {
	ctx := context.Background()
	store := storetest.New(t)
	states := [][]Message{{said("m1", ""), said("m2", "m1")}, {said("m1", ""), said("m2", "m1"), said("m3", "m2")}}
	states = append(states, slices.Clone(states[1]))
	states[2][0].Data = json.RawMessage(`"changed"`)
	for _, state := range states {
		engine := &backendtest.Expiring{Engine: write.Of(store).Engine()}
		engine.Left.Store(3)
		require.NoError(t, loadState(ctx, lineage.New(engine), state))
		requireState(t, On(store), state)
	}
}

// A new message may be derived from another one, also where both wait for the new version that they follow.
func TestLoadDerived(t *testing.T) {
	store, _, s := besideOthers(t)
	first := said("m1", "")
	require.NoError(t, loadInto(t, s, Loading{Messages: pairs([]Message{first})}))
	a, b := said("a", "m1"), said("b", "m1")
	b.Origin.DerivedFrom = "a"
	c, d := said("c", "m1"), said("d", "m1")
	d.Origin.DerivedFrom = "c"
	first.Data = json.RawMessage(`"changed"`)
	for _, messages := range [][]Message{{said("m1", ""), a, b}, {first, a, b, c, d}} {
		require.NoError(t, loadInto(t, s, Loading{Messages: pairs(messages)}))
		for i, m := range messages {
			got, err := store.Message(context.Background(), "c", m.ID)
			require.NoError(t, err)
			require.Equal(t, m.ParentID, got.ParentID)
			if m.Origin.DerivedFrom != "" {
				require.Equal(t, content.Sum([]byte(messages[i-1].ID)).String(), got.Origin.DerivedFrom)
			}
		}
	}
}
