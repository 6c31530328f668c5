package enginetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

var errFault = errors.New("the store failed")

// faulty is a store in which one call fails.
type faulty struct {
	chat.Store
	mu    sync.Mutex
	calls int
	// at is the number of the failing call, from 1; 0 for none. It fails before the store is called
	// or, if done is set, after the store has succeeded.
	at       int
	done     bool
	injected bool
}

// arm lets a later call fail.
func (f *faulty) arm(at int, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.at, f.done, f.injected = 0, at, done, false
}

// disarm reverts arm. It reports whether the call was reached and whether it failed: errors of the
// store itself are not injected.
func (f *faulty) disarm() (reached, injected bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reached = f.calls >= f.at
	f.at = 0
	return reached, f.injected
}

// fail injects the fault.
func (f *faulty) fail() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.injected = true
	return errFault
}

func (f *faulty) fails() (fails, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.calls == f.at, f.done
}

func call[T any](f *faulty, do func() (T, error)) (T, error) {
	var none T
	fails, done := f.fails()
	if fails && !done {
		return none, f.fail()
	}
	answer, err := do()
	if fails && err == nil {
		return none, f.fail()
	}
	return answer, err
}

func run(f *faulty, do func() error) error {
	_, err := call(f, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (f *faulty) UpsertChat(ctx context.Context, c chat.Chat) (chat.Chat, error) {
	return call(f, func() (chat.Chat, error) { return f.Store.UpsertChat(ctx, c) })
}

func (f *faulty) Chat(ctx context.Context, id string) (*chat.Chat, error) {
	return call(f, func() (*chat.Chat, error) { return f.Store.Chat(ctx, id) })
}

func (f *faulty) UpdateChat(ctx context.Context, id string, u chat.ChatUpdate) (chat.Chat, error) {
	return call(f, func() (chat.Chat, error) { return f.Store.UpdateChat(ctx, id, u) })
}

func (f *faulty) ChangeChat(ctx context.Context, id string, change func(chat.Chat) (chat.ChatUpdate, error)) (chat.Chat, error) {
	return call(f, func() (chat.Chat, error) { return f.Store.ChangeChat(ctx, id, change) })
}

func (f *faulty) Message(ctx context.Context, chatID, id string) (*chat.Message, error) {
	return call(f, func() (*chat.Message, error) { return f.Store.Message(ctx, chatID, id) })
}

func (f *faulty) MessageChain(ctx context.Context, chatID, id string) iter.Seq2[chat.Message, error] {
	return f.list(f.Store.MessageChain(ctx, chatID, id))
}

func (f *faulty) Ancestors(ctx context.Context, chatID, id string) iter.Seq2[chat.Message, error] {
	return f.list(f.Store.Ancestors(ctx, chatID, id))
}

func (f *faulty) list(messages iter.Seq2[chat.Message, error]) iter.Seq2[chat.Message, error] {
	fails, done := f.fails()
	return func(yield func(chat.Message, error) bool) {
		if fails && !done {
			yield(chat.Message{}, f.fail())
			return
		}
		for m, err := range messages {
			if !yield(m, err) {
				return
			}
		}
		if fails {
			yield(chat.Message{}, f.fail())
		}
	}
}

func (f *faulty) CountMessages(ctx context.Context, chatID, id string) (int, error) {
	return call(f, func() (int, error) { return f.Store.CountMessages(ctx, chatID, id) })
}

func (f *faulty) CreateBranch(ctx context.Context, b chat.Branch) (chat.Branch, error) {
	return call(f, func() (chat.Branch, error) { return f.Store.CreateBranch(ctx, b) })
}

func (f *faulty) Branch(ctx context.Context, chatID, name string) (*chat.Branch, error) {
	return call(f, func() (*chat.Branch, error) { return f.Store.Branch(ctx, chatID, name) })
}

func (f *faulty) ActiveBranch(ctx context.Context, chatID string) (*chat.Branch, error) {
	return call(f, func() (*chat.Branch, error) { return f.Store.ActiveBranch(ctx, chatID) })
}

func (f *faulty) SetActiveBranch(ctx context.Context, chatID, branchID string) error {
	return run(f, func() error { return f.Store.SetActiveBranch(ctx, chatID, branchID) })
}

func (f *faulty) ListBranches(ctx context.Context, chatID string) ([]chat.BranchInfo, error) {
	return call(f, func() ([]chat.BranchInfo, error) { return f.Store.ListBranches(ctx, chatID) })
}

func (f *faulty) Summaries(ctx context.Context, chatID, branchID string) ([]chat.Summary, error) {
	return call(f, func() ([]chat.Summary, error) { return f.Store.Summaries(ctx, chatID, branchID) })
}

func (f *faulty) BranchNames(ctx context.Context, chatID, prefix string, limit int) ([]string, error) {
	return call(f, func() ([]string, error) { return f.Store.BranchNames(ctx, chatID, prefix, limit) })
}

func (f *faulty) TakenBranchNames(ctx context.Context, chatID string, names []string) ([]string, error) {
	return call(f, func() ([]string, error) { return f.Store.TakenBranchNames(ctx, chatID, names) })
}

func (f *faulty) CreateCheckpoint(ctx context.Context, c chat.Checkpoint) (chat.Checkpoint, error) {
	return call(f, func() (chat.Checkpoint, error) { return f.Store.CreateCheckpoint(ctx, c) })
}

func (f *faulty) Checkpoint(ctx context.Context, chatID, name string) (*chat.Checkpoint, error) {
	return call(f, func() (*chat.Checkpoint, error) { return f.Store.Checkpoint(ctx, chatID, name) })
}

func (f *faulty) Append(ctx context.Context, r chat.AppendRequest) (chat.Ref, error) {
	return call(f, func() (chat.Ref, error) { return f.Store.Append(ctx, r) })
}

// eachFault lets each call of an operation fail, one after another, before and after the store has
// done it. do gets a new chat each time, with ids that start with prefix. It ends when do succeeds
// without a fault, which must take several rounds.
func eachFault(t *testing.T, s *store, do func(f *faulty, s *store, chatID, prefix string, at int, done bool) bool) {
	for _, done := range []bool{false, true} {
		at := 1
		for ; ; at++ {
			require.Less(t, at, 50)
			f := &faulty{Store: s.Store}
			below := &store{Store: s.Store, t: t}
			chatID := fmt.Sprintf("c%d%t", at, done)
			if !do(f, below, chatID, chatID+".", at, done) {
				break
			}
		}
		require.Greater(t, at, 1)
	}
}

func testFailingSaves(t *testing.T, s *store) {
	for _, kind := range []struct {
		name   string
		set    func(prefix string) []engine.Fragment
		branch string
		want   []string
		nodes  int
	}{
		{"append", func(p string) []engine.Fragment { return []engine.Fragment{user(p + "q3"), assistant(p + "a3")} },
			"main", []string{"q1", "a1", "q2", "a2", "q3", "a3"}, 6},
		{"versions", func(p string) []engine.Fragment {
			return []engine.Fragment{says("user", p+"q2", p+"Q2"), says("assistant", p+"a1", p+"A1"), user(p + "q3")}
		}, "main-v2", []string{"q1", "Q2", "A1", "q3"}, 7},
		{"root", func(p string) []engine.Fragment { return []engine.Fragment{says("user", p+"q1", p+"Q1")} }, "main-v2", []string{"Q1"}, 5},
		{"lazy", func(p string) []engine.Fragment { return []engine.Fragment{engine.LastAssistantMessage(p + "A2")} },
			"main-v2", []string{"q1", "a1", "q2", "A2"}, 5},
	} {
		t.Run(kind.name, func(t *testing.T) {
			eachFault(t, s, func(f *faulty, s *store, chatID, prefix string, at int, done bool) bool {
				chatID, prefix = kind.name+chatID, kind.name+prefix
				talk(s, chatID, prefix)
				c := (&store{Store: f, t: t}).open(chatID)
				c.set(kind.set(prefix)...)
				pending := c.pendingTexts()
				f.arm(at, done)
				_, err := c.Save(background)
				reached, failed := f.disarm()
				nodes := s.nodes(chatID)
				if failed {
					require.ErrorIs(t, err, errFault)
					require.Equal(t, pending, c.pendingTexts(), "pending is intact")
					require.Contains(t, []int{4, kind.nodes}, nodes, "all or nothing")
					require.Equal(t, []string{prefix + "q1", prefix + "a1", prefix + "q2", prefix + "a2"}, s.on(chatID, "main")[:4])
					if at%2 == 0 { // an operation in between must not matter
						c.says()
					}
					_, err = c.Save(background)
					require.NoError(t, err)
					require.Empty(t, c.Pending())
				} else {
					require.NoError(t, err)
				}
				want := []string{}
				for _, text := range kind.want {
					want = append(want, prefix+text)
				}
				require.Equal(t, kind.branch, c.Branch())
				require.Equal(t, want, s.on(chatID, kind.branch), "saved once")
				require.Equal(t, want, c.says())
				require.Equal(t, kind.nodes, s.nodes(chatID), "nothing is left of a failed save")
				c.save(user(prefix + "more"))
				require.Equal(t, append(want, prefix+"more"), c.says())
				return reached
			})
		})
	}
}

// late is a store whose next Append fails and is carried out at the following Append, as in a
// database after a lost connection.
type late struct {
	chat.Store
	armed   bool
	request *chat.AppendRequest
}

func (l *late) Append(ctx context.Context, r chat.AppendRequest) (chat.Ref, error) {
	if l.armed {
		l.armed, l.request = false, &r
		return "", errFault
	}
	if l.request != nil {
		if _, err := l.Store.Append(ctx, *l.request); err != nil {
			return "", err
		}
		l.request = nil
	}
	return l.Store.Append(ctx, r)
}

func testLateSaves(t *testing.T, s *store) {
	for _, more := range []bool{false, true} {
		chatID := fmt.Sprint("c", more)
		slow := &late{Store: s.Store, armed: true}
		c := (&store{Store: slow, t: t}).open(chatID)
		c.set(user(chatID+"q1"), assistant(chatID+"a1"))
		_, err := c.Save(background)
		require.ErrorIs(t, err, errFault)
		require.Len(t, c.Pending(), 2)
		want := []string{chatID + "q1", chatID + "a1"}
		if more {
			c.set(user(chatID + "q2"))
			want = append(want, chatID+"q2")
		}
		require.Equal(t, chat.Ref(want[len(want)-1]), c.save())
		require.Equal(t, want, s.on(chatID, "main"))
		require.Equal(t, []string{"main*"}, s.names(chatID))
	}
}

func testFailingBranches(t *testing.T, s *store) {
	for _, kind := range []struct {
		name  string
		do    func(c *conversation, prefix string) error
		keeps bool // pending messages
		to    string
	}{
		{"rewind", func(c *conversation, p string) error { _, err := c.Rewind(background, p+"a1"); return err }, false, "main-v"},
		{"restore", func(c *conversation, p string) error { _, err := c.Restore(background, "here"); return err }, false, "main-v"},
		{"switch", func(c *conversation, p string) error { return c.SwitchBranch(background, "side") }, false, "side"},
		{"aside", func(c *conversation, p string) error { _, err := c.Aside(background); return err }, true, "main"},
		{"checkpoint", func(c *conversation, p string) error { _, err := c.Checkpoint(background, "there"); return err }, true, "main"},
		{"resolve", func(c *conversation, p string) error {
			_, err := c.Resolve(background, engine.ResolveOptions{})
			return err
		}, true, "main"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			eachFault(t, s, func(f *faulty, s *store, chatID, prefix string, at int, done bool) bool {
				chatID, prefix = kind.name+chatID, kind.name+prefix
				before := talk(s, chatID, prefix)
				_, err := before.Checkpoint(background, "here")
				require.NoError(t, err)
				_, err = s.CreateBranch(background, chat.Branch{ChatID: chatID, Name: "side", HeadMessageID: chat.Ref(prefix + "q1")})
				require.NoError(t, err)
				c := (&store{Store: f, t: t}).open(chatID)
				c.set(user(prefix + "pending"))
				f.arm(at, done)
				err = kind.do(c, prefix)
				reached, failed := f.disarm()
				if failed {
					require.ErrorIs(t, err, errFault)
					require.Len(t, c.Pending(), 1)
					require.Equal(t, "main", c.Branch())
					require.NoError(t, kind.do(c, prefix), "again")
				} else {
					require.NoError(t, err)
				}
				require.Contains(t, c.Branch(), kind.to)
				require.Equal(t, kind.keeps, len(c.Pending()) == 1)
				require.Equal(t, 4, s.nodes(chatID))
				return reached
			})
		})
	}
}

func testFailingOpen(t *testing.T, s *store) {
	eachFault(t, s, func(f *faulty, s *store, chatID, prefix string, at int, done bool) bool {
		talk(s, chatID, prefix).rewind(prefix + "a1")
		o := engine.Options{ChatID: chatID, UserID: "ada", Metadata: []byte(`{"k":1}`)}
		f.arm(at, done)
		e, err := engine.Open(background, f, o)
		reached, failed := f.disarm()
		if failed {
			require.ErrorIs(t, err, errFault)
			e, err = engine.Open(background, f, o)
		}
		require.NoError(t, err)
		require.Equal(t, "main-v2", e.Branch())
		got, err := e.Chat(background)
		require.NoError(t, err)
		require.JSONEq(t, `{"k":1}`, string(got.Metadata))
		return reached
	})
}

// contended is a store that calls before ahead of each of the first appends.
type contended struct {
	chat.Store
	before func()
	times  int
}

func (c *contended) Append(ctx context.Context, r chat.AppendRequest) (chat.Ref, error) {
	if c.times > 0 {
		c.times--
		c.before()
	}
	return c.Store.Append(ctx, r)
}

func testConflicts(t *testing.T, s *store) {
	rival := s.open("c")
	turn := 0
	busy := &contended{Store: s.Store, times: 3, before: func() { turn++; rival.save(user(fmt.Sprint("r", turn))) }}
	c := (&store{Store: busy, t: t}).open("c")
	c.save(user("q1"), assistant("a1"))
	require.Equal(t, []string{"r1", "r2", "r3", "q1", "a1"}, s.on("c", "main"))

	// Lazy messages are resolved again.
	busy.times, busy.before = 1, func() { rival.save(assistant("ra")) }
	d := s.open("d")
	d.save(user("dq"))
	rival, d = s.open("d"), (&store{Store: busy, t: t}).open("d")
	d.save(engine.LastAssistantMessage("fixed"))
	require.Equal(t, []string{"dq", "fixed"}, s.on("d", "main-v2"))
	require.Equal(t, []string{"dq", "ra"}, s.on("d", "main"))

	// Another process takes the name, several times.
	talk(s, "e", "e")
	n := 1
	busy.times, busy.before = 3, func() {
		n++
		_, err := s.CreateBranch(background, chat.Branch{ChatID: "e", Name: fmt.Sprint("main-v", n)})
		require.NoError(t, err)
	}
	e := (&store{Store: busy, t: t}).open("e")
	e.save(says("user", "eq2", "Q2"))
	require.Equal(t, "main-v5", e.Branch(), "the first name tried was refused, and two more")
	require.Equal(t, []string{"eq1", "ea1", "Q2"}, e.says())

	// A refusal without an explanation is returned, not retried forever.
	stuck := &refuses{Store: s.Store}
	f := (&store{Store: stuck, t: t}).open("f")
	f.set(user("fq"))
	for _, err := range []error{
		&chat.HeadError{BranchID: "b"}, chat.ErrHeadMoved, chat.ErrExists,
		&chat.Error{Subject: chat.SubjectMessage, ID: "fq", Err: chat.ErrExists},
		&chat.Error{Subject: chat.SubjectBranch, ID: "main", Err: chat.ErrExists},
	} {
		stuck.err = err
		_, got := f.Save(background)
		require.ErrorIs(t, got, err)
		require.Len(t, f.Pending(), 1)
	}
}

// refuses is a store whose appends fail.
type refuses struct {
	chat.Store
	err error
}

func (r *refuses) Append(context.Context, chat.AppendRequest) (chat.Ref, error) { return "", r.err }
