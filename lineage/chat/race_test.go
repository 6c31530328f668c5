package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A message that somebody else added after it was looked for is there: it is not
// taken for one of a deleted chat, whose id may be used again.
func TestAddedMeanwhile(t *testing.T) {
	ctx := context.Background()
	message := func(id, parent, says string) Message {
		data, err := json.Marshal(says)
		require.NoError(t, err)
		return Message{ID: id, ChatID: "c", ParentID: Ref(parent), Name: "user", Data: data, CreatedAt: 1}
	}
	var problems []error
	load := func(s *onStore) error {
		done, err := Load(ctx, s.store, Loading{
			Chat: Chat{ID: "c", UserID: "ada", CreatedAt: 1, UpdatedAt: 2}, Problem: func(err error) { problems = append(problems, err) },
			Messages: pairs([]Message{message("before", "root", "before"), message("m", "before", "mine"), message("after", "m", "after")}),
		})
		require.Equal(t, 3, done.Messages)
		return err
	}
	ways := map[string]func(s *onStore) error{
		"add": func(s *onStore) error { return s.AddMessage(ctx, message("m", "", "mine")) },
		"append": func(s *onStore) error {
			b, err := s.ActiveBranch(ctx, "c")
			require.NoError(t, err)
			_, err = s.Append(ctx, AppendRequest{ChatID: "c", BranchID: b.ID, ExpectedHead: b.HeadMessageID, Messages: []Message{message("m", "", "mine")}})
			return err
		},
		"load": load,
	}
	for name, add := range ways {
		for _, theirs := range []string{"mine", "theirs"} {
			t.Run(name+"/"+theirs, func(t *testing.T) {
				problems = nil
				other, engine, s := besideOthers(t)
				_, err := other.CreateChat(ctx, Chat{ID: "c", UserID: "ada"})
				require.NoError(t, err)
				require.NoError(t, other.AddMessage(ctx, message("root", "", "root")))
				engine.once(isKind[*structure.Span], func() { require.NoError(t, other.AddMessage(ctx, message("m", "", theirs))) })

				err = add(s)
				require.Nil(t, engine.before, "somebody else was faster")
				if name == "load" || name == "add" && theirs == "mine" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, ErrExists)
				}
				require.Empty(t, problems)

				graph, err := other.Graph(ctx, "c")
				require.NoError(t, err)
				want, says := []string{"root", "m"}, theirs
				if name == "load" { // it brings a new version, with its own parent
					want, says = append(want, "before", "after", "an earlier version"), "mine"
				}
				ids := []string{}
				for _, n := range graph.Nodes {
					if strings.Contains(n.ID, "/") {
						n.ID = "an earlier version"
					}
					ids = append(ids, n.ID)
				}
				require.ElementsMatch(t, want, ids)
				found, err := other.Message(ctx, "c", "m")
				require.NoError(t, err)
				require.JSONEq(t, `"`+says+`"`, string(found.Data))
			})
		}
	}
}

func pairs(messages []Message) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for m := range slices.Values(messages) {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// interrupted is an engine on which somebody else does something right before a commit.
type interrupted struct {
	backend.Engine
	before func(c *structure.Commit)
	tried  int
}

func (e *interrupted) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if e.tried++; e.tried > 100 {
		panic("it tries again without end")
	}
	if do := e.before; do != nil {
		do(c)
	}
	return e.Engine.Apply(ctx, c, o)
}

// once does something before the first commit that has a record of a kind.
func (e *interrupted) once(is func(structure.Record) bool, do func()) {
	e.before = func(c *structure.Commit) {
		if slices.ContainsFunc(c.Records, is) {
			e.before = nil
			do()
		}
	}
}

func isKind[R structure.Record](r structure.Record) bool {
	_, ok := r.(R)
	return ok
}

