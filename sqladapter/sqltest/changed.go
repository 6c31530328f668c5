package sqltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// madeAgain deletes and recreates a chat as another program does, with as many messages and the
// same ids and times.
func madeAgain(says string) string {
	return fmt.Sprintf(`
DELETE FROM branches WHERE "chatId" = 'c';
DELETE FROM messages_fts WHERE "chatId" = 'c';
DELETE FROM messages WHERE id = 'c.1';
DELETE FROM messages WHERE id = 'c.0';
DELETE FROM chats WHERE id = 'c';
INSERT INTO chats (id, "userId", "createdAt", "updatedAt") VALUES ('c', 'ada', 1, 1);
INSERT INTO messages (id, "chatId", "parentId", name, type, data, "createdAt") VALUES
  ('c.0', 'c', NULL, 'user', 'message', '{"parts":[{"type":"text","text":"%[1]s"}]}', 1700000000000);
INSERT INTO messages (id, "chatId", "parentId", name, type, data, "createdAt") VALUES
  ('c.1', 'c', NULL, 'user', 'message', '{"parts":[{"type":"text","text":"%[1]s too"}]}', 1700000000000);`, says)
}

// testSearchMadeAgain searches a chat that another program has deleted and recreated with as many
// messages.
func testSearchMadeAgain(t *testing.T, c Config) {
	p := c.New(t)
	db := open(t, p)
	s := sqlchat.On(db)
	grow(t, s, "c", 2)
	requireFound(t, s, "c", "message", "c.0", "c.1")
	for _, word := range []string{"zebra", "okapi"} {
		require.NoError(t, p.Exec(background, madeAgain("a "+word)))
		requireFound(t, s, "c", "message")
		requireFound(t, s, "c", word, "c.0", "c.1")
		found, err := sqlchat.SearchAll(background, db, "", word+" OR message", chat.SearchOptions{})
		require.NoError(t, err)
		require.Len(t, found, 2)
	}
	requireFound(t, s, "c", "zebra")
}

// testOriginsOfDeleted deletes a message with an origin as another program does. A later message
// with its id has no origin.
func testOriginsOfDeleted(t *testing.T, c Config) {
	p := c.New(t)
	s := sqlchat.On(open(t, p))
	_, err := s.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	m := chat.Message{ID: "m", ChatID: "c", Name: "user", Data: []byte(`{}`), Origin: chat.Origin{UserID: "bob", ModelID: "large"}}
	require.NoError(t, s.AddMessage(background, m))
	require.NoError(t, p.Exec(background, `DELETE FROM messages WHERE id = 'm'`))
	m.Origin = chat.Origin{}
	require.NoError(t, s.AddMessage(background, m))
	got, err := s.Message(background, "c", "m")
	require.NoError(t, err)
	require.Zero(t, got.Origin)
}

// chains maps messages to their parents.
type chains map[string]string

func (c chains) length(id string) (n int) {
	for ; id != ""; id = c[id] {
		n++
	}
	return n
}

func (c chains) follows(id, other string) bool {
	for ; id != ""; id = c[id] {
		if id == other {
			return true
		}
	}
	return false
}

func (c chains) isLeaf(id string) bool {
	for _, parent := range c {
		if parent == id {
			return false
		}
	}
	return true
}

func quotedOr(id string) string {
	if id == "" {
		return "NULL"
	}
	return "'" + id + "'"
}

