package projecttest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

func (s *suite) project(t require.TestingT, store *lineage.Store, db *sqladapter.DB) project.Report {
	report, err := (&project.Projector{Store: store, DB: db}).Run(bg)
	require.NoError(t, err)
	return report
}

func say(id, text string) chat.Message {
	data, err := json.Marshal(map[string]any{"id": id, "role": "user", "parts": []map[string]string{{"type": "text", "text": text}}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return chat.Message{ID: id, Name: "user", Type: chat.TypeMessage, Data: data}
}

// converse adds messages to the active branch of a chat, and creates the chat if necessary.
func converse(t require.TestingT, chats chat.Store, id string, messages ...chat.Message) {
	_, err := chats.UpsertChat(bg, chat.Chat{ID: id, UserID: "ada"})
	require.NoError(t, err)
	b, err := chats.ActiveBranch(bg, id)
	require.NoError(t, err)
	_, err = chats.Append(bg, chat.AppendRequest{ChatID: id, BranchID: b.ID, ExpectedHead: b.HeadMessageID, Messages: messages})
	require.NoError(t, err)
}

// count returns the number that a query yields.
func count(t require.TestingT, database Database, query string) int {
	var n int
	require.NoError(t, database.SQL.QueryRowContext(bg, query).Scan(&n))
	return n
}

// testRows checks rows: shared history is stored once in content and structure, and once per chat
// that has it.
func testRows(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	converse(t, chat.On(store), "first", say("m1", "the word is aardvark"), say("m2", "and badger"))
	first, err := store.FindThread(bg, "first")
	require.NoError(t, err)
	c, err := first.Active(bg)
	require.NoError(t, err)
	second, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "second", UserID: "bob"})
	require.NoError(t, err)
	_, err = c.Fork(bg, lineage.ForkOptions{Thread: second.ID()})
	require.NoError(t, err)

	report := s.project(t, store, db)
	require.Equal(t, 4, report.Added)
	require.NotZero(t, report.To)
	require.Equal(t, 2, count(t, database, `SELECT COUNT(*) FROM "messages" WHERE chatId = 'first'`))
	require.Equal(t, 2, count(t, database, `SELECT COUNT(*) FROM "messages" WHERE chatId = 'second'`))
	require.Equal(t, 2, count(t, database, `SELECT COUNT(*) FROM "spans"`))
	require.Equal(t, 2, count(t, database, `SELECT COUNT(*) FROM "message_usages"`))
	require.Equal(t, 3, count(t, database, `SELECT COUNT(*) FROM "content_blocks"`), "two texts and a form")
	require.Equal(t, 1, count(t, database, `SELECT COUNT(*) FROM "messages" WHERE "id" = 'm2' AND parentId = 'm1'`))
	requireChats(t, store, db)

	found, err := sqlchat.On(db).SearchMessages(bg, "second", "aardvark", chat.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "second", found[0].Message.ChatID)

	again := s.project(t, store, db)
	require.Zero(t, again.Transactions)
	require.Equal(t, report.To, again.To)
}

// testFollows projects single changes.
func testFollows(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	chats := chat.On(store)
	same := func() {
		t.Helper()
		s.project(t, store, db)
		requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
		requireChats(t, store, db)
	}
	same()
	converse(t, chats, "a", say("m1", "one"), say("m2", "two"), say("m3", "three"))
	converse(t, chats, "b", say("n1", "one"))
	same()

	require.Equal(t, 1, func() int {
		converse(t, chats, "a", say("m4", "four"))
		return s.project(t, store, db).Added
	}(), "only what is new is written")
	same()

	a, err := store.FindThread(bg, "a")
	require.NoError(t, err)
	at, err := a.Find(bg, "m2")
	if err == nil {
		_, err = a.CreateBranch(bg, "", lineage.BranchOptions{At: at.Span, Switch: true})
	}
	if errors.Is(err, lineage.ErrNotFound) {
		c, err := a.Active(bg)
		require.NoError(t, err)
		entries, err := c.All(bg)
		require.NoError(t, err)
		_, err = a.CreateBranch(bg, "", lineage.BranchOptions{At: entries[1].Span, Switch: true})
		require.NoError(t, err)
	}
	same()
	named, err := a.BranchContext(bg, "main")
	require.NoError(t, err)
	require.NoError(t, a.NameBranch(bg, "trunk", named))
	_, err = a.SetCheckpoint(bg, "here", lineage.CheckpointOptions{})
	require.NoError(t, err)
	same()

	body := say("m2", "two").Data
	blocks := 0
	for e, err := range func() func(func(*lineage.Entry, error) bool) {
		c, err := a.Active(bg)
		require.NoError(t, err)
		return c.Entries(bg, lineage.Window{})
	}() {
		require.NoError(t, err)
		if bytes.Equal(e.Body, body) {
			require.Equal(t, content.Sum([]byte("two")), e.Content)
			require.NoError(t, store.Erase(bg, e.Content))
			blocks++
		}
	}
	require.Equal(t, 1, blocks)
	same()
	m2, err := sqlchat.On(db).Message(bg, "a", "m2")
	require.NoError(t, err)
	require.JSONEq(t, "null", string(m2.Data))
	require.Zero(t, count(t, database, `SELECT COUNT(*) FROM "messages_fts" WHERE "content" LIKE '%two%'`))

	_, _, err = store.Put(bg, strings.NewReader("two"), lineage.BlockOptions{})
	require.NoError(t, err)
	same()
	m2, err = sqlchat.On(db).Message(bg, "a", "m2")
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(m2.Data))

	gone, err := chats.DeleteChat(bg, "a", chat.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, gone)
	same()
	require.Equal(t, 1, count(t, database, `SELECT COUNT(*) FROM "messages"`))
	require.Equal(t, 2, count(t, database, `SELECT COUNT(*) FROM "content_blocks"`), "a text and a form")
	converse(t, chats, "a", say("m1", "another one"))
	same()
}