// besideOthers returns a chat store, and another on the same store that is interrupted.
func besideOthers(t *testing.T) (Store, *interrupted, *onStore) {
	store, err := lineage.Open(context.Background(), t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	e := &interrupted{Engine: write.Of(store).Engine()}
	return On(store), e, &onStore{state: latest(lineage.New(e))}
}

// said is a message of the chat "c" that says its id.
func said(id, parent string) Message {
	return Message{ID: id, ChatID: "c", ParentID: Ref(parent), Name: "user", Data: json.RawMessage(`"` + id + `"`), CreatedAt: 1}
}

// loadInto loads what is of the chat "c" and can be loaded.
func loadInto(t *testing.T, s *onStore, l Loading) error {
	l.Chat = Chat{ID: "c", UserID: "ada", CreatedAt: 1, UpdatedAt: 2}
	l.Problem = func(err error) { require.NoError(t, err) }
	_, err := Load(context.Background(), s.store, l)
	return err
}

// A loading moves nothing that others moved since it looked, and says so when there is
// nothing left to load into.
func TestLoadBesideOthers(t *testing.T) {
	ctx := context.Background()
	load := func(s *onStore, l Loading) error { return loadInto(t, s, l) }
	ids := func(t *testing.T, s Store) (ids []string) {
		for m, err := range s.Messages(ctx, "c") {
			require.NoError(t, err)
			ids = append(ids, m.ID)
		}
		return ids
	}

	t.Run("a branch that moves on", func(t *testing.T) {
		other, e, s := besideOthers(t)
		_, err := other.CreateChat(ctx, Chat{ID: "c", UserID: "ada"})
		require.NoError(t, err)
		b, err := other.ActiveBranch(ctx, "c")
		require.NoError(t, err)
		_, err = other.Append(ctx, AppendRequest{ChatID: "c", BranchID: b.ID, Messages: []Message{said("m1", "")}})
		require.NoError(t, err)
		e.once(isKind[*structure.Thread], func() {
			_, err := other.Append(ctx, AppendRequest{ChatID: "c", BranchID: b.ID, ExpectedHead: "m1", Messages: []Message{said("theirs", "m1")}})
			require.NoError(t, err)
		})
		require.NoError(t, load(s, Loading{
			Messages: pairs([]Message{said("m1", ""), said("m2", "m1")}), Branches: []Branch{{Name: "main", HeadMessageID: "m2", CreatedAt: 1}},
		}))
		require.Nil(t, e.before)
		moved := 0
		for r, err := range s.from.Reflog(ctx, lineage.SourceBranch(b.ID)) {
			require.NoError(t, err)
			require.Equal(t, "load", r.Reason)
			moved++
		}
		require.Equal(t, 1, moved, "what it moved away from is noted")
		require.Equal(t, []string{"m1", "m2"}, ids(t, other))
	})

	t.Run("a chat that is deleted", func(t *testing.T) {
		other, _, s := besideOthers(t)
		err := load(s, Loading{Messages: func(yield func(Message, error) bool) {
			if yield(said("m1", ""), nil) {
				deleted, err := other.DeleteChat(ctx, "c", DeleteOptions{})
				require.NoError(t, err)
				require.True(t, deleted)
			}
		}})
		require.ErrorIs(t, err, ErrNotFound)
		require.ErrorContains(t, err, `chat "c"`)
	})

	t.Run("a chat that somebody else makes", func(t *testing.T) {
		other, e, s := besideOthers(t)
		e.once(isKind[*structure.Thread], func() {
			_, err := other.CreateChat(ctx, Chat{ID: "c", UserID: "ada", Title: "theirs", UpdatedAt: 3})
			require.NoError(t, err)
		})
		require.NoError(t, load(s, Loading{Messages: pairs([]Message{said("m1", "")})}))
		c, err := other.Chat(ctx, "c")
		require.NoError(t, err)
		require.Equal(t, "theirs", c.Title)
		m, err := other.Message(ctx, "c", "m1")
		require.NoError(t, err)
		require.NotNil(t, m)
	})

	t.Run("after one that was interrupted", func(t *testing.T) {
		other, _, s := besideOthers(t)
		err := load(s, Loading{Messages: func(yield func(Message, error) bool) { yield(Message{}, context.Canceled) }})
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, load(s, Loading{Messages: pairs([]Message{said("m1", "")})}))
		b, err := other.ActiveBranch(ctx, "c")
		require.NoError(t, err)
		require.NotNil(t, b)
		require.Equal(t, MainBranch, b.Name)
	})

	t.Run("a checkpoint that others move", func(t *testing.T) {
		other, e, s := besideOthers(t)
		messages := []Message{said("m1", ""), said("m2", "m1")}
		at := func(id string, time int64) Loading {
			return Loading{Messages: pairs(messages), Checkpoints: []Checkpoint{{ID: "k", Name: "here", MessageID: id, CreatedAt: time}}}
		}
		require.NoError(t, load(s, at("m1", 5)))
		e.once(isKind[*structure.Checkpoint], func() {
			require.NoError(t, load(&onStore{state: latest(lineage.New(e.Engine))}, at("m2", 20)))
		})
		require.NoError(t, load(s, at("m1", 10)))
		require.Nil(t, e.before)
		k, err := other.Checkpoint(ctx, "c", "here")
		require.NoError(t, err)
		require.Equal(t, "m2", k.MessageID, "the one that was set last")
	})
}

