package paths_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// sameIDs draws conversations of several users whose messages have the ids 1, 2, 3, … in each of them. Some
// messages of different conversations say the same.
func sameIDs(t *rapid.T) []*archive.Conversation {
	var all []*archive.Conversation
	for i := range rapid.IntRange(2, 8).Draw(t, "conversations") {
		c := &archive.Conversation{SourceID: fmt.Sprint("c", i), UserID: rapid.SampledFrom([]string{"alice", "bob", "eve"}).Draw(t, "user")}
		for k := range rapid.IntRange(1, 10).Draw(t, "messages") {
			n := archive.Node{ID: strconv.Itoa(k + 1), Root: k == 0, Role: []string{"user", "assistant"}[k%2]}
			if k > 0 {
				n.Parent = strconv.Itoa(rapid.IntRange(max(1, k-2), k).Draw(t, "parent"))
			}
			text := fmt.Sprintf("message %d of %s", k+1, c.SourceID)
			if rapid.IntRange(0, 3).Draw(t, "same text") == 0 {
				text = "hello"
			}
			n.Body = []byte(text)
			if rapid.Bool().Draw(t, "JSON") {
				n.Body, n.Type = []byte(`{"role":"`+n.Role+`","content":"`+text+`"}`), content.TypeJSON
			}
			c.Nodes = append(c.Nodes, n)
		}
		all = append(all, c)
	}
	return all
}

// textsTo returns the texts of a conversation from its root to a message.
func textsTo(c *archive.Conversation, id string) (texts []string) {
	for id != "" {
		k, _ := strconv.Atoi(id)
		n := c.Nodes[k-1]
		text := strings.TrimSuffix(strings.TrimPrefix(string(n.Body), `{"role":"`+n.Role+`","content":"`), `"}`)
		texts, id = append([]string{text}, texts...), n.Parent
	}
	return texts
}

// Whatever ids the messages of other chats have, a chat that was imported is read, continued and searched as it was in
// the archive, in a store and in a database that the store is projected to.
func TestImportedChatsHaveTheirOwnMessages(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		at := filepath.Join(dir, strconv.Itoa(n))
		s, err := lineage.Open(bg, at, lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer s.Close()
		all := sameIDs(t)
		_, err = importer.Import(bg, s, archive.Stream("made", strings.NewReader("made")), importer.Options{Formats: []archive.Format{{
			Name: "made", Detect: func(archive.Head) bool { return true },
			Read: func(context.Context, *archive.Input) iter.Seq2[*archive.Conversation, error] {
				return func(yield func(*archive.Conversation, error) bool) {
					for _, c := range all {
						if !yield(c, nil) {
							return
						}
					}
				}
			},
		}}})
		require.NoError(t, err)
		db, err := sqlite.Open(bg, filepath.Join(dir, fmt.Sprint(n, ".db")), sqladapter.Options{})
		require.NoError(t, err)
		defer db.Close()
		_, err = (&project.Projector{Store: s, DB: db}).Run(bg)
		require.NoError(t, err)
		x, err := search.Open(bg, s, at, search.Options{})
		require.NoError(t, err)
		defer x.Close()
		for _, chats := range []chat.Store{x.Chats(), sqlchat.On(db)} {
			for _, c := range all {
				requireOwn(t, s, chats, c)
			}
		}
	})
}

// requireOwn compares each branch of an imported chat with the archive.
func requireOwn(t require.TestingT, s *lineage.Store, chats chat.Store, c *archive.Conversation) {
	thread, err := s.FindThread(bg, c.SourceID)
	require.NoError(t, err)
	branches, err := thread.Branches(bg)
	require.NoError(t, err)
	require.NotEmpty(t, branches)
	reached := make(map[string]bool)
	for _, b := range branches {
		entries, err := s.Span(bg, b.Head)
		require.NoError(t, err)
		want := textsTo(c, entries[0].SourceID)
		e, err := engine.Open(bg, chats, engine.Options{ChatID: c.SourceID, UserID: c.UserID, Branch: b.Name})
		require.NoError(t, err)
		r, err := e.Resolve(bg, engine.ResolveOptions{})
		require.NoError(t, err)
		var got []string
		for _, m := range r.Messages {
			got = append(got, m.Text())
		}
		require.Equal(t, want, got, "%s of %s", b.Name, c.SourceID)
		for m, err := range chats.MessageChain(bg, c.SourceID, string(e.Head())) {
			require.NoError(t, err)
			require.Equal(t, c.SourceID, m.ChatID)
			reached[m.ID] = true
			found, err := chats.Message(bg, c.SourceID, m.ID)
			require.NoError(t, err)
			require.True(t, m.Same(*found), "%+v\n%+v", m, found)
		}
	}
	require.Len(t, reached, len(c.Nodes), "every message is on a branch")
	found, err := chats.SearchMessages(bg, c.SourceID, "message OR hello", chat.SearchOptions{Limit: 100})
	require.NoError(t, err)
	require.Len(t, found, len(c.Nodes))
	for _, r := range found {
		require.True(t, reached[r.Message.ID])
	}
}
