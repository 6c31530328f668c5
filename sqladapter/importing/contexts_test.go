package importing

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/structure"
)

// beforeContext is an engine on which somebody else does something right before a
// context is stated.
type beforeContext struct {
	backend.Engine
	meant func()
}

func (b *beforeContext) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if _, ok := c.Records[0].(*structure.Context); ok && b.meant != nil {
		do := b.meant
		b.meant = nil
		do()
	}
	return b.Engine.Apply(ctx, c, o)
}

// withBeforeContext returns a store with a chat c on such an engine.
func withBeforeContext(t *testing.T) (*lineage.Store, *beforeContext) {
	t.Helper()
	ctx := context.Background()
	in, err := lineage.Open(ctx, t.TempDir(), lineage.Options{})
	require.NoError(t, err)
	engine := &beforeContext{Engine: write.Of(in).Engine()}
	store := lineage.New(engine)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	_, err = chat.On(store).CreateChat(ctx, chat.Chat{ID: "c", UserID: "ada", CreatedAt: 1, UpdatedAt: 1})
	require.NoError(t, err)
	return store, engine
}

// loadContext brings a context of the chat, which began at one message of it and points to another.
func loadContext(ctx context.Context, store *lineage.Store, c write.Context, base, tip chat.Ref) (bool, error) {
	return loadBelow(ctx, store, c, base, tip, nil)
}

// loadBelow is loadContext with the contexts of the database from which others inherit.
func loadBelow(ctx context.Context, store *lineage.Store, c write.Context, base, tip chat.Ref, from map[structure.ContextID]*structure.Remnant) (bool, error) {
	l := &contextLoading{chatID: "c", context: c, base: base, tip: tip}
	l.inherited = func(_ context.Context, id structure.ContextID) (*structure.Remnant, error) {
		if r := from[id]; r != nil {
			return new(*r), nil
		}
		return nil, nil
	}
	return l.into(ctx, store)
}

// Overrides that a context is loaded with, and metadata that it gets at the same time, do
// not lose each other.
func TestContextLoadedAndChanged(t *testing.T) {
	ctx := context.Background()
	store, engine := withBeforeContext(t)
	id := structure.NewID[lineage.ContextID]()
	changed, err := loadContext(ctx, store, write.Context{ID: id, CreatedAt: time.UnixMilli(1)}, "", "")
	require.NoError(t, err)
	require.True(t, changed)
	c, err := store.Context(ctx, id)
	require.NoError(t, err)

	done := make(chan error, 1)
	engine.meant = func() {
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			done <- setMetadata(ctx, c, []byte(`{"theirs":1}`))
		}()
		select {
		case <-finished:
		case <-time.After(50 * time.Millisecond): // it waits for its turn
		}
	}
	model := "small"
	changed, err = loadContext(ctx, store, write.Context{ID: id, CreatedAt: time.UnixMilli(1), Overrides: lineage.Overrides{Model: &model}}, "", "")
	require.NoError(t, err)
	require.True(t, changed)
	require.Nil(t, engine.meant)
	require.NoError(t, <-done)
	info, err := c.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, `{"theirs":1}`, string(info.Metadata))
	require.Equal(t, &model, info.Overrides.Model)

	changed, err = loadContext(ctx, store, write.Context{ID: id, CreatedAt: time.UnixMilli(1), Overrides: lineage.Overrides{SystemPrompt: &model}}, "", "")
	require.NoError(t, err)
	require.False(t, changed, "it has overrides of its own")
}

// What a context is loaded with is kept as it is, also where it is not JSON.
func TestContextLoadedWithWhatIsNotJSON(t *testing.T) {
	ctx := context.Background()
	store, _ := withBeforeContext(t)
	id := structure.NewID[lineage.ContextID]()
	l := write.Context{ID: id, CreatedAt: time.UnixMilli(1), Metadata: []byte("mine")}
	_, err := loadContext(ctx, store, l, "", "")
	require.NoError(t, err)
	l.Overrides.JSON = []byte("t=1")
	changed, err := loadContext(ctx, store, l, "", "")
	require.NoError(t, err)
	require.True(t, changed)
	c, err := store.Context(ctx, id)
	require.NoError(t, err)
	info, err := c.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "t=1", string(info.Overrides.JSON))
	require.Equal(t, "mine", string(info.Metadata))
}

// A context that somebody else loaded just before, and changed, keeps what it was changed to.
func TestContextLoadedTwiceAtOnceKeepsWhatItGot(t *testing.T) {
	ctx := context.Background()
	store, engine := withBeforeContext(t)
	id := structure.NewID[lineage.ContextID]()
	model := "theirs"
	var tip lineage.SpanRef
	engine.meant = func() {
		changed, err := loadContext(ctx, store, write.Context{ID: id, CreatedAt: time.UnixMilli(1)}, "", "")
		require.NoError(t, err)
		require.True(t, changed)
		c, err := store.Context(ctx, id)
		require.NoError(t, err)
		require.NoError(t, setMetadata(ctx, c, []byte(`{"theirs":1}`)))
		require.NoError(t, setOverrides(ctx, c, lineage.Overrides{Model: &model}))
		x, err := c.Extend(ctx, lineage.User("hello"))
		require.NoError(t, err)
		tip = x[0]
	}
	_, err := loadContext(ctx, store, write.Context{ID: id, CreatedAt: time.UnixMilli(1)}, "", "")
	require.NoError(t, err)
	c, err := store.Context(ctx, id)
	require.NoError(t, err)
	info, err := c.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, `{"theirs":1}`, string(info.Metadata))
	require.Equal(t, &model, info.Overrides.Model)
	require.Equal(t, tip, info.Tip)
}