// What was looked up in a chat is not used in another that was made with the same id
// when the chat was deleted.
func TestChatMadeAnewMeanwhile(t *testing.T) {
	ctx := context.Background()
	for name, way := range map[string]struct {
		with   func(structure.Record) bool // what its commit has
		change func(s *onStore) error
	}{
		"add":  {isKind[*structure.Run], func(s *onStore) error { return s.AddMessage(ctx, said("late", "m1")) }},
		"move": {isKind[*structure.Tip], func(s *onStore) error { return s.UpdateBranchHead(ctx, "c", "b", "m1") }},
		"load": {isKind[*structure.Run], func(s *onStore) error {
			return loadInto(t, s, Loading{Messages: pairs([]Message{said("late", "m1")})})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			other, e, s := besideOthers(t)
			begin := func(messages ...Message) {
				_, err := other.CreateChat(ctx, Chat{ID: "c", UserID: "ada"})
				require.NoError(t, err)
				_, err = other.CreateBranch(ctx, Branch{ID: "b", ChatID: "c", Name: "b"})
				require.NoError(t, err)
				for _, m := range messages {
					require.NoError(t, other.AddMessage(ctx, m))
				}
			}
			begin(said("m1", ""), said("m2", "m1"))
			e.once(way.with, func() {
				deleted, err := other.DeleteChat(ctx, "c", DeleteOptions{})
				require.NoError(t, err)
				require.True(t, deleted)
				begin()
			})
			require.ErrorIs(t, way.change(s), ErrNotFound)
			require.Nil(t, e.before)
			graph, err := other.Graph(ctx, "c")
			require.NoError(t, err)
			require.Empty(t, graph.Nodes, "nothing of the chat that is gone")
		})
	}
}

// wholeBlocks has whole bodies.
type wholeBlocks map[content.ID]*structure.Block

func (b wholeBlocks) Blocks(_ context.Context, ids []content.ID) (blocks []*structure.Block, err error) {
	for _, id := range ids {
		blocks = append(blocks, b[id])
	}
	return blocks, nil
}

func (wholeBlocks) Chunks(context.Context, []content.Key) ([][]byte, error) {
	return nil, errors.ErrUnsupported
}

// saidAs returns what a message is made of.
func saidAs(t *testing.T, m Message) *Said {
	t.Helper()
	from := make(wholeBlocks)
	head := structure.Usage{Kind: structure.MessageUsage, Role: m.Name, SourceID: m.ID, Lookup: 1, CreatedAt: time.UnixMilli(m.CreatedAt).UTC()}
	usages, err := write.Message(nil, head, content.TypeJSON, m.Data, func(mediaType string, kind content.OriginKind, body []byte) (content.ID, error) {
		b := structure.NewBlock(mediaType, content.BlockOrigin{Kind: kind}, head.CreatedAt, body)
		from[b.ID] = b
		return b.ID, nil
	})
	require.NoError(t, err)
	return &Said{Usages: usages, From: from}
}

