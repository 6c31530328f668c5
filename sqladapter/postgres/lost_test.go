package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// breaker breaks connections. It sees every statement, including BEGIN and COMMIT.
type breaker struct {
	admin *pgx.Conn

	mu    sync.Mutex
	calls int
	// committed counts the COMMIT statements.
	committed int
	// at is the number of the statement whose connection breaks, from 1; 0 for none. The server
	// ends the connection before the statement, or, if answered is set, the network fails after it
	// was executed.
	at       int
	answered bool
	// hit is the statement whose connection broke.
	hit string
	// end, when not nil, is called instead of breaking the connection.
	end func()
	// down refuses new connections.
	down bool
}

func (b *breaker) arm(at int, answered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls, b.committed, b.at, b.answered, b.hit = 0, 0, at, answered, ""
}

// disarm returns the statement that was hit, if any.
func (b *breaker) disarm() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = 0
	return b.hit
}

// commits returns the number of commits since the breaker was armed.
func (b *breaker) commits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.committed
}

// TraceQueryStart implements pgx.QueryTracer.
func (b *breaker) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if data.SQL == "commit" {
		b.committed++
	}
	if b.calls++; b.calls != b.at {
		return ctx
	}
	b.hit = data.SQL
	if b.end != nil {
		b.end()
		return ctx
	}
	if b.answered {
		conn.PgConn().Conn().(*wire).cut.Store(true)
		return ctx
	}
	b.terminate(conn.PgConn().PID())
	return ctx
}

func (b *breaker) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// terminate ends a server process and waits for it.
func (b *breaker) terminate(pid uint32) {
	for gone := false; !gone; {
		_, err := b.admin.Exec(background, `SELECT pg_terminate_backend($1)`, pid)
		if err == nil {
			err = b.admin.QueryRow(background, `SELECT NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1)`, pid).Scan(&gone)
		}
		if err != nil {
			panic(err)
		}
	}
}

// wire is a connection that can be cut after the server has answered.
type wire struct {
	net.Conn
	cut atomic.Bool
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err == nil && w.cut.Load() {
		return 0, errors.Join(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, w.Conn.Close())
	}
	return n, err
}

// open opens a database over breakable connections.
func (b *breaker) open(t testing.TB, dsn string, o sqladapter.Options) (*sqladapter.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	config.Tracer = b
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		b.mu.Lock()
		down := b.down
		b.mu.Unlock()
		if down {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		conn, err := dial(ctx, network, address)
		return &wire{Conn: conn}, err
	}
	pool := stdlib.OpenDB(*config)
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	return postgres.New(background, pool, o)
}

func newBreaker(t testing.TB, dsn string) *breaker {
	admin, err := pgx.Connect(background, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close(background)) })
	return &breaker{admin: admin}
}

// eachBreak breaks the connection at every statement of an operation, before and after it, with
// another number each time. do returns the operation's error, done reports how often it was carried
// out. The result may be unknown only if the commit was hit.
func (b *breaker) eachBreak(t *testing.T, prepare func(n int), do func(n int) error, done func(n int) int) {
	n := 0
	for _, answered := range []bool{false, true} {
		commits := 0
		for at := 1; ; at++ {
			require.Less(t, at, 100)
			n++
			prepare(n)
			b.arm(at, answered)
			err := do(n)
			hit := b.disarm()
			what := fmt.Sprintf("lost at %q, answered %t: %v", hit, answered, err)
			if hit == "commit" {
				commits++
				require.ErrorIs(t, err, sqladapter.ErrUncertain, what)
				require.NotErrorIs(t, err, lineage.ErrConflict, what)
				want := 0
				if answered {
					want = 1
				}
				require.Equal(t, want, done(n), what)
				continue
			}
			require.NoError(t, err, what)
			require.Equal(t, 1, done(n), what)
			if hit == "" {
				require.Greater(t, at, 2)
				break
			}
		}
		require.Equal(t, 1, commits)
	}
}

