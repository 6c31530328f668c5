package enginetest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/lineage/engine"
)

// testNeighbours calls every method of the engine on two chats of different users, in which messages,
// branches and checkpoints have the same ids and names where the store can hold that. None reads or
// changes the other chat.
func testNeighbours(t *testing.T, s *store) {
	both := chattest.Neighbours(t, s.Store)
	for i, n := range both {
		other := both[1-i]
		theirs, err := s.Graph(background, other.ChatID)
		require.NoError(t, err)
		e, err := engine.Open(background, s.Store, engine.Options{ChatID: n.ChatID, UserID: n.UserID})
		require.NoError(t, err)
		c := &conversation{Engine: e, t: t}
		texts := func(ids ...string) (texts []string) {
			for _, id := range ids {
				texts = append(texts, n.Word+" says "+id)
			}
			return texts
		}
		calls := neighbourCalls(c, n)
		methods := reflect.TypeFor[*engine.Engine]()
		for i := range methods.NumMethod() {
			require.Contains(t, calls, methods.Method(i).Name, "neighbourCalls has a call for each method")
		}
		require.Len(t, calls, methods.NumMethod())
		line := append(slices.Clone(n.IDs), n.Only)
		for k, id := range line {
			c.switchTo("main")
			require.Equal(t, texts(n.IDs...), c.says())
			for _, name := range slices.Sorted(maps.Keys(calls)) {
				got, err := calls[name](id)
				require.NoError(t, err, "%s of %q in %q", name, id, n.ChatID)
				shown, err := json.Marshal(got)
				require.NoError(t, err)
				require.NotContains(t, string(shown), other.Word, "%s of %q in %q", name, id, n.ChatID)
				e.Remove(engine.IsMessage)
			}
			c.rewind(id)
			require.Equal(t, texts(line[:k+1]...), c.says())
			c.set(says("user", id, n.Word+" changed"))
			require.Equal(t, n.Word+" changed", c.says()[len(c.says())-1])
			c.save()
			require.NotEqual(t, chat.Ref(id), c.Head(), "a new version")
		}
		c.switchTo("main")
		_, err = e.Rewind(background, other.Only)
		requireError(t, err, chat.ErrOtherChat, chat.SubjectMessage, other.Only)
		c.set(says("user", other.Only, n.Word+" took the id"))
		if _, err = e.Save(background); chattest.Repeats(s.Store) {
			require.NoError(t, err)
		} else {
			requireError(t, err, chat.ErrOtherChat, chat.SubjectMessage, other.Only)
		}
		after, err := s.Graph(background, other.ChatID)
		require.NoError(t, err)
		require.Equal(t, theirs, after, "the other chat has not changed")
	}
}

// neighbourCalls has a call for each method of the engine, about a message if it has an id of one.
func neighbourCalls(c *conversation, n chattest.Neighbour) map[string]func(id string) (any, error) {
	changed := func(id string) engine.Fragment { return says("user", id, n.Word+" changed") }
	return map[string]func(id string) (any, error){
		"Aside":            func(string) (any, error) { return c.Aside(background) },
		"Branch":           func(string) (any, error) { return c.Branch(), nil },
		"Branches":         func(string) (any, error) { return c.Branches(background) },
		"Chat":             func(string) (any, error) { return c.Chat(background) },
		"ChatID":           func(string) (any, error) { return c.ChatID(), nil },
		"Checkpoint":       func(id string) (any, error) { return c.Checkpoint(background, "at "+id) },
		"Checkpoints":      func(string) (any, error) { return c.Checkpoints(background) },
		"DeleteCheckpoint": func(id string) (any, error) { return nil, c.DeleteCheckpoint(background, "at "+id) },
		"Fragments":        func(string) (any, error) { return c.Fragments(), nil },
		"Graph":            func(string) (any, error) { return c.Graph(background) },
		"Head":             func(string) (any, error) { return c.Head(), nil },
		"Pending":          func(id string) (any, error) { return len(c.Pending()), c.Set(changed(id)) },
		"Remove":           func(string) (any, error) { return c.Remove(engine.IsMessage), nil },
		"Replace":          func(id string) (any, error) { return c.Replace(engine.IsMessage, changed(id)) },
		"Resolve": func(id string) (any, error) {
			c.set(changed(id))
			return c.Resolve(background, engine.ResolveOptions{})
		},
		"Restore": func(string) (any, error) { return c.Restore(background, "here") },
		"Rewind":  func(id string) (any, error) { return c.Rewind(background, id) },
		"Save": func(id string) (any, error) {
			c.set(changed(id))
			return c.Save(background)
		},
		"Set":          func(id string) (any, error) { return nil, c.Set(changed(id)) },
		"SwitchBranch": func(string) (any, error) { return nil, c.SwitchBranch(background, "side") },
		"UpdateChat":   func(string) (any, error) { return c.UpdateChat(background, chat.ChatUpdate{Title: &n.Word}) },
	}
}
