package sqladapter

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

// Overrides that a context is loaded with, and metadata that it gets at the same time, do
// not lose each other.
func TestContextLoadedAndChanged(t *testing.T) {
	ctx := context.Background()
	store, engine := withBeforeContext(t)
	id := structure.NewID[lineage.ContextID]()
	changed, err := loadContext(ctx, store, "c", write.Context{ID: id, CreatedAt: time.UnixMilli(1)}, "", "")
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
	changed, err = loadContext(ctx, store, "c", write.Context{ID: id, CreatedAt: time.UnixMilli(1), Overrides: lineage.Overrides{Model: &model}}, "", "")
	require.NoError(t, err)
	require.True(t, changed)
	require.Nil(t, engine.meant)
	require.NoError(t, <-done)
	info, err := c.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, `{"theirs":1}`, string(info.Metadata))
	require.Equal(t, &model, info.Overrides.Model)

	changed, err = loadContext(ctx, store, "c", write.Context{ID: id, CreatedAt: time.UnixMilli(1), Overrides: lineage.Overrides{SystemPrompt: &model}}, "", "")
	require.NoError(t, err)
	require.False(t, changed, "it has overrides of its own")
}

// What a context is loaded with is kept as it is, also where it is not JSON.
func TestContextLoadedWithWhatIsNotJSON(t *testing.T) {
	ctx := context.Background()
	store, _ := withBeforeContext(t)
	id := structure.NewID[lineage.ContextID]()
	l := write.Context{ID: id, CreatedAt: time.UnixMilli(1), Metadata: []byte("mine")}
	_, err := loadContext(ctx, store, "c", l, "", "")
	require.NoError(t, err)
	l.Overrides.JSON = []byte("t=1")
	changed, err := loadContext(ctx, store, "c", l, "", "")
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
		changed, err := loadContext(ctx, store, "c", write.Context{ID: id, CreatedAt: time.UnixMilli(1)}, "", "")
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
	_, err := loadContext(ctx, store, "c", write.Context{ID: id, CreatedAt: time.UnixMilli(1)}, "", "")
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
	_, err := loadContext(ctx, store, "c", write.Context{ID: structure.NewID[structure.ContextID]()}, "m1", "m1")
	require.ErrorIs(t, err, chat.ErrNotFound)
	require.Nil(t, engine.meant)
	graph, err := chats.Graph(ctx, "c")
	require.NoError(t, err)
	require.Empty(t, graph.Nodes, "nothing of the chat that is gone")
}

func setOverrides(ctx context.Context, c *lineage.Context, o lineage.Overrides) error {
	return c.Update(ctx, func(is *lineage.ContextInfo) error { is.Overrides = o; return nil })
}

func setMetadata(ctx context.Context, c *lineage.Context, metadata []byte) error {
	return c.Update(ctx, func(is *lineage.ContextInfo) error { is.Metadata = metadata; return nil })
}