// testShrinks removes history from a thread that remains.
func testShrinks(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	var spans []lineage.SpanRef
	for i := range 50 {
		refs, err := c.Extend(bg, lineage.User(fmt.Sprintf("message %d", i)))
		require.NoError(t, err)
		spans = append(spans, refs...)
	}
	side, err := thread.CreateBranch(bg, "side", lineage.BranchOptions{At: spans[9]})
	require.NoError(t, err)
	_, err = side.Extend(bg, lineage.User("on the side"))
	require.NoError(t, err)
	s.project(t, store, db)
	require.NoError(t, c.MoveTo(bg, spans[4], "rewind"))
	report := s.project(t, store, db)
	require.Equal(t, 40, report.Removed)
	require.NoError(t, thread.DeleteBranch(bg, "side"))
	s.project(t, store, db)
	require.Equal(t, 5, count(t, database, `SELECT COUNT(*) FROM "messages"`))
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
}

// testStoredAgain says a text again that a collection has deleted, before the database has lost it.
func testStoredAgain(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	said := func() *lineage.Context {
		c, err := store.NewContext(bg, lineage.ContextOptions{})
		require.NoError(t, err)
		_, err = c.Extend(bg, lineage.User("said again"))
		require.NoError(t, err)
		return c
	}
	first := said()
	s.project(t, store, db)
	at := count(t, database, `SELECT created_at FROM "content_blocks"`)
	require.NoError(t, first.Delete(bg))
	_, err := store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	for time.Now().UnixMilli() == int64(at) {
		runtime.Gosched()
	}
	said()
	_, err = (&project.Projector{Store: store, DB: db, BatchRows: 1}).Run(bg)
	require.NoError(t, err)
	require.NotEqual(t, at, count(t, database, `SELECT created_at FROM "content_blocks"`))
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
}

// testUsers has a text of two users. Each user exists as long as one of their messages.
func testUsers(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	threads := make(map[string]*lineage.Thread)
	for _, user := range []string{"ada", "bob"} {
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: user})
		require.NoError(t, err)
		c, err := thread.Active(bg)
		require.NoError(t, err)
		_, err = c.Extend(bg, lineage.Item{Role: "user", Body: []byte("the same"), Origin: lineage.Origin{UserID: user}})
		require.NoError(t, err)
		threads[user] = thread
	}
	s.project(t, store, db)
	require.Equal(t, 1, count(t, database, `SELECT COUNT(*) FROM "content_blocks"`))
	require.Equal(t, 1, count(t, database, `SELECT COUNT(*) FROM "users" WHERE "id" = 'ada'`))
	require.Equal(t, 1, count(t, database, `SELECT COUNT(*) FROM "users" WHERE "id" = 'bob'`))
	require.Zero(t, count(t, database, `SELECT COUNT(*) FROM "content_blocks" WHERE "origin_user_id" IS NOT NULL`), "nobody owns what both said")
	require.NoError(t, threads["bob"].Delete(bg))
	s.project(t, store, db)
	require.Equal(t, 1, count(t, database, `SELECT COUNT(*) FROM "users" WHERE "id" = 'ada'`))
	require.Equal(t, 0, count(t, database, `SELECT COUNT(*) FROM "users" WHERE "id" = 'bob'`))
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
}

