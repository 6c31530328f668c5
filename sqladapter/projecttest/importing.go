package projecttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

func (s *suite) doImport(t require.TestingT, db *sqladapter.DB, store *lineage.Store) importing.Report {
	report, err := importing.Run(bg, db, store, importing.Options{Problem: func(id string, err error) {
		require.NoError(t, err, id)
	}})
	require.NoError(t, err)
	require.Zero(t, report.Problems)
	return report
}

// chatRows returns the rows of the documented tables of chats.
func chatRows(t require.TestingT, database Database) map[string][]string {
	rows := make(map[string][]string)
	for _, table := range []string{"chats", "messages", "branches", "checkpoints"} {
		rows[table] = dumpTable(t, database, table)
	}
	return rows
}

// projected returns the rows of a new database after projecting a store.
func (s *suite) projected(t testing.TB, store *lineage.Store) map[string][]string {
	database := s.New(t)
	db := s.open(t, database)
	defer db.Close()
	s.project(t, store, db)
	require.Empty(t, differences(t, store, db))
	return chatRows(t, database)
}

// testImport imports a database in two states. Each time, projecting back gives the same rows.
//
// feature: lineage/migration
func testImport(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	chats := sqlchat.On(db)
	converse(t, chats, "a", say("m1", "one"), say("m2", "two"), say("m3", "the same"))
	converse(t, chats, "b", say("n1", "the same"))
	title := "a title"
	_, err := chats.UpdateChat(bg, "a", chat.ChatUpdate{Title: &title, Metadata: json.RawMessage(`{"k": [1, 2]}`)})
	require.NoError(t, err)
	_, err = chats.Append(bg, chat.AppendRequest{
		ChatID: "a", NewBranch: &chat.Branch{ID: "side-id", Name: "side", HeadMessageID: "m1", IsActive: true, CreatedAt: 77},
		Messages: []chat.Message{{ID: "m4", Name: "fragment", Data: json.RawMessage(`"x"`), CreatedAt: 5}},
	})
	require.NoError(t, err)
	_, err = chats.CreateCheckpoint(bg, chat.Checkpoint{ID: "cp", ChatID: "a", Name: "here", MessageID: "m2", CreatedAt: 99})
	require.NoError(t, err)
	_, err = chats.CreateChat(bg, chat.Chat{ID: "empty", UserID: "bob"})
	require.NoError(t, err)

	report := s.doImport(t, db, store)
	require.Equal(t, importing.Report{Chats: 3, Changed: 3, Messages: 5, New: 5}, report)
	require.Equal(t, chatRows(t, database), s.projected(t, store))

	head, err := store.View().Head(bg)
	require.NoError(t, err)
	report = s.doImport(t, db, store)
	require.Equal(t, importing.Report{Chats: 3, Messages: 5}, report)
	now, err := store.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, head, now, "importing again changes nothing")

	converse(t, chats, "a", say("m5", "after m4"))
	converse(t, chats, "c", say("o1", "new"))
	main, err := chats.Branch(bg, "a", "main")
	require.NoError(t, err)
	require.NoError(t, chats.SetActiveBranch(bg, "a", main.ID))
	_, err = chats.CreateCheckpoint(bg, chat.Checkpoint{ChatID: "a", Name: "here", MessageID: "m5", CreatedAt: 100})
	require.NoError(t, err)
	report = s.doImport(t, db, store)
	require.Equal(t, importing.Report{Chats: 4, Changed: 2, Messages: 7, New: 2}, report)
	require.Equal(t, chatRows(t, database), s.projected(t, store))

	// Messages added in the store are kept.
	converse(t, chat.On(store), "b", say("n2", "of the store's own"))
	s.doImport(t, db, store)
	last, err := chat.On(store).Message(bg, "b", "n2")
	require.NoError(t, err)
	require.NotNil(t, last)
	b, err := chat.On(store).ActiveBranch(bg, "b")
	require.NoError(t, err)
	require.Equal(t, chat.Ref("n2"), b.HeadMessageID)
}

