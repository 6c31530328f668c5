//test:race

package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/lineage/engine/enginetest"
)

//test:norace
func TestEngine(t *testing.T) { engines(t, enginetest.RunSequential) }

func TestEngineConcurrent(t *testing.T) {
	campaign.Long(t)
	engines(t, enginetest.RunConcurrent)
}

func engines(t *testing.T, run func(*testing.T, enginetest.Config)) {
	run(t, enginetest.Config{New: func(t testing.TB) chat.Store {
		s := storetest.New(t)
		return chattest.Repeating(chat.On(s), s)
	}})
}

// The library can rename and delete branches while an engine is open.
func TestBranchesChangedByTheLibrary(t *testing.T) {
	ctx := context.Background()
	store := storetest.New(t)
	open := func() *engine.Engine {
		e, err := engine.Open(ctx, chat.On(store), engine.Options{ChatID: "c", UserID: "ada"})
		require.NoError(t, err)
		return e
	}
	save := func(e *engine.Engine, text string) error {
		require.NoError(t, e.Set(engine.User(text)))
		_, err := e.Save(ctx)
		return err
	}
	e := open()
	require.NoError(t, save(e, "one"))
	first := string(e.Head())
	_, err := e.Rewind(ctx, first)
	require.NoError(t, err)
	thread, err := store.FindThread(ctx, "c")
	require.NoError(t, err)

	named, err := thread.BranchContext(ctx, "main-v2")
	require.NoError(t, err)
	require.NoError(t, thread.NameBranch(ctx, "renamed", named))
	require.NoError(t, save(e, "two"))
	require.Equal(t, "renamed", e.Branch())
	_, err = thread.CreateBranch(ctx, "main-v2", lineage.BranchOptions{})
	require.NoError(t, err)
	require.NoError(t, save(e, "three"))
	require.Equal(t, "renamed", e.Branch(), "another branch with the old name is not it")

	require.NoError(t, thread.DeleteBranch(ctx, "renamed"))
	err = save(e, "four")
	require.ErrorIs(t, err, chat.ErrNotFound)
	require.ErrorContains(t, err, `branch "renamed" in chat "c"`)
	require.Len(t, e.Pending(), 1)
	b, err := e.Rewind(ctx, first)
	require.NoError(t, err, "a way off a branch that is gone")
	require.Equal(t, "renamed-v1", b.Name)
	require.NoError(t, save(e, "five"))

	// An erased message is not sent and does not stop the conversation.
	spoken, err := thread.Active(ctx)
	require.NoError(t, err)
	entries, err := spoken.All(ctx)
	require.NoError(t, err)
	require.NoError(t, store.Erase(ctx, entries[0].Content))
	r, err := e.Resolve(ctx, engine.ResolveOptions{})
	require.NoError(t, err)
	require.Len(t, r.Messages, 1)
	require.Len(t, r.History, 1)
	require.Equal(t, "five", r.Messages[0].Text())
}

// A new version is derived from the one before it, also where its text was said before.
func TestProvenanceOfVersions(t *testing.T) {
	ctx := context.Background()
	store := storetest.New(t)
	e, err := engine.Open(ctx, chat.On(store), engine.Options{ChatID: "c", UserID: "ada"})
	require.NoError(t, err)
	says := func(id, text string) engine.Fragment {
		return engine.Message(engine.UIMessage{ID: id, Role: "assistant", Parts: []engine.Part{engine.TextPart(text)}})
	}
	require.NoError(t, e.Set(says("k1", "known"), says("k2", "known too"), says("a", "first")))
	_, err = e.Save(ctx)
	require.NoError(t, err)
	id := "a"
	for _, text := range []string{"known", "new", "known too", "first", "last"} {
		require.NoError(t, e.Set(says(id, text)))
		head, err := e.Save(ctx)
		require.NoError(t, err)
		id = string(head)
	}
	for text, want := range map[string][]string{
		"last":      {"last", "first", "known too", "new", "known"},
		"known too": {"known too", "new", "known", "first"},
		"known":     {"known", "first", "known too", "new"},
	} {
		chain, err := store.Provenance(ctx, content.Sum([]byte(text)))
		require.NoError(t, err)
		require.Len(t, chain, len(want), text)
		for i, b := range chain {
			require.Equal(t, content.Sum([]byte(want[i])), b.ID, "%s: %s", text, want[i])
		}
	}
}

// blocked is a store whose calls wait until the test lets them continue.
type blocked struct {
	chat.Store
	reached, leave chan struct{}
}

func (b blocked) Append(ctx context.Context, r chat.AppendRequest) (chat.Ref, error) {
	close(b.reached)
	<-b.leave
	return b.Store.Append(ctx, r)
}

// Messages set during a save are not lost, and Set does not wait for the save.
func TestSetDuringSave(t *testing.T) {
	ctx := context.Background()
	b := blocked{chat.On(storetest.New(t)), make(chan struct{}), make(chan struct{})}
	e, err := engine.Open(ctx, b, engine.Options{ChatID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, e.Set(engine.User("first")))
	saved := make(chan error)
	go func() {
		_, err := e.Save(ctx)
		saved <- err
	}()
	<-b.reached
	require.NoError(t, e.Set(engine.User("second")))
	require.Len(t, e.Pending(), 2)
	impatient, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = e.Resolve(impatient, engine.ResolveOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(b.leave)
	require.NoError(t, <-saved)
	require.Len(t, e.Pending(), 1)
	require.Equal(t, "second", e.Pending()[0].Data)
}

func TestMetadataKeepsItsBytes(t *testing.T) {
	ctx := context.Background()
	store := chat.On(storetest.New(t))
	_, err := store.CreateChat(ctx, chat.Chat{ID: "c", UserID: "ada", Metadata: json.RawMessage(`{ "b" : 1.0,  "a":[1, 2] }`)})
	require.NoError(t, err)
	e, err := engine.Open(ctx, store, engine.Options{ChatID: "c", UserID: "ada", Metadata: json.RawMessage(`{"b":2e0}`)})
	require.NoError(t, err)
	c, err := e.Chat(ctx)
	require.NoError(t, err)
	require.Equal(t, `{ "b" : 2e0,  "a":[1, 2] }`, string(c.Metadata))

	// Opening a chat again commits nothing.
	_, err = engine.Open(ctx, store, engine.Options{ChatID: "c", UserID: "ada", Metadata: json.RawMessage(`{"b":2e0}`)})
	require.NoError(t, err)
	again, err := e.Chat(ctx)
	require.NoError(t, err)
	require.Equal(t, c, again)
}