// testOwners has threads without messages: their users exist as long as the threads. One thread
// gets a user later.
func testOwners(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	make := func(user string) *lineage.Thread {
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: user})
		require.NoError(t, err)
		return thread
	}
	users := func(want ...string) {
		t.Helper()
		s.project(t, store, db)
		require.Equal(t, len(want), count(t, database, `SELECT COUNT(*) FROM "users"`))
		for _, user := range want {
			require.Equal(t, 1, count(t, database, `SELECT COUNT(*) FROM "users" WHERE "id" = '`+user+`'`), user)
		}
		requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
	}
	ada, again, nobody := make("ada"), make("ada"), make("")
	users("ada")
	require.NoError(t, nobody.Update(bg, func(i *lineage.ThreadInfo) error { i.UserID = "bob"; return nil }))
	users("ada", "bob")
	require.NoError(t, ada.Delete(bg))
	users("ada", "bob")
	require.NoError(t, again.Delete(bg))
	users("bob")
	require.NoError(t, nobody.Delete(bg))
	users()
}

// testInterrupted stops a projector at each statement. The next one continues.
func testInterrupted(t *testing.T, s *suite) {
	store := newStore(t)
	chats := chat.On(store)
	converse(t, chats, "a", say("m1", "one"), say("m2", "two"), say("m3", "three"))
	converse(t, chats, "b", say("n1", "one"))
	s.interrupted(t, store, 5, func() {
		converse(t, chats, "a", say("m4", "four"))
		a, err := store.FindThread(bg, "a")
		require.NoError(t, err)
		c, err := a.Active(bg)
		require.NoError(t, err)
		entries, err := c.All(bg)
		require.NoError(t, err)
		require.NoError(t, c.MoveTo(bg, entries[1].Span, "rewind"))
		_, err = c.Fork(bg, lineage.ForkOptions{})
		require.NoError(t, err)
		_, err = chats.DeleteChat(bg, "b", chat.DeleteOptions{})
		require.NoError(t, err)
		converse(t, chats, "c", say("n1", "one"), say("n2", "two"))
		require.NoError(t, store.Erase(bg, entries[0].Content))
	})
}

// testInterruptedAgain stops the projector while it writes a thread again, because the store has not
// kept the spans that the thread no longer sees.
func testInterruptedAgain(t *testing.T, s *suite) {
	s.interruptedAgain(t, func(_ *lineage.Thread, main *lineage.Context, spans []lineage.SpanRef) error {
		return main.MoveTo(bg, spans[2], "rewind")
	})
	s.interruptedAgain(t, func(thread *lineage.Thread, _ *lineage.Context, _ []lineage.SpanRef) error {
		return thread.DeleteBranch(bg, "side0")
	})
}

func (s *suite) interruptedAgain(t *testing.T, change func(*lineage.Thread, *lineage.Context, []lineage.SpanRef) error) {
	store := newStore(t)
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	var spans []lineage.SpanRef
	for i := range 5 {
		refs, err := main.Extend(bg, lineage.User(fmt.Sprint("message ", i)))
		require.NoError(t, err)
		spans = append(spans, refs...)
	}
	for i := range 2 {
		side, err := thread.CreateBranch(bg, fmt.Sprint("side", i), lineage.BranchOptions{At: spans[i]})
		require.NoError(t, err)
		_, err = side.Extend(bg, lineage.User("on the side"))
		require.NoError(t, err)
	}
	s.interrupted(t, store, 23, func() {
		require.NoError(t, change(thread, main, spans))
		_, err := store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
		require.NoError(t, err)
	})
}

// interrupted projects the store, and again after a change, stopping the projector at one statement
// of each stride.
func (s *suite) interrupted(t *testing.T, store *lineage.Store, stride int64, change func()) {
	type attempt struct {
		database Database
		at       int64
	}
	var attempts []attempt
	// The first statements create the tables.
	for at, stopped := int64(1), true; stopped; at += stride {
		database := s.New(t)
		stopped = s.stopAt(t, store, database, at, false)
		db := s.open(t, database)
		s.project(t, store, db)
		require.NoError(t, db.Close())
		attempts = append(attempts, attempt{database, at})
	}
	whole := s.rebuilt(t, store, false)
	for _, a := range attempts {
		requireSame(t, whole, dump(t, a.database, false))
	}
	change()
	whole = s.rebuilt(t, store, false)
	for _, a := range attempts {
		s.stopAt(t, store, a.database, a.at, false)
		db := s.open(t, a.database)
		s.project(t, store, db)
		require.NoError(t, db.Close())
		requireSame(t, whole, dump(t, a.database, false))
	}
}

