package chat

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
)

// A message of which a part was erased says what is left, and where something is missing. It
// stays so when it is loaded again.
func TestErasedPieces(t *testing.T) {
	ctx := context.Background()
	whole := `{"id":"m","role":"assistant","parts":[{"type":"text","text":"one"},{"type":"tool-look","toolCallId":"c","state":"output-available","input":{"q":1},"output":"found"},{"type":"text","text":"two"}]}`
	for _, tt := range []struct {
		erased []string
		want   string
	}{
		{[]string{"one"}, strings.Replace(whole, `"one"`, `"[erased]"`, 1)},
		{[]string{"two"}, strings.Replace(whole, `"two"`, `"[erased]"`, 1)},
		{[]string{`{"q":1}`}, strings.Replace(whole, `{"q":1}`, `null`, 1)},
		{[]string{"found", "two"}, strings.Replace(strings.Replace(whole, `"two"`, `"[erased]"`, 1), `"found"`, `"[erased]"`, 1)},
		{[]string{"one", "two", "found", `{"q":1}`}, "null"},
	} {
		s := storetest.New(t)
		chats := On(s)
		_, err := chats.CreateChat(ctx, Chat{ID: "c", UserID: "ann"})
		require.NoError(t, err)
		m := Message{ID: "m", ChatID: "c", Name: "assistant", Type: TypeMessage, Data: json.RawMessage(whole), CreatedAt: 1}
		require.NoError(t, chats.AddMessage(ctx, m))
		for _, text := range tt.erased {
			require.NoError(t, s.Erase(ctx, content.Sum([]byte(text))))
		}
		got, err := chats.Message(ctx, "c", "m")
		require.NoError(t, err)
		require.Equal(t, tt.want, string(got.Data))

		loaded, err := Load(ctx, s, Loading{Chat: Chat{ID: "c", UserID: "ann"}, Messages: pairs([]Message{m}), Branches: []Branch{{Name: "main", HeadMessageID: "m"}}})
		require.NoError(t, err)
		require.Zero(t, loaded.New)
		got, err = chats.Message(ctx, "c", "m")
		require.NoError(t, err)
		require.Equal(t, tt.want, string(got.Data))
	}
}

// Steps of several usages, and texts that are no JSON.
func TestErasedTexts(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	thread, err := s.CreateThread(ctx, lineage.ThreadOptions{SourceID: "c"})
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.User("plain").WithID("m1"))
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.Together(lineage.User("plain").WithID("m2"), lineage.User("kept")))
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.Together(lineage.User("plain").WithID("m3"), lineage.User("plain")))
	require.NoError(t, err)
	require.NoError(t, s.Erase(ctx, content.Sum([]byte("plain"))))
	for id, want := range map[string]string{
		"m1": "null", "m2": `{"id":"m2","role":"user","parts":[{"type":"text","text":"[erased]"},{"type":"text","text":"kept"}]}`, "m3": "null",
	} {
		got, err := On(s).Message(ctx, "c", id)
		require.NoError(t, err)
		require.Equal(t, want, string(got.Data), id)
	}
}
