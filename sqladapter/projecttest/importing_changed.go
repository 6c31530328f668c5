package projecttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// chainOf returns the ids and data of a branch's messages in a store.
func chainOf(t require.TestingT, s chat.Store, chatID, branch string) (chain []string) {
	b, err := s.Branch(bg, chatID, branch)
	require.NoError(t, err)
	require.NotNil(t, b, branch)
	for m, err := range s.MessageChain(bg, chatID, string(b.HeadMessageID)) {
		require.NoError(t, err)
		require.True(t, len(chain) > 0 || m.ParentID == "")
		chain = append(chain, m.ID+" "+string(m.Data))
	}
	return chain
}

// testImportChanged imports messages that another program has changed in place.
func testImportChanged(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	on := chat.On(store)
	converse(t, sqlchat.On(db), "c", say("m1", "one"), say("m2", "two"), say("m3", "three"), say("m4", "four"))
	_, err := sqlchat.On(db).CreateCheckpoint(bg, chat.Checkpoint{ChatID: "c", Name: "here", MessageID: "m3", CreatedAt: 7})
	require.NoError(t, err)
	s.doImport(t, db, store)
	_, err = on.CreateBranch(bg, chat.Branch{ChatID: "c", Name: "ours", HeadMessageID: "m3", CreatedAt: 1})
	require.NoError(t, err)
	_, err = on.CreateCheckpoint(bg, chat.Checkpoint{ChatID: "c", Name: "our own", MessageID: "m4"})
	require.NoError(t, err)
	was, err := on.Message(bg, "c", "m2")
	require.NoError(t, err)
	last, err := on.Message(bg, "c", "m4")
	require.NoError(t, err)
	require.Contains(t, string(last.Data), "four")
	require.NoError(t, store.Erase(bg, content.Sum([]byte("four"))))
	converse(t, on, "c", say("n1", "of the store's own"))

	exec(t, database, `UPDATE messages SET data = '{"parts":[{"type":"text","text":"two, changed"}]}' WHERE id = 'm2'`)
	report := s.doImport(t, db, store)
	require.Equal(t, importing.Report{Chats: 1, Changed: 1, Messages: 4, New: 3}, report, "m2, and those that follow it")
	for branch, want := range map[string][]string{"main": {"m1", "m2", "m3", "m4", "n1"}, "ours": {"m1", "m2", "m3"}} {
		chain := chainOf(t, on, "c", branch)
		require.Len(t, chain, len(want), branch)
		for i, id := range want {
			require.True(t, strings.HasPrefix(chain[i], id+" "), "%s: %q", branch, chain)
		}
		require.Contains(t, chain[1], "two, changed")
	}
	chain := chainOf(t, on, "c", "main")
	require.Contains(t, chain[3], "null", "what was erased stays so")
	for _, name := range []string{"here", "our own"} {
		k, err := on.Checkpoint(bg, "c", name)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"here": "m3", "our own": "m4"}[name], k.MessageID)
	}

	// The earlier version is kept.
	g, err := on.Graph(bg, "c")
	require.NoError(t, err)
	earlier := 0
	for _, n := range g.Nodes {
		if m, err := on.Message(bg, "c", n.ID); strings.Contains(n.ID, "/") {
			require.NoError(t, err)
			earlier++
			if string(m.Data) == string(was.Data) {
				require.Equal(t, chat.Ref("m1"), m.ParentID)
			}
		}
	}
	require.Equal(t, 4, earlier)
	head, err := store.View().Head(bg)
	require.NoError(t, err)
	require.Zero(t, s.doImport(t, db, store).Changed)
	now, err := store.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, head, now)

	// Another parent, and back to the original one.
	exec(t, database, `UPDATE messages SET parentId = NULL WHERE id = 'm3'`)
	s.doImport(t, db, store)
	require.Len(t, chainOf(t, on, "c", "main"), 3)
	exec(t, database, `UPDATE messages SET parentId = 'm2' WHERE id = 'm3'`)
	s.doImport(t, db, store)
	require.Equal(t, chain, chainOf(t, on, "c", "main"))
	require.Empty(t, differences(t, store, s.filled(t, store)))
}

// testBehindEarlier projects messages that were added in the run of an earlier version, before and
// after the database had it as the latest.
func testBehindEarlier(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	converse(t, sqlchat.On(db), "c", say("m1", "one"), say("m2", "two"), say("m3", "three"))
	s.doImport(t, db, store)
	thread, err := store.FindThread(bg, "c")
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	side, err := main.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	target := s.New(t)
	into := s.open(t, target)
	defer into.Close()
	agree := func() {
		s.project(t, store, into)
		requireChats(t, store, into)
		require.Empty(t, differences(t, store, into))
		requireSame(t, s.rebuilt(t, store, false), dump(t, target, false))
	}
	agree()
	for round := range 2 {
		exec(t, database, `UPDATE messages SET data = '{"n":%d}' WHERE id = 'm2'`, round)
		s.doImport(t, db, store)
		if round > 0 {
			agree()
		}
		for i := range 2 {
			_, err := side.Extend(bg, lineage.User("theirs").WithID(fmt.Sprint("theirs", round, i)))
			require.NoError(t, err)
			if i == round {
				agree()
			}
		}
		agree()
	}
}