// stopAt runs a projector until statement n, and reports whether it got that far.
func (s *suite) stopAt(t require.TestingT, store *lineage.Store, database Database, n int64, chatsOnly bool) (stopped bool) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var issued atomic.Int64
	var counting atomic.Bool
	db, err := database.Open(bg, sqladapter.Options{Trace: func(string) {
		if counting.Load() && issued.Add(1) == n {
			cancel()
		}
	}})
	require.NoError(t, err)
	defer db.Close()
	counting.Store(true)
	_, err = (&project.Projector{Store: store, DB: db, BatchRows: 5, ChatsOnly: chatsOnly}).Run(ctx)
	if issued.Load() < n {
		require.NoError(t, err)
		return false
	}
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	return true
}

// testRefuses refuses databases of other stores.
func testRefuses(t *testing.T, s *suite) {
	store, other := newStore(t), newStore(t)
	converse(t, chat.On(store), "a", say("m1", "one"))
	converse(t, chat.On(other), "a", say("m1", "one"))

	database := s.New(t)
	db := s.open(t, database)
	defer db.Close()
	s.project(t, store, db)
	_, err := (&project.Projector{Store: other, DB: db}).Run(bg)
	require.ErrorIs(t, err, project.ErrOtherStore)
	_, err = (&project.Projector{Store: store, DB: db, ChatsOnly: true}).Run(bg)
	require.ErrorIs(t, err, sqladapter.ErrOtherTables)
	for _, earlier := range []string{`UPDATE "lineage_projection" SET "format" = 8`, `ALTER TABLE "lineage_projection" DROP COLUMN "version"`} {
		exec(t, database, "%s", earlier)
		_, err = (&project.Projector{Store: store, DB: db}).Run(bg)
		require.ErrorIs(t, err, sqladapter.ErrOtherTables)
		_, err = importing.Run(bg, db, other, importing.Options{})
		require.ErrorIs(t, err, sqladapter.ErrOtherTables)
		for _, err := range project.Compare(bg, db, store, project.CompareOptions{}) {
			require.ErrorIs(t, err, sqladapter.ErrOtherTables)
		}
	}

	used := s.open(t, s.New(t))
	defer used.Close()
	converse(t, sqlchat.On(used), "mine", say("x", "of the database's own"))
	_, err = (&project.Projector{Store: store, DB: used}).Run(bg)
	require.ErrorIs(t, err, project.ErrNotEmpty)

	database = s.New(t)
	taken := s.open(t, database)
	defer taken.Close()
	_, err = database.SQL.ExecContext(bg, `CREATE TABLE "users" ("id" INTEGER PRIMARY KEY)`)
	require.NoError(t, err)
	_, err = (&project.Projector{Store: store, DB: taken}).Run(bg)
	require.ErrorIs(t, err, sqladapter.ErrForeign)
	_, err = (&project.Projector{Store: store, DB: taken, ChatsOnly: true}).Run(bg)
	require.NoError(t, err)
}

func (s *suite) large() int { return cmp.Or(s.Large, 3000) }

// testLarge projects more than fits in a statement or transaction.
func testLarge(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	chats := chat.On(store)
	n := s.large()
	messages := make([]chat.Message, n)
	for i := range messages {
		messages[i] = say(fmt.Sprintf("m%d", i), strings.Repeat("word ", i%20))
	}
	converse(t, chats, "large", messages...)
	seen := 0
	p := &project.Projector{Store: store, DB: db, BatchRows: n / 3, Progress: func(r project.Report) { seen = max(seen, r.Added) }}
	report, err := p.Run(bg)
	require.NoError(t, err)
	require.Equal(t, n, report.Added)
	require.Equal(t, n, seen)
	require.Greater(t, report.Transactions, 3)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
	_, err = chats.DeleteChat(bg, "large", chat.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, n, s.project(t, store, db).Removed)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
}

// testTexts projects texts that not every database can store.
func testTexts(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	title := "nul \x00 and half \xff"
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada", Title: title, Metadata: []byte(`{"a":"\u0000"}`)})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	for _, body := range []string{"", "nul \x00", "half \xff\xfe", "😀 and 日本", strings.Repeat("x", 100_000)} {
		_, err = c.Extend(bg, lineage.User(body))
		require.NoError(t, err)
	}
	_, err = c.Extend(bg, lineage.Item{Role: "user", Type: "application/json", Body: []byte(`{"a":"\u0000 \ud83d\ude00 \ud83d \\u0000 \ude00"}`)})
	require.NoError(t, err)
	large := bytes.Repeat([]byte("a long asset that is cut into pieces\n"), 10_000)
	_, err = c.Extend(bg, lineage.Item{Kind: lineage.Asset, Filename: "a.txt", Reader: bytes.NewReader(large), Type: "text/plain"})
	require.NoError(t, err)
	require.Equal(t, 7, s.project(t, store, db).Added)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
}