// TestLostConnections breaks the connection at every statement of every write operation: it is
// carried out once, or the result is reported as unknown.
func TestLostConnections(t *testing.T) {
	campaign.Long(t)
	dsn := pgtest.DSN(t)
	clean, err := postgres.Open(background, dsn, sqladapter.Options{})
	require.NoError(t, err)
	defer clean.Close()
	b := newBreaker(t, dsn)
	broken, err := b.open(t, dsn, sqladapter.Options{})
	require.NoError(t, err)
	defer broken.Close()
	s, check := sqlchat.On(broken), sqlchat.On(clean)

	say := func(id string) chat.Message {
		return chat.Message{ID: id, Name: "user", Data: json.RawMessage(`{"parts":[{"type":"text","text":"a word"}]}`)}
	}
	main := func(chatID string) *chat.Branch {
		m, err := check.Branch(background, chatID, chat.MainBranch)
		require.NoError(t, err)
		return m
	}
	nodes := func(chatID string) int {
		g, err := check.Graph(background, chatID)
		require.NoError(t, err)
		return len(g.Nodes)
	}
	isTrue := func(done bool) int {
		if done {
			return 1
		}
		return 0
	}
	for _, operation := range []struct {
		name string
		do   func(chatID string) error
		done func(chatID string) int
	}{
		{"create a chat", func(id string) error {
			_, err := s.CreateChat(background, chat.Chat{ID: "new" + id, UserID: "ada"})
			return err
		}, func(id string) int {
			infos, err := check.ListBranches(background, "new"+id)
			require.NoError(t, err)
			return len(infos)
		}},
		{"change a chat", func(id string) error {
			_, err := s.ChangeChat(background, id, func(was chat.Chat) (chat.ChatUpdate, error) {
				return chat.ChatUpdate{Metadata: fmt.Appendf(nil, "[%d]", len(was.Metadata)+1)}, nil
			})
			return err
		}, func(id string) int {
			c, err := check.Chat(background, id)
			require.NoError(t, err)
			return isTrue(string(c.Metadata) == "[1]")
		}},
		{"add a message", func(id string) error {
			m := say(id + "m")
			m.ChatID, m.ParentID = id, chat.Ref(id+"2")
			return s.AddMessage(background, m)
		}, func(id string) int { return nodes(id) - 2 }},
		{"append", func(id string) error {
			m := main(id)
			_, err := s.Append(background, chat.AppendRequest{ChatID: id, BranchID: m.ID, ExpectedHead: m.HeadMessageID, Messages: []chat.Message{say(id + "3"), say(id + "4")}})
			return err
		}, func(id string) int {
			require.Equal(t, nodes(id) == 4, main(id).HeadMessageID == chat.Ref(id+"4"))
			return (nodes(id) - 2) / 2
		}},
		{"append to a new branch", func(id string) error {
			_, err := s.Append(background, chat.AppendRequest{
				ChatID: id, NewBranch: &chat.Branch{Name: "fork", HeadMessageID: chat.Ref(id + "1"), IsActive: true}, Messages: []chat.Message{say(id + "3")},
			})
			return err
		}, func(id string) int {
			infos, err := check.ListBranches(background, id)
			require.NoError(t, err)
			require.Equal(t, len(infos)-1, nodes(id)-2)
			return len(infos) - 1
		}},
		{"create a branch", func(id string) error {
			_, err := s.CreateBranch(background, chat.Branch{ChatID: id, Name: "fork", IsActive: true})
			return err
		}, func(id string) int {
			names, err := check.BranchNames(background, id, "", 100)
			require.NoError(t, err)
			return len(names) - 1
		}},
		{"activate a branch", func(id string) error { return s.SetActiveBranch(background, id, id+"side") }, func(id string) int {
			active, err := check.ActiveBranch(background, id)
			require.NoError(t, err)
			return isTrue(active.Name == "side")
		}},
		{"move a branch", func(id string) error {
			return s.UpdateBranchHead(background, id, id+"side", chat.Ref(id+"1"))
		}, func(id string) int {
			side, err := check.Branch(background, id, "side")
			require.NoError(t, err)
			return isTrue(side.HeadMessageID == chat.Ref(id+"1"))
		}},
		{"create a checkpoint", func(id string) error {
			_, err := s.CreateCheckpoint(background, chat.Checkpoint{ChatID: id, Name: "new", MessageID: id + "1"})
			return err
		}, func(id string) int {
			k, err := check.ListCheckpoints(background, id)
			require.NoError(t, err)
			return len(k) - 1
		}},
		{"delete a checkpoint", func(id string) error { return s.DeleteCheckpoint(background, id, "here") }, func(id string) int {
			k, err := check.ListCheckpoints(background, id)
			require.NoError(t, err)
			return 1 - len(k)
		}},
		{"delete a chat", func(id string) error {
			deleted, err := s.DeleteChat(background, id, chat.DeleteOptions{})
			if err == nil && !deleted {
				return errors.New("there was no chat")
			}
			return err
		}, func(id string) int { return 1 - nodes(id)/2 }},
	} {
		t.Run(operation.name, func(t *testing.T) {
			id := func(n int) string { return fmt.Sprint(operation.name, n) }
			b.eachBreak(t, func(n int) {
				_, err := check.CreateChat(background, chat.Chat{ID: id(n), UserID: "ada"})
				require.NoError(t, err)
				_, err = check.Append(background, chat.AppendRequest{ChatID: id(n), BranchID: main(id(n)).ID, Messages: []chat.Message{say(id(n) + "1"), say(id(n) + "2")}})
				require.NoError(t, err)
				_, err = check.CreateBranch(background, chat.Branch{ID: id(n) + "side", ChatID: id(n), Name: "side"})
				require.NoError(t, err)
				if operation.name == "create a branch" || operation.name == "append to a new branch" {
					_, err := clean.Reader().Exec(background, `DELETE FROM "branches" WHERE "id" = ?`, id(n)+"side")
					require.NoError(t, err)
				}
				_, err = check.CreateCheckpoint(background, chat.Checkpoint{ChatID: id(n), Name: "here", MessageID: id(n) + "1"})
				require.NoError(t, err)
			}, func(n int) error { return operation.do(id(n)) }, func(n int) int { return operation.done(id(n)) })
		})
	}
}