// testImportProblems imports invalid rows: they are skipped and reported.
func testImportProblems(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	converse(t, sqlchat.On(db), "a", say("m1", "one"), say("m2", "two"), say("m3", "three"))
	converse(t, sqlchat.On(db), "b", say("n1", "one"))
	converse(t, chat.On(store), "other", say("m2", "taken"))
	_, err := chat.On(store).CreateChat(bg, chat.Chat{ID: "b", UserID: "somebody else"})
	require.NoError(t, err)
	for _, sql := range []string{
		`UPDATE "messages" SET parentId = "id" WHERE "id" = 'm3'`,
	} {
		_, err := database.SQL.ExecContext(bg, sql)
		require.NoError(t, err)
	}
	var problems []string
	report, err := importing.Run(bg, db, store, importing.Options{Problem: func(id string, err error) {
		problems = append(problems, id+": "+err.Error())
	}})
	require.NoError(t, err)
	require.Equal(t, 2, report.New, "another chat of the store has the id m2, too")
	require.Equal(t, len(problems), report.Problems)
	slices.Sort(problems)
	require.Len(t, problems, 3, "%q", problems)
	require.Contains(t, problems[0], `a: message "m3"`, "it goes round in a circle")
	require.Contains(t, problems[1], `a: message "m3"`, "a branch stands there")
	require.Contains(t, problems[2], `b: chat "b"`, "it is another user's")
	for chatID, says := range map[string]string{"a": "two", "other": "taken"} {
		m, err := chat.On(store).Message(bg, chatID, "m2")
		require.NoError(t, err)
		require.Contains(t, string(m.Data), says)
	}
}

// testImportRandom imports random changes.
func testImportRandom(t *testing.T, s *suite) {
	s.check(t, func(r *rapid.T) {
		from, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer from.Close()
		database := s.New(t)
		db := s.open(r, database)
		defer db.Close()
		to, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer to.Close()
		m := newMachine(from)
		for range rapid.IntRange(1, 3).Draw(r, "rounds") {
			for range rapid.IntRange(1, 20).Draw(r, "steps") {
				m.chatStep(r)
			}
			s.project(r, from, db)
			s.doImport(r, db, to)
		}
		require.Equal(r, chatRows(r, database), s.projected(t, to))
	})
}

// chatStep makes a change that an import can follow: nothing is removed.
func (m *machine) chatStep(t *rapid.T) {
	steps := []func(*rapid.T) error{m.newChat, m.say, m.say, m.say, m.sayElsewhere, m.checkpoint, m.activate, m.retitle}
	m.tolerate(t, rapid.SampledFrom(steps).Draw(t, "step")(t))
}

// testImportLarge imports a long chat.
func testImportLarge(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	messages := make([]chat.Message, 5*s.large()/3)
	for i := range messages {
		messages[i] = say(fmt.Sprintf("m%d", i), fmt.Sprintf("message %d", i%100))
	}
	converse(t, sqlchat.On(db), "large", messages...)
	require.Equal(t, len(messages), s.doImport(t, db, store).New)
	head, err := store.View().Head(bg)
	require.NoError(t, err)
	require.Less(t, head.Number, uint64(100), "few commits")
	require.Equal(t, chatRows(t, database), s.projected(t, store))
}

// testImportContexts copies a store to another one through a database.
func testImportContexts(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	converse(t, chat.On(store), "a", say("m1", "one"), say("m2", "two"))
	thread, err := store.FindThread(bg, "a")
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	prompt := "you are a subagent"
	child, err := main.Fork(bg, lineage.ForkOptions{Overrides: lineage.Overrides{SystemPrompt: &prompt, JSON: []byte(`{"t": 1}`)}, Metadata: []byte(`{"m": 1}`)})
	require.NoError(t, err)
	_, err = child.Extend(bg, lineage.User("a task"), lineage.Assistant("done"))
	require.NoError(t, err)
	s.project(t, store, db)

	other := newStore(t)
	s.doImport(t, db, other)
	require.Equal(t, chatRows(t, database), s.projected(t, other))
	got, err := other.Context(bg, child.ID())
	require.NoError(t, err)
	info, err := got.Info(bg)
	require.NoError(t, err)
	require.Equal(t, main.ID(), info.Parent)
	require.Equal(t, prompt, *info.Overrides.SystemPrompt)
	require.JSONEq(t, `{"t":1}`, string(info.Overrides.JSON))
	require.JSONEq(t, `{"m":1}`, string(info.Metadata))
	n, err := got.Len(bg)
	require.NoError(t, err)
	require.EqualValues(t, 4, n)

	head, err := other.View().Head(bg)
	require.NoError(t, err)
	require.Zero(t, s.doImport(t, db, other).Changed)
	now, err := other.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, head, now)
	_, err = child.Extend(bg, lineage.User("one more"))
	require.NoError(t, err)
	s.project(t, store, db)
	require.Equal(t, 1, s.doImport(t, db, other).Changed)
	require.Equal(t, chatRows(t, database), s.projected(t, other))
}