// testChains lets other programs change chains in every way, and compares their lengths with the
// rows, whether or not they have been read before.
func testChains(t *testing.T, c Config) {
	p := c.New(t)
	db := open(t, p)
	s := sqlchat.On(db)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		chatID := fmt.Sprint("chat", n)
		_, err := s.CreateChat(background, chat.Chat{ID: chatID, UserID: "ada"})
		require.NoError(r, err)
		b, err := s.ActiveBranch(background, chatID)
		require.NoError(r, err)
		got := chains{}
		insert := func(id, parent string) string {
			got[id] = parent
			return fmt.Sprintf(`INSERT INTO messages (id, "chatId", "parentId", name, type, data, "createdAt") VALUES ('%s', '%s', %s, 'user', 'message', '"x"', 1);`,
				id, chatID, quotedOr(parent))
		}
		for i := range rapid.IntRange(1, 12).Draw(r, "changes") {
			ids := append(slices.Sorted(maps.Keys(got)), "")
			id := rapid.SampledFrom(ids).Draw(r, "message")
			other := rapid.SampledFrom(ids).Draw(r, "other message")
			fresh := fmt.Sprint(chatID, ".", i)
			script := ""
			switch what := rapid.SampledFrom([]string{"ours", "insert", "insert", "move", "move", "delete", "again", "rename"}).Draw(r, "change"); {
			case what == "ours":
				require.NoError(r, s.AddMessage(background, text(chatID, fresh, chat.Ref(id), "ours")))
				got[fresh] = id
			case what == "insert":
				script = insert(fresh, id)
			case id == "":
			case what == "move" && !got.follows(other, id):
				got[id] = other
				script = fmt.Sprintf(`UPDATE messages SET "parentId" = %s WHERE id = '%s';`, quotedOr(other), id)
			case !got.isLeaf(id):
			case what == "delete" || what == "again":
				script = fmt.Sprintf(`DELETE FROM messages_fts WHERE "messageId" = '%[1]s'; DELETE FROM messages WHERE id = '%[1]s';`, id)
				delete(got, id)
				if what == "again" && other != id {
					script += insert(id, other)
				}
			case what == "rename":
				got[fresh] = got[id]
				delete(got, id)
				script = fmt.Sprintf(`DELETE FROM messages_fts WHERE "messageId" = '%[1]s'; UPDATE messages SET id = '%[2]s' WHERE id = '%[1]s';`, id, fresh)
			}
			if script != "" {
				require.NoError(r, p.Exec(background, script), script)
			}
			if rapid.Bool().Draw(r, "look") {
				_, err := s.SearchMessages(background, chatID, "ours", chat.SearchOptions{})
				require.NoError(r, err)
			}
			for _, id := range slices.Sorted(maps.Keys(got)) {
				require.NoError(r, s.UpdateBranchHead(background, chatID, b.ID, chat.Ref(id)))
				infos, err := s.ListBranches(background, chatID)
				require.NoError(r, err)
				require.Equal(r, got.length(id), infos[0].MessageCount, "%s after %s", id, strings.TrimSpace(script))
			}
			require.NoError(r, s.UpdateBranchHead(background, chatID, b.ID, ""))
		}
	})
}

// testChainsIntoOtherChats gives a message a parent in another chat, as another program can. A chain ends there.
func testChainsIntoOtherChats(t *testing.T, c Config) {
	p := c.New(t)
	s := sqlchat.On(open(t, p))
	grow(t, s, "a", 3)
	b := grow(t, s, "b", 3)
	require.NoError(t, p.Exec(background, `UPDATE messages SET "parentId" = 'a.2' WHERE id = 'b.0'`))
	requireChain(t, s, "b", "b.2", "b.0", "b.1", "b.2")
	requireChain(t, s, "b", string(b.HeadMessageID), "b.0", "b.1", "b.2")
	requireCounts(t, s, "b", map[string]int{"main": 3})
	n, err := s.CountMessages(background, "b", "b.2")
	require.NoError(t, err)
	require.Equal(t, 3, n)
	has, err := s.HasChildren(background, "a", "a.2")
	require.NoError(t, err)
	require.False(t, has)
	_, err = s.HasChildren(background, "b", "a.2")
	require.ErrorIs(t, err, chat.ErrOtherChat)
	require.NoError(t, s.AddMessage(background, text("b", "b.3", "b.2", "ours")))
	requireChain(t, s, "b", "b.3", "b.0", "b.1", "b.2", "b.3")
}