// testImportReserved imports a turn in progress after it was filled in.
func testImportReserved(t *testing.T, s *suite) {
	for _, empty := range []string{`{"id":"a","role":"assistant","parts":[]}`, `{"id":"a","role":"assistant"}`, `{"role":"assistant","content":""}`} {
		store, database := newStore(t), s.New(t)
		db := s.open(t, database)
		on := chat.On(store)
		reserved := chat.Message{ID: "a", Name: "assistant", Type: chat.TypeMessage, Data: []byte(empty)}
		converse(t, sqlchat.On(db), "c", say("q", "a question"), reserved)
		require.Equal(t, 1, s.doImport(t, db, store).New)
		require.Len(t, chainOf(t, on, "c", "main"), 1)
		require.Zero(t, s.doImport(t, db, store).Changed)
		exec(t, database, `UPDATE messages SET data = '{"id":"a","role":"assistant","parts":[{"type":"text","text":"an answer"}]}' WHERE id = 'a'`)
		require.Equal(t, 1, s.doImport(t, db, store).New)
		chain := chainOf(t, on, "c", "main")
		require.Len(t, chain, 2)
		require.Contains(t, chain[1], "an answer")
		g, err := on.Graph(bg, "c")
		require.NoError(t, err)
		require.Len(t, g.Nodes, 2, "it is there once")

		// An empty one with a successor is a message.
		converse(t, sqlchat.On(db), "c", chat.Message{ID: "b", Name: "assistant", Data: []byte(`{"parts":[]}`)}, say("q2", "are you there?"))
		require.Equal(t, 2, s.doImport(t, db, store).New)
		require.NoError(t, db.Close())
	}
}

// messageRow is a message in a database or store.
type messageRow struct{ chat, parent, name, data string }

// changer acts as another program that changes messages in place.
type changer struct {
	database Database
	rows     map[string]messageRow
	heads    map[string]string // by chat and branch
	n        int
}

func (c *changer) ids(chatID string) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(c.rows)) {
		if c.rows[id].chat == chatID {
			ids = append(ids, id)
		}
	}
	return ids
}

// isAncestor reports whether a message is on the chain that ends at another.
func (c *changer) isAncestor(id, of string) bool {
	for ; of != ""; of = c.rows[of].parent {
		if of == id {
			return true
		}
	}
	return false
}

func quotedOr(id string) string {
	if id == "" {
		return "NULL"
	}
	return "'" + id + "'"
}

func (c *changer) insert(t require.TestingT, id string, r messageRow) {
	exec(t, c.database, `INSERT INTO messages (id, chatId, parentId, name, type, data, createdAt) VALUES ('%s', '%s', %s, '%s', 'message', '%s', %d)`,
		id, r.chat, quotedOr(r.parent), r.name, r.data, 1000+c.n%3)
	c.rows[id] = r
}

func (c *changer) move(t require.TestingT, chatID, branch, head string) {
	exec(t, c.database, `UPDATE branches SET headMessageId = %s WHERE chatId = '%s' AND name = '%s'`, quotedOr(head), chatID, branch)
	c.heads[chatID+" "+branch] = head
}

func (c *changer) text() string {
	c.n++
	return fmt.Sprintf(`{"parts": [{"text": "text %d", "type": "text"}]}`, c.n)
}

// change makes a change in the tables.
func (c *changer) change(t *rapid.T) {
	chatID := rapid.SampledFrom([]string{"c", "d"}).Draw(t, "chat")
	branch := rapid.SampledFrom([]string{"main", "side"}).Draw(t, "branch")
	ids := append(c.ids(chatID), "")
	id := rapid.SampledFrom(ids).Draw(t, "message")
	other := rapid.SampledFrom(ids).Draw(t, "other message")
	switch what := rapid.SampledFrom([]string{"say", "say", "reserve", "edit", "edit", "fill", "move", "rename", "replace", "delete", "head"}).Draw(t, "change"); {
	case what == "say" || what == "reserve":
		c.n++
		r := messageRow{chatID, id, "user", c.text()}
		if what == "reserve" {
			r.name, r.data = "assistant", `{"parts": []}`
		}
		c.insert(t, fmt.Sprint("m", c.n), r)
		c.move(t, chatID, branch, fmt.Sprint("m", c.n))
	case what == "head":
		c.move(t, chatID, branch, id)
	case id == "":
	case what == "edit" || what == "fill" && c.rows[id].name == "assistant":
		r := c.rows[id]
		r.data = c.text()
		exec(t, c.database, `UPDATE messages SET data = '%s' WHERE id = '%s'`, r.data, id)
		c.rows[id] = r
	case what == "move" && !c.isAncestor(id, other):
		r := c.rows[id]
		r.parent = other
		exec(t, c.database, `UPDATE messages SET parentId = %s WHERE id = '%s'`, quotedOr(other), id)
		c.rows[id] = r
	case what == "rename":
		r := c.rows[id]
		r.name = rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(t, "name")
		exec(t, c.database, `UPDATE messages SET name = '%s' WHERE id = '%s'`, r.name, id)
		c.rows[id] = r
	case what == "delete" || what == "replace":
		for _, r := range c.rows {
			if r.parent == id {
				return
			}
		}
		r := c.rows[id]
		for key, head := range c.heads {
			if head == id {
				c.move(t, chatID, strings.TrimPrefix(key, chatID+" "), r.parent)
			}
		}
		exec(t, c.database, `DELETE FROM messages WHERE id = '%s'`, id)
		delete(c.rows, id)
		if what == "replace" {
			if other != id {
				r.parent = other
			}
			r.data = c.text()
			c.insert(t, id, r)
		}
	}
}

