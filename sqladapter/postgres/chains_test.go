package postgres_test

import (
	"crypto/rand"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// TestChainsOfOthers changes chains as another program does that knows the documented tables only: it has no
// rights on the others, another search path, and writes as a replica or after they were dropped. It never
// fails, and the lengths of chains are right.
//
// feature: storage/branching
func TestChainsOfOthers(t *testing.T) {
	dsn := pgtest.DSN(t)
	db, err := postgres.Open(background, dsn, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	chain := func(chatID string) {
		_, err := s.CreateChat(background, chat.Chat{ID: chatID, UserID: "ada"})
		require.NoError(t, err)
		parent := chat.Ref("")
		for _, name := range []string{"1", "2", "3", "4"} {
			require.NoError(t, s.AddMessage(background, chat.Message{ID: chatID + name, ChatID: chatID, ParentID: parent, Name: "user", Data: []byte(`"x"`)}))
			parent = chat.Ref(chatID + name)
		}
	}
	chain("a")
	chain("b")
	length := func(chatID, id string, want int) {
		t.Helper()
		n, err := s.CountMessages(background, chatID, id)
		require.NoError(t, err)
		require.Equal(t, want, n, id)
	}
	admin, err := pgx.Connect(background, dsn)
	require.NoError(t, err)
	defer admin.Close(background)
	run := func(statement string) {
		t.Helper()
		_, err := admin.Exec(background, statement)
		require.NoError(t, err, statement)
	}
	role := pgx.Identifier{"lineage_test_" + rand.Text()}.Sanitize()
	run(`CREATE ROLE ` + role)
	defer run(`DROP ROLE ` + role)
	defer run(`RESET ROLE; DROP OWNED BY ` + role)
	run(`GRANT SELECT, UPDATE, DELETE ON chats, messages TO ` + role)
	run(`CREATE SCHEMA other; CREATE TABLE other.lineage_chains (chatid TEXT PRIMARY KEY, epoch TEXT); GRANT USAGE ON SCHEMA other TO ` + role)
	length("a", "a4", 4)

	run(`SET ROLE ` + role + `; SET search_path = other`)
	run(`UPDATE public.messages SET parentid = 'a1' WHERE id = 'a3'`)
	length("a", "a4", 3)
	length("a", "a2", 2)
	length("b", "b4", 4)
	run(`DELETE FROM public.messages WHERE id = 'a2'`)
	length("a", "a4", 3)
	require.NoError(t, s.AddMessage(background, chat.Message{ID: "a5", ChatID: "a", ParentID: "a4", Name: "user", Data: []byte(`"x"`)}))
	length("a", "a5", 4)

	run(`RESET ROLE; SET session_replication_role = replica`)
	run(`UPDATE public.messages SET parentid = NULL WHERE id = 'a4'`)
	length("a", "a5", 2)
	run(`DELETE FROM public.messages WHERE id = 'b2'`) // without the documented keys
	length("b", "b4", 2)
	require.NoError(t, s.AddMessage(background, chat.Message{ID: "b5", ChatID: "b", ParentID: "b4", Name: "user", Data: []byte(`"x"`)}))
	run(`INSERT INTO public.messages (id, chatid, parentid, name, data, createdat) VALUES ('b2', 'b', 'b1', 'user', '"x"', 1)`)
	length("b", "b5", 5)

	run(`RESET session_replication_role; SET ROLE ` + role)
	run(`BEGIN; RESET ROLE; DROP TABLE public.lineage_chains; SET ROLE ` + role + `; UPDATE public.messages SET parentid = 'a1' WHERE id = 'a4';
		DELETE FROM public.messages WHERE id = 'a5'; ROLLBACK`)
	length("a", "a5", 2)
}