// TestLostWhileReading breaks the connection at every statement of read operations. None fails, and
// messages of another program are found.
func TestLostWhileReading(t *testing.T) {
	dsn := pgtest.DSN(t)
	b := newBreaker(t, dsn)
	db, err := b.open(t, dsn, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	for _, answered := range []bool{false, true} {
		for at := 1; ; at++ {
			require.Less(t, at, 200)
			id := fmt.Sprint("c", at, answered)
			require.NoError(t, place{dsn: dsn}.Exec(background, fmt.Sprintf(`
INSERT INTO chats (id, "userId") VALUES ('%[1]s', '%[1]s');
INSERT INTO messages (id, "chatId", "parentId", name, data, "createdAt") VALUES ('%[1]s1', '%[1]s', NULL, 'user', '"zebra"', 1), ('%[1]s2', '%[1]s', '%[1]s1', 'user', '"zebras"', 2);
INSERT INTO branches (id, "chatId", name, "headMessageId", "isActive", "createdAt") VALUES ('%[1]sb', '%[1]s', 'main', '%[1]s2', TRUE, 1);`, id)))
			b.arm(at, answered)
			infos, err := s.ListBranches(background, id)
			require.NoError(t, err)
			require.Equal(t, 2, infos[0].MessageCount)
			requireIDs(t, s, id, id+"1", id+"2")
			found, err := sqlchat.SearchAll(background, db, id, "zebra", chat.SearchOptions{})
			require.NoError(t, err)
			require.Len(t, found, 2)
			found, err = s.SearchMessages(background, id, "zebra", chat.SearchOptions{})
			require.NoError(t, err)
			require.Len(t, found, 2)
			n := 0
			for info, err := range s.ListChats(background, chat.ListOptions{UserID: id}) {
				require.NoError(t, err)
				require.Equal(t, 2, info.MessageCount)
				n++
			}
			require.Equal(t, 1, n)
			if b.disarm() == "" {
				break
			}
		}
	}
}

func requireIDs(t *testing.T, s chat.Store, chatID string, want ...string) {
	var got []string
	for m, err := range s.Messages(background, chatID) {
		require.NoError(t, err)
		got = append(got, m.ID)
	}
	require.Equal(t, want, got)
}

// TestLostWhileOpening breaks the connection at every statement of opening, at some with -short. The
// next program finds or creates a complete schema.
func TestLostWhileOpening(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, answered := range []bool{false, true} {
		for at := 1; ; at += step {
			require.Less(t, at, 100)
			dsn := pgtest.DSN(t)
			b := newBreaker(t, dsn)
			b.arm(at, answered)
			db, err := b.open(t, dsn, sqladapter.Options{})
			hit := b.disarm()
			if err != nil {
				require.True(t, errors.Is(err, sqladapter.ErrBusy) || hit == "commit" && errors.Is(err, sqladapter.ErrUncertain), "lost at %q: %v", hit, err)
			} else {
				require.NoError(t, db.Close())
			}
			again, err := postgres.Open(background, dsn, sqladapter.Options{})
			require.NoError(t, err)
			_, err = sqlchat.On(again).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
			require.NoError(t, err)
			require.NoError(t, again.Close())
			if hit == "" {
				break
			}
		}
	}
}

// TestUnreachable reports why the server cannot be reached.
func TestUnreachable(t *testing.T) {
	dsn := pgtest.DSN(t)
	b := newBreaker(t, dsn)
	db, err := b.open(t, dsn, sqladapter.Options{Patience: time.Millisecond})
	require.NoError(t, err)
	defer db.Close()
	b.mu.Lock()
	b.down = true
	b.mu.Unlock()
	_, err = b.open(t, dsn, sqladapter.Options{})
	require.ErrorIs(t, err, sqladapter.ErrBusy)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	b.arm(1, false)
	_, err = sqlchat.On(db).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.ErrorIs(t, err, sqladapter.ErrBusy)
	_, err = sqlchat.On(db).Chat(background, "c")
	require.ErrorIs(t, err, sqladapter.ErrBusy)
	b.mu.Lock()
	b.down = false
	b.mu.Unlock()
	_, err = sqlchat.On(db).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
}

// TestCancelled cancels the context at every statement. Only for a commit is the result unknown.
func TestCancelled(t *testing.T) {
	dsn := pgtest.DSN(t)
	b := newBreaker(t, dsn)
	db, err := b.open(t, dsn, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	for at := 1; ; at++ {
		ctx, cancel := context.WithCancel(background)
		b.arm(at, true)
		b.end = cancel
		_, err := sqlchat.On(db).CreateChat(ctx, chat.Chat{ID: fmt.Sprint("c", at), UserID: "ada"})
		hit := b.disarm()
		b.end = nil
		cancel()
		if hit == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, context.Canceled, hit)
		require.Equal(t, hit == "commit", errors.Is(err, sqladapter.ErrUncertain), hit)
		found, err := sqlchat.On(db).Chat(background, fmt.Sprint("c", at))
		require.NoError(t, err)
		require.Nil(t, found)
	}
}

func TestClassify(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("while at it: %w", err) }
	for code, want := range map[string]sqladapter.Failure{
		"40001": sqladapter.Busy, "40P01": sqladapter.Busy, "55P03": sqladapter.Busy, "53300": sqladapter.Busy, "57P03": sqladapter.Busy,
		"57P01": sqladapter.Lost, "57P02": sqladapter.Lost, "08000": sqladapter.Lost, "08003": sqladapter.Lost, "08006": sqladapter.Lost,
		"08001": sqladapter.Lost, "08004": sqladapter.Lost, "08007": sqladapter.Lost, "08P01": sqladapter.Lost, "25P03": sqladapter.Lost,
		"42501": sqladapter.Denied, "25006": sqladapter.Denied, "28P01": sqladapter.Denied, "23505": sqladapter.Duplicate,
		"42P01": sqladapter.OtherFailure, "57014": sqladapter.OtherFailure, "XX000": sqladapter.OtherFailure, "57P04": sqladapter.OtherFailure,
	} {
		require.Equal(t, want, postgres.Dialect{}.Classify(wrapped(&pgconn.PgError{Code: code})), code)
	}
	for _, message := range []string{
		"Max client connections reached", "MaxClientsInSessionMode: max clients reached - in Session mode max clients are limited to pool_size",
		"Couldn't connect to compute node", "Unable to check out process from the pool due to timeout",
		"Timed-out waiting to acquire database connection", "could not find valid entry for shard 102104",
	} {
		require.Equal(t, sqladapter.Busy, postgres.Dialect{}.Classify(&pgconn.PgError{Code: "XX000", Message: message}), message)
	}
	for _, message := range []string{
		"SSL SYSCALL error: EOF detected", "connection to database closed", "server closed the connection unexpectedly", "could not receive data from server: Connection reset by peer", "connection not open", "invalid socket",
	} {
		require.Equal(t, sqladapter.Lost, postgres.Dialect{}.Classify(&pgconn.PgError{Code: "XX000", Message: message}), message)
	}
	for _, err := range []error{
		io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, &net.OpError{Op: "write", Err: syscall.EPIPE}, &net.DNSError{Err: "no such host"},
	} {
		require.Equal(t, sqladapter.Lost, postgres.Dialect{}.Classify(wrapped(err)), err)
	}
	for _, err := range []error{nil, context.Canceled, syscall.ENOENT, errors.New("anything")} {
		require.Equal(t, sqladapter.OtherFailure, postgres.Dialect{}.Classify(err), err)
	}
}