// What was looked up in a chat is not used in another that was made with the same id when the chat was
// deleted.
func TestContextOfChatMadeAnewMeanwhile(t *testing.T) {
	ctx := context.Background()
	store, engine := withBeforeContext(t)
	chats := chat.On(store)
	require.NoError(t, chats.AddMessage(ctx, chat.Message{ID: "m1", ChatID: "c", Name: "user", Data: []byte(`"m1"`)}))
	engine.meant = func() {
		deleted, err := chats.DeleteChat(ctx, "c", chat.DeleteOptions{})
		require.NoError(t, err)
		require.True(t, deleted)
		_, err = chats.CreateChat(ctx, chat.Chat{ID: "c", UserID: "ada"})
		require.NoError(t, err)
	}
	_, err := loadContext(ctx, store, write.Context{ID: structure.NewID[structure.ContextID]()}, "m1", "m1")
	require.ErrorIs(t, err, chat.ErrNotFound)
	require.Nil(t, engine.meant)
	graph, err := chats.Graph(ctx, "c")
	require.NoError(t, err)
	require.Empty(t, graph.Nodes, "nothing of the chat that is gone")
}

func setOverrides(ctx context.Context, c *lineage.Context, o lineage.Overrides) error {
	return c.Update(ctx, func(info *lineage.ContextInfo) error { info.Overrides = o; return nil })
}

func setMetadata(ctx context.Context, c *lineage.Context, metadata []byte) error {
	return c.Update(ctx, func(info *lineage.ContextInfo) error { info.Metadata = metadata; return nil })
}

// A context that was deleted in the store comes back if its forks inherit the same from it.
func TestContextDeletedInTheStore(t *testing.T) {
	ctx := context.Background()
	store, _ := withBeforeContext(t)
	model, other := "small", "large"
	l := write.Context{ID: structure.NewID[lineage.ContextID](), CreatedAt: time.UnixMilli(1), Overrides: lineage.Overrides{Model: &model}}
	_, err := loadContext(ctx, store, l, "", "")
	require.NoError(t, err)
	c, err := store.Context(ctx, l.ID)
	require.NoError(t, err)
	fork, err := c.Fork(ctx, lineage.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Delete(ctx))

	changed := l
	changed.Overrides.Model = &other
	_, err = loadContext(ctx, store, changed, "", "")
	require.ErrorIs(t, err, lineage.ErrExists)
	below := write.Context{ID: structure.NewID[lineage.ContextID](), Parent: l.ID, CreatedAt: time.UnixMilli(2)}
	_, err = loadBelow(ctx, store, below, "", "", map[structure.ContextID]*structure.Remnant{l.ID: {ID: l.ID, Overrides: changed.Overrides}})
	require.NoError(t, err)
	effective := func(id structure.ContextID) string {
		t.Helper()
		c, err := store.Context(ctx, id)
		require.NoError(t, err)
		o, err := c.Effective(ctx)
		require.NoError(t, err)
		return *o.Model
	}
	require.Equal(t, model, effective(below.ID), "what is left in the store counts")

	_, err = loadContext(ctx, store, l, "", "")
	require.NoError(t, err)
	for _, id := range []structure.ContextID{l.ID, fork.ID(), below.ID} {
		require.Equal(t, model, effective(id))
	}
}

// A context whose parents in the database are missing, or go round in a circle, comes without those.
func TestContextsOfADamagedDatabase(t *testing.T) {
	ctx := context.Background()
	store, _ := withBeforeContext(t)
	var ids [4]structure.ContextID
	for i := range ids {
		ids[i] = structure.NewID[lineage.ContextID]()
	}
	model := "small"
	from := map[structure.ContextID]*structure.Remnant{
		ids[0]: {ID: ids[0], Parent: ids[1]},
		ids[1]: {ID: ids[1], Parent: ids[0], Overrides: lineage.Overrides{Model: &model}},
		ids[2]: {ID: ids[2], Parent: ids[3]},
	}
	for _, parent := range []structure.ContextID{ids[0], ids[2], ids[3]} {
		stored := write.Context{ID: structure.NewID[lineage.ContextID](), Parent: parent, CreatedAt: time.UnixMilli(1)}
		_, err := loadBelow(ctx, store, stored, "", "", from)
		require.NoError(t, err)
		c, err := store.Context(ctx, stored.ID)
		require.NoError(t, err)
		o, err := c.Effective(ctx)
		require.NoError(t, err)
		require.Equal(t, parent == ids[0], o.Model != nil)
	}
	self := write.Context{ID: structure.NewID[lineage.ContextID](), CreatedAt: time.UnixMilli(1)}
	self.Parent = self.ID
	_, err := loadBelow(ctx, store, self, "", "", map[structure.ContextID]*structure.Remnant{self.ID: {ID: self.ID, Parent: self.ID}})
	require.NoError(t, err)
	c, err := store.Context(ctx, self.ID)
	require.NoError(t, err)
	_, err = c.Effective(ctx)
	require.NoError(t, err)
}