// visible returns what an import should add: everything except turns in progress at the end of
// branches.
func (c *changer) visible() (rows map[string]messageRow, heads map[string]string) {
	rows, heads = maps.Clone(c.rows), maps.Clone(c.heads)
	for key, head := range c.heads {
		followed := false
		for _, r := range c.rows {
			followed = followed || r.parent == head
		}
		if r := c.rows[head]; head != "" && !followed && r.name == "assistant" && r.data == `{"parts": []}` {
			delete(rows, head)
			heads[key] = r.parent
		}
	}
	return rows, heads
}

// testImportChangedRandom lets another program change the tables at random, and the store grow
// independently. After each import, the store's branches equal the tables, and the store's own
// messages keep their parents.
func testImportChangedRandom(t *testing.T, s *suite) {
	s.check(t, func(r *rapid.T) {
		store, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer store.Close()
		database, copied := s.New(t), s.New(t)
		db, copy := s.open(r, database), s.open(r, copied)
		defer db.Close()
		defer copy.Close()
		c := &changer{database: database, rows: make(map[string]messageRow), heads: make(map[string]string)}
		for _, id := range []string{"c", "d"} {
			_, err := sqlchat.On(db).CreateChat(bg, chat.Chat{ID: id, UserID: "ada"})
			require.NoError(r, err)
			_, err = sqlchat.On(db).CreateBranch(bg, chat.Branch{ChatID: id, Name: "side"})
			require.NoError(r, err)
		}
		on := chat.On(store)
		had := make(map[string]messageRow) // in the store
		tips := make(map[string]string)
		for range rapid.IntRange(1, 5).Draw(r, "imports") {
			for range rapid.IntRange(0, 6).Draw(r, "changes") {
				c.change(r)
			}
			if len(tips) > 0 && rapid.Bool().Draw(r, "the store goes on") {
				c.n++
				own := say(fmt.Sprint("own", c.n), fmt.Sprint("own ", c.n))
				b, err := on.ActiveBranch(bg, "c")
				require.NoError(r, err)
				_, err = on.Append(bg, chat.AppendRequest{ChatID: "c", BranchID: b.ID, ExpectedHead: b.HeadMessageID, Messages: []chat.Message{own}})
				require.NoError(r, err)
				had[own.ID] = messageRow{"c", string(b.HeadMessageID), own.Name, string(own.Data)}
				tips["c "+b.Name] = own.ID
			}
			s.doImport(r, db, store)
			rows, heads := c.visible()
			for id, one := range rows {
				had[id] = one
			}
			all := &changer{rows: had}
			for key, head := range heads {
				tip := tips[key]
				if _, listed := rows[tip]; listed || !all.isAncestor(head, tip) && head != "" {
					tip = head
				}
				if tip == "" {
					tip = head
				}
				tips[key] = tip
				chatID, branch, _ := strings.Cut(key, " ")
				b, err := on.Branch(bg, chatID, branch)
				require.NoError(r, err)
				require.Equal(r, tip, string(b.HeadMessageID), key)
			}
			for id, want := range had {
				m, err := on.Message(bg, want.chat, id)
				require.NoError(r, err)
				require.NotNil(r, m, id)
				require.Equal(r, want.parent, string(m.ParentID), id)
				require.Equal(r, want.name, m.Name, id)
				require.JSONEq(r, want.data, string(m.Data), id)
			}
			head, err := store.View().Head(bg)
			require.NoError(r, err)
			require.Zero(r, s.doImport(r, db, store).Changed)
			now, err := store.View().Head(bg)
			require.NoError(r, err)
			require.Equal(r, head, now, "importing again changes nothing")
			s.project(r, store, copy)
			requireSame(r, s.rebuilt(t, store, false), dump(r, copied, false))
			requireChats(r, store, copy)
		}
		require.Empty(r, differences(r, store, copy))
	})
}
