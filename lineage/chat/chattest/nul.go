package chattest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// testNUL keeps JSON with NUL, which the output of tools can contain, with unpaired surrogates, and with texts that
// look like a store's substitutes for these.
func testNUL(t *testing.T, s *store) {
	s.createChat("c")
	parts := []string{
		`\u0000`, `\\u0000`, `\ufdd0`, "\ufdd0", `\uFDD0`, "0000", "fdd0", "d83d", `\ud83d\ude00`, "😀", `\ufffd`, "\ufffd", `\u2400`, "\\\\", `\"`, "a", "é", "dead",
	}
	random := rand.New(rand.NewPCG(1, 2))
	parent := chat.Ref("")
	add := func(data string) {
		t.Helper()
		want := chat.Message{
			ID: fmt.Sprint("m", len(s.chain("c", string(parent)))), ChatID: "c", ParentID: parent, Name: "tool", Type: chat.TypeMessage, Data: json.RawMessage(data), CreatedAt: 7,
		}
		require.NoError(t, s.AddMessage(background, want), data)
		require.NoError(t, s.AddMessage(background, want), "it is known")
		got, err := s.Message(background, "c", want.ID)
		require.NoError(t, err)
		require.True(t, want.Same(*got), "%s: %s", data, got.Data)
		s.requireMessage(want, *got)
		parent = chat.Ref(want.ID)
	}
	for range 60 {
		var text strings.Builder
		for range random.IntN(8) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		add(fmt.Sprintf(`{"key %[1]s":["%[1]s",{"text":"%[1]s"}]}`, text.String()))
	}
	for _, half := range []string{`\ud83d`, `\ude00`, `\ud83d \ude00`, `\ude00\ud83d`, `\ud83d\u0000`, `\ud83dx`, "\ufdd0d83d\\ud83d"} {
		add(`"` + half + `"`)
		got, err := s.Message(background, "c", string(parent))
		require.NoError(t, err)
		require.Equal(t, `"`+half+`"`, string(got.Data))
	}

	for _, odd := range []string{"\ufdd0", "\ufdd00000", "\ufdd0fdd0", "\ufdd0\ufdd00000", "\ufffd"} {
		metadata, err := json.Marshal(map[string]any{odd: "\x00", "like": odd, "nul": "a\x00b" + odd})
		require.NoError(t, err)
		_, err = s.CreateChat(background, chat.Chat{ID: odd, UserID: odd, Title: odd, Metadata: metadata})
		require.NoError(t, err)
		require.NoError(t, s.AddMessage(background, chat.Message{ID: odd, ChatID: odd, Name: odd, Type: odd, Data: json.RawMessage(`"x"`), Origin: chat.Origin{SourceID: odd}}))
		_, err = s.CreateBranch(background, chat.Branch{ID: odd, ChatID: odd, Name: odd, HeadMessageID: chat.Ref(odd)})
		require.NoError(t, err)
		got, err := s.Chat(background, odd)
		require.NoError(t, err)
		require.NotNil(t, got, "%q", odd)
		require.Equal(t, []string{odd, odd, odd}, []string{got.ID, got.UserID, got.Title})
		require.JSONEq(t, string(metadata), string(got.Metadata))
		m, err := s.Message(background, odd, odd)
		require.NoError(t, err)
		require.NotNil(t, m, "%q", odd)
		require.Equal(t, []string{odd, odd, odd, odd}, []string{m.ID, m.Name, m.Type, m.Origin.SourceID})
		b, err := s.Branch(background, odd, odd)
		require.NoError(t, err)
		require.NotNil(t, b, "%q", odd)
		require.Equal(t, odd, b.ID)
		for key, value := range map[string]string{odd: "\x00", "like": odd, "nul": "a\x00b" + odd} {
			found := idsOfChats(collect(t, s.ListChats(background, chat.ListOptions{Metadata: []chat.MetadataFilter{{Key: key, Value: value}}})))
			require.Contains(t, found, odd, "%q is %q", key, value)
			if key != odd {
				found = idsOfChats(collect(t, s.ListChats(background, chat.ListOptions{Metadata: []chat.MetadataFilter{{Key: key, Value: value + "x"}}})))
				require.Empty(t, found)
			}
		}
	}

	add(`{"role":"tool","parts":[{"type":"text","text":"quokka\u0000wombat numbat\u0000"}]}`)
	if s.config.Search {
		for _, query := range []string{"quokka", "wombat", "numbat", "quokka wombat"} {
			found, err := s.SearchMessages(background, "c", query, chat.SearchOptions{})
			require.NoError(t, err)
			require.Len(t, found, 1, query)
			require.Equal(t, string(parent), found[0].Message.ID)
		}
	}
}

func idsOfChats(infos []chat.ChatInfo) (ids []string) {
	for _, info := range infos {
		ids = append(ids, info.ID)
	}
	return ids
}