// A large message whose body a collection takes before it is used is stored again.
func TestStoredAgainAfterCollection(t *testing.T) {
	ctx := context.Background()
	data, err := json.Marshal(strings.Repeat("a large message\n", 100_000))
	require.NoError(t, err)
	large := Message{ID: "m", ChatID: "c", Name: "user", Data: data, CreatedAt: 1}
	for name, add := range map[string]func(s *onStore, branch string) error{
		"add": func(s *onStore, _ string) error { return s.AddMessage(ctx, large) },
		"append": func(s *onStore, branch string) error {
			_, err := s.Append(ctx, AppendRequest{ChatID: "c", BranchID: branch, Messages: []Message{large}})
			return err
		},
		"load": func(s *onStore, _ string) error {
			return loadInto(t, s, Loading{Messages: pairs([]Message{large})})
		},
		"load as said": func(s *onStore, _ string) error {
			said := saidAs(t, large)
			return loadInto(t, s, Loading{
				Messages: pairs([]Message{large}), Said: func(context.Context, []Message) ([]*Said, error) { return []*Said{said}, nil },
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			other, e, s := besideOthers(t)
			_, err := other.CreateChat(ctx, Chat{ID: "c", UserID: "ada"})
			require.NoError(t, err)
			b, err := other.ActiveBranch(ctx, "c")
			require.NoError(t, err)
			e.once(isKind[*structure.Span], func() {
				report, err := lineage.New(e.Engine).Collect(ctx, lineage.CollectOptions{KeepUnused: -1})
				require.NoError(t, err)
				require.NotZero(t, report.Chunks)
			})
			require.NoError(t, add(s, b.ID))
			require.Nil(t, e.before)
			m, err := other.Message(ctx, "c", "m")
			require.NoError(t, err)
			require.Equal(t, string(data), string(m.Data))
		})
	}
}

// A thread whose active context is gone, which an import of contexts can bring about,
// can be changed, and be given a branch, which then is the active one.
func TestWithoutActiveContext(t *testing.T) {
	ctx := context.Background()
	title := "changed"
	for name, change := range map[string]func(s *onStore) error{
		"update": func(s *onStore) error { _, err := s.UpdateChat(ctx, "c", ChatUpdate{Title: &title}); return err },
		"branch": func(s *onStore) error { _, err := s.CreateBranch(ctx, Branch{ChatID: "c", Name: "new"}); return err },
		"active branch": func(s *onStore) error {
			_, err := s.CreateBranch(ctx, Branch{ChatID: "c", Name: "new", IsActive: true})
			return err
		},
		"append": func(s *onStore) error {
			_, err := s.Append(ctx, AppendRequest{ChatID: "c", NewBranch: &Branch{Name: "new"}, Messages: []Message{said("m", "")}})
			return err
		},
		"load": func(s *onStore) error {
			return loadInto(t, s, Loading{Branches: []Branch{{Name: "new"}}, Messages: pairs(nil)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			other, _, s := besideOthers(t)
			_, err := other.CreateChat(ctx, Chat{ID: "c", UserID: "ada"})
			require.NoError(t, err)
			thread, err := s.thread(ctx, "c")
			require.NoError(t, err)
			c := &structure.Context{ID: structure.NewID[structure.ContextID](), Thread: thread.ID, CreatedAt: now()}
			thread.Active = c.ID
			gone := &structure.Deletion{Subject: structure.KindContext, Context: c.ID, At: now()}
			for _, r := range [][]structure.Record{{c, thread}, {gone}} {
				_, err := write.Of(s.store).Engine().Apply(ctx, &structure.Commit{Records: r}, backend.Options{})
				require.NoError(t, err)
			}
			require.NoError(t, change(s))
			active, err := other.ActiveBranch(ctx, "c")
			require.NoError(t, err)
			if name == "update" {
				require.Nil(t, active)
			} else {
				require.Equal(t, "new", active.Name)
			}
			threadNow, err := s.store.FindThread(ctx, "c")
			require.NoError(t, err)
			require.NoError(t, threadNow.Update(ctx, func(i *lineage.ThreadInfo) error { i.Title = "again"; return nil }))
		})
	}
}

// What a chat says of itself counts if it was updated later than the chat here, to which
// something may have been added.
func TestLoadOlder(t *testing.T) {
	ctx := context.Background()
	store, _, s := besideOthers(t)
	_, err := store.CreateChat(ctx, Chat{ID: "c", UserID: "ada", Title: "here", CreatedAt: 1})
	require.NoError(t, err)
	made, err := store.Chat(ctx, "c")
	require.NoError(t, err)
	time.Sleep(20 * time.Millisecond)
	b, err := store.ActiveBranch(ctx, "c")
	require.NoError(t, err)
	_, err = store.Append(ctx, AppendRequest{ChatID: "c", BranchID: b.ID, Messages: []Message{said("m", "")}})
	require.NoError(t, err)
	now, err := store.Chat(ctx, "c")
	require.NoError(t, err)
	require.Greater(t, now.UpdatedAt, made.UpdatedAt+1)
	load := func(c Chat) Loaded {
		done, err := Load(ctx, s.store, Loading{Chat: c, Messages: pairs(nil), Problem: func(err error) { require.NoError(t, err) }})
		require.NoError(t, err)
		return done
	}
	require.False(t, load(*now).Changed, "it says what is here")
	older := *made
	older.Title, older.UpdatedAt = "older", made.UpdatedAt+1
	require.False(t, load(older).Changed)
	newer := *now
	newer.Title, newer.UpdatedAt = "newer", now.UpdatedAt+1
	require.True(t, load(newer).Changed)
	got, err := store.Chat(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, "newer", got.Title)
}

// A chat that somebody else may not delete is left as it is, and what was forked from it.
func TestDeletionRefused(t *testing.T) {
	ctx := context.Background()
	chats, _, s := besideOthers(t)
	_, err := chats.CreateChat(ctx, Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	thread, err := s.store.FindThread(ctx, "c")
	require.NoError(t, err)
	c, err := thread.Active(ctx)
	require.NoError(t, err)
	large, small := "large", "small"
	require.NoError(t, setOverrides(ctx, c, lineage.Overrides{Model: &large}))
	elsewhere, err := s.store.CreateThread(ctx, lineage.ThreadOptions{})
	require.NoError(t, err)
	heir, err := c.Fork(ctx, lineage.ForkOptions{Thread: elsewhere.ID()})
	require.NoError(t, err)
	deleted, err := chats.DeleteChat(ctx, "c", DeleteOptions{UserID: "eve"})
	require.NoError(t, err)
	require.False(t, deleted)
	require.NoError(t, setOverrides(ctx, c, lineage.Overrides{Model: &small}))
	o, err := heir.Effective(ctx)
	require.NoError(t, err)
	require.Equal(t, small, *o.Model)

	deleted, err = chats.DeleteChat(ctx, "c", DeleteOptions{UserID: "ada"})
	require.NoError(t, err)
	require.True(t, deleted)
	o, err = heir.Effective(ctx)
	require.NoError(t, err)
	require.Equal(t, small, *o.Model)
}

// Messages are added in few commits, also where they do not follow one another. A message that is
// given twice has two versions.
func TestLoadForks(t *testing.T) {
	ctx := context.Background()
	other, _, s := besideOthers(t)
	messages := []Message{said("root", "")}
	for i := range 100 {
		messages = append(messages, said(fmt.Sprint("a", i), "root"), said(fmt.Sprint("b", i), fmt.Sprint("a", i/2)))
	}
	again := said("a7", "root")
	again.Data = []byte(`"again"`)
	before, err := s.from.(backend.Engine).Head(ctx)
	require.NoError(t, err)
	require.NoError(t, loadInto(t, s, Loading{Messages: pairs(messages)}))
	after, err := s.from.(backend.Engine).Head(ctx)
	require.NoError(t, err)
	require.Equal(t, before.Number+3, after.Number, "the chat, its messages, and its branches")
	require.NoError(t, loadInto(t, s, Loading{Messages: pairs(append(messages, said("new", "b9"), said("new", "b9"), again))}))
	for id, parent := range map[string]Ref{"a99": "root", "b99": "a49", "a7": "root", "b15": "a7", "new": "b9"} {
		m, err := other.Message(ctx, "c", id)
		require.NoError(t, err)
		require.Equal(t, parent, m.ParentID, id)
		if id == "a7" {
			require.Equal(t, string(again.Data), string(m.Data))
		}
	}
}

// A loading that was interrupted goes on where it ended: what the chat says of itself
// still counts.
func TestLoadResumed(t *testing.T) {
	ctx := context.Background()
	for _, known := range []bool{false, true} {
		store, _, s := besideOthers(t)
		if known {
			_, err := store.CreateChat(ctx, Chat{ID: "c", UserID: "ada", Title: "old", CreatedAt: 1})
			require.NoError(t, err)
		}
		messages := make([]Message, 2*pageMessages)
		for i := range messages {
			messages[i] = said(fmt.Sprint("m", i), "")
			if i > 0 {
				messages[i].ParentID = Ref(messages[i-1].ID)
			}
		}
		later := time.Now().Add(time.Hour).UnixMilli()
		load := func(messages iter.Seq2[Message, error]) error {
			_, err := Load(ctx, s.store, Loading{
				Chat:     Chat{ID: "c", UserID: "ada", Title: "newer", CreatedAt: 1, UpdatedAt: later},
				Messages: messages, Branches: []Branch{{Name: "main"}, {Name: "side", HeadMessageID: "m1", IsActive: true}},
				Problem: func(err error) { require.NoError(t, err) },
			})
			return err
		}
		err := load(func(yield func(Message, error) bool) {
			for m, err := range pairs(messages) {
				if !yield(m, err) {
					return
				}
			}
			yield(Message{}, context.Canceled)
		})
		require.ErrorIs(t, err, context.Canceled)
		m, err := store.Message(ctx, "c", "m0")
		require.NoError(t, err)
		require.NotNil(t, m, "a part is there")
		for range 2 {
			require.NoError(t, load(pairs(messages)))
			c, err := store.Chat(ctx, "c")
			require.NoError(t, err)
			require.Equal(t, "newer", c.Title)
			b, err := store.ActiveBranch(ctx, "c")
			require.NoError(t, err)
			require.Equal(t, "side", b.Name)
		}
	}
}

func setOverrides(ctx context.Context, c *lineage.Context, o lineage.Overrides) error {
	return c.Update(ctx, func(info *lineage.ContextInfo) error { info.Overrides = o; return nil })
}