// differences returns the results of a comparison.
func differences(t require.TestingT, store *lineage.Store, db *sqladapter.DB) []project.Difference {
	var found []project.Difference
	for d, err := range project.Compare(bg, db, store, project.CompareOptions{}) {
		require.NoError(t, err)
		found = append(found, d)
	}
	return found
}

// testCompareEmpty compares empty and erased content.
func testCompareEmpty(t *testing.T, s *suite) {
	store := newStore(t)
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, lineage.User("a question"), lineage.Assistant(""), lineage.User("erased"))
	require.NoError(t, err)
	require.NoError(t, store.Erase(bg, content.Sum([]byte("erased"))))
	require.Empty(t, differences(t, store, s.filled(t, store)))
}

// testCompare damages rows and finds each damage.
func testCompare(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	first := func(err error) error {
		for _, found := range project.Compare(bg, db, store, project.CompareOptions{}) {
			return found
		}
		return err
	}
	require.ErrorIs(t, first(nil), project.ErrNotProjected)
	converse(t, chat.On(store), "a", say("m1", "one"), say("m2", "two"), say("m3", "three"))
	a, err := store.FindThread(bg, "a")
	require.NoError(t, err)
	_, err = a.SetCheckpoint(bg, "here", lineage.CheckpointOptions{})
	require.NoError(t, err)
	c, err := store.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.User("of no thread"))
	require.NoError(t, err)
	s.project(t, store, db)
	require.Empty(t, differences(t, store, db))

	for _, damage := range []struct {
		sql  string
		want project.Difference
	}{
		{`UPDATE "chats" SET "title" = 'x'`, project.Difference{Kind: project.Different, Table: "chats", ID: "a", Columns: []string{"title"}}},
		{`UPDATE "messages" SET "type" = 'x' WHERE "id" = 'm2'`, project.Difference{Kind: project.Different, Table: "messages", ID: "m2", Columns: []string{"type"}}},
		{`DELETE FROM "checkpoints"`, project.Difference{Kind: project.Missing, Table: "checkpoints"}},
		{`INSERT INTO "chats" ("id", userId, createdAt, updatedAt) VALUES ('x', 'y', 1, 1)`, project.Difference{Kind: project.Extra, Table: "chats", ID: "x"}},
		{`INSERT INTO "messages" ("id", chatId, "name", "data", createdAt) VALUES ('x', 'a', 'user', '1', 1)`, project.Difference{Kind: project.Extra, Table: "messages", ID: "x"}},
		{`INSERT INTO "branches" ("id", chatId, "name", createdAt) VALUES ('x', 'a', 'b', 1)`, project.Difference{Kind: project.Extra, Table: "branches", ID: "x"}},
		{`UPDATE "message_usages" SET "role" = 'x' WHERE "source_id" = 'm3'`, project.Difference{Kind: project.Different, Table: "message_usages", Columns: []string{"role"}}},
		{`UPDATE "content_blocks" SET "size" = 7 WHERE "size" = 3`, project.Difference{Kind: project.Different, Table: "content_blocks", Columns: []string{"size"}}},
		{`INSERT INTO "spans" ("id", "run_id", "seq", "position") VALUES ('x', 'y', 1, 1)`, project.Difference{Kind: project.Extra, Table: "spans", ID: "x"}},
		{`UPDATE "contexts" SET "metadata" = 'x' WHERE "thread_id" IS NULL`, project.Difference{Kind: project.Different, Table: "contexts", Columns: []string{"metadata"}}},
	} {
		t.Run(damage.sql, func(t *testing.T) {
			database := s.New(t)
			db := s.open(t, database)
			defer db.Close()
			s.project(t, store, db)
			_, err := database.SQL.ExecContext(bg, damage.sql)
			require.NoError(t, err)
			found := differences(t, store, db)
			require.NotEmpty(t, found)
			for _, d := range found {
				require.Equal(t, damage.want.Table, d.Table, d)
				require.Equal(t, damage.want.Kind, d.Kind, d)
				require.Equal(t, damage.want.Columns, d.Columns)
				if damage.want.ID != "" {
					require.Equal(t, damage.want.ID, d.ID)
				}
			}
		})
	}

	_, err = c.Extend(bg, lineage.User("more"))
	require.NoError(t, err)
	require.ErrorIs(t, first(nil), project.ErrBehind)
}
