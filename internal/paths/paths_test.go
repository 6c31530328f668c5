// Package paths_test writes one history by every way into a store and reads it by every way
// out. It has no code of its own.
package paths_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/conversation"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

var bg = context.Background()

func open(t *testing.T, dir string) *lineage.Store {
	t.Helper()
	s, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	return s
}

// quoted returns a text as JSON.
func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// path is a way to write: in each of the threads a user says a text some times.
type path struct {
	name  string
	write writer
}

type writer func(t *testing.T, s *lineage.Store, threads []string, times int, text string)

func onThreads(item func(text string) lineage.Item) writer {
	return func(t *testing.T, s *lineage.Store, threads []string, times int, text string) {
		for _, id := range threads {
			thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: id})
			require.NoError(t, err)
			main, err := thread.Active(bg)
			require.NoError(t, err)
			for range times {
				_, err = main.Extend(bg, item(text))
				require.NoError(t, err)
			}
		}
	}
}

func uiMessage(id, text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"role":"user","parts":[{"type":"text","text":%s}]}`, id, quoted(text)))
}

func onChats(t *testing.T, chats chat.Store, threads []string, times int, text string) {
	for _, id := range threads {
		_, err := chats.CreateChat(bg, chat.Chat{ID: id, UserID: "u"})
		require.NoError(t, err)
		branch, err := chats.ActiveBranch(bg, id)
		require.NoError(t, err)
		var head chat.Ref
		for i := range times {
			message := fmt.Sprint(id, "-", i)
			head, err = chats.Append(bg, chat.AppendRequest{ChatID: id, BranchID: branch.ID, ExpectedHead: head, Messages: []chat.Message{
				{ID: message, ChatID: id, Name: "user", Type: chat.TypeMessage, Data: uiMessage(message, text)},
			}})
			require.NoError(t, err)
		}
	}
}

// lines imports an archive with a line for each thread.
func lines(message func(text string) string) writer {
	return func(t *testing.T, s *lineage.Store, threads []string, times int, text string) {
		var b bytes.Buffer
		for _, id := range threads {
			fmt.Fprintf(&b, `{"id":%q,"messages":[%s]}`+"\n", id, strings.Repeat(message(text)+",", times-1)+message(text))
		}
		report, err := importer.Import(bg, s, archive.Stream("", &b), importer.Options{Format: "openai"})
		require.NoError(t, err)
		require.Empty(t, report.Skipped)
		require.EqualValues(t, len(threads), report.Conversations)
	}
}

var paths = []path{
	{"thread", onThreads(lineage.User)},
	{"thread, chat completions", onThreads(func(text string) lineage.Item {
		return lineage.Item{Role: "user", Type: content.TypeJSON, Body: []byte(`{"role":"user","content":` + quoted(text) + `}`)}
	})},
	{"thread, blocks", onThreads(func(text string) lineage.Item {
		return lineage.Item{Role: "user", Type: content.TypeJSON, Body: []byte(`[{"type":"image","source":{"type":"url","url":"https://a/b"}},{"type":"text","text":` + quoted(text) + `}]`)}
	})},
	{"update", func(t *testing.T, s *lineage.Store, threads []string, times int, text string) {
		for _, id := range threads {
			require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
				thread, err := tx.CreateThread(bg, lineage.ThreadOptions{SourceID: id})
				if err != nil {
					return err
				}
				main, err := thread.Active(bg)
				for i := 0; err == nil && i < times; i++ {
					_, err = main.Extend(bg, lineage.User(text))
				}
				return err
			}))
		}
	}},
	{"chat", func(t *testing.T, s *lineage.Store, threads []string, times int, text string) {
		onChats(t, chat.On(s), threads, times, text)
	}},
	{"conversation", func(t *testing.T, s *lineage.Store, threads []string, times int, text string) {
		for _, id := range threads {
			c, err := conversation.Open(bg, s, id, conversation.Options{})
			require.NoError(t, err)
			for i := range times {
				fields := map[string]json.RawMessage{"n": json.RawMessage(fmt.Sprint(i))}
				require.NoError(t, c.AddMessage(bg, conversation.Message{Role: "user", Content: text, Fields: fields}))
			}
		}
	}},
	{"engine", func(t *testing.T, s *lineage.Store, threads []string, times int, text string) {
		for _, id := range threads {
			e, err := engine.Open(bg, chat.On(s), engine.Options{ChatID: id, UserID: "u"})
			require.NoError(t, err)
			for range times {
				require.NoError(t, e.Set(engine.User(text)))
				_, err = e.Save(bg)
				require.NoError(t, err)
			}
		}
	}},
	{"import of chat completions", lines(func(text string) string { return `{"role":"user","content":` + quoted(text) + `}` })},
	{"import of content lists", lines(func(text string) string {
		return `{"role":"user","content":[{"type":"text","text":` + quoted(text) + `},{"type":"image_url","image_url":{"url":"https://a/b"}}]}`
	})},
	{"import of a database", func(t *testing.T, s *lineage.Store, threads []string, times int, text string) {
		db, err := sqlite.Open(bg, filepath.Join(t.TempDir(), "chats.db"), sqladapter.Options{})
		require.NoError(t, err)
		defer db.Close()
		onChats(t, sqlchat.On(db), threads, times, text)
		report, err := importing.Run(bg, db, s, importing.Options{})
		require.NoError(t, err)
		require.Equal(t, len(threads), report.Chats)
	}},
	{"bundle", func(t *testing.T, s *lineage.Store, threads []string, times int, text string) {
		from := open(t, t.TempDir())
		defer from.Close()
		onChats(t, chat.On(from), threads, times, text)
		var b bytes.Buffer
		_, err := bundle.Write(bg, from, &b, bundle.WriteOptions{})
		require.NoError(t, err)
		_, err = bundle.Import(bg, s, &b, bundle.ImportOptions{})
		require.NoError(t, err)
	}},
}

// A text is kept once by whatever way it comes: the journal has it once, and little for each
// message.
func TestOneTextByEveryPath(t *testing.T) {
	for _, size := range []int{1 << 10, 8 << 10, 30 << 10, 60 << 10, 100 << 10} {
		n := 300
		if testing.Short() || size > 30<<10 {
			n = 60
		}
		text := strings.Repeat("A prompt of a fixed size. 012345", size/32)
		for _, p := range paths {
			t.Run(fmt.Sprintf("%d KiB/%s", size>>10, p.name), func(t *testing.T) {
				s := open(t, t.TempDir())
				defer s.Close()
				p.write(t, s, []string{"thread"}, n, text)
				found := 0
				for e, err := range s.Where(bg, content.Sum([]byte(text))) {
					require.NoError(t, err)
					require.Equal(t, "user", e.Role)
					found++
				}
				require.Equal(t, n, found)
				stats, err := s.Stats(bg)
				require.NoError(t, err)
				journal := stats.StoredBytes - stats.IndexBytes - stats.OtherBytes
				each := (float64(journal) - 1.1*float64(len(text))) / float64(n)
				t.Logf("%d bytes of journal for a text of %d: %.0f a message beside it", journal, len(text), each)
				require.LessOrEqual(t, each, 300.0)
			})
		}
	}
}

// What is written by each way is read alike by each way, before and after the store was opened
// again, packed, collected, and moved in a bundle.
func TestReadByEveryPath(t *testing.T) {
	threads := []string{"a", "b"}
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			p.write(t, s, threads, 2, "Hello, ‘everyone’ — <b>\n")
			want := told(t, s)
			require.Len(t, want, len(threads))
			for _, lines := range want {
				require.Len(t, lines, 2)
				require.Contains(t, lines[0], "Hello, ‘everyone’ — <b>")
			}
			again := func(step string) {
				require.Equal(t, want, told(t, s), step)
				for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
					require.NoError(t, err)
					n := 0
					for _, err := range thread.Contexts(bg) {
						require.NoError(t, err)
						n++
					}
					require.Equal(t, 1, n, step)
				}
			}
			again("written")
			require.NoError(t, s.Close())
			s = open(t, dir)
			again("opened again")
			_, err := s.Pack(bg, lineage.PackOptions{})
			require.NoError(t, err)
			again("packed")
			_, err = s.Collect(bg, lineage.CollectOptions{})
			require.NoError(t, err)
			again("collected")
			var b bytes.Buffer
			_, err = bundle.Write(bg, s, &b, bundle.WriteOptions{})
			require.NoError(t, err)
			require.NoError(t, s.Close())
			s = open(t, t.TempDir())
			_, err = bundle.Import(bg, s, &b, bundle.ImportOptions{})
			require.NoError(t, err)
			again("bundled")
			require.NoError(t, s.Close())
		})
	}
}

// told reads every thread by its context and as a chat, which must agree, and returns what was
// said.
func told(t *testing.T, s *lineage.Store) map[string][]string {
	all := make(map[string][]string)
	chats := chat.On(s)
	for found, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info, err := found.Info(bg)
		require.NoError(t, err)
		main, err := found.Active(bg)
		require.NoError(t, err)
		entries, err := main.All(bg)
		require.NoError(t, err)
		digest, err := main.Digest(bg)
		require.NoError(t, err)
		branch, err := chats.ActiveBranch(bg, info.SourceID)
		require.NoError(t, err)
		var chain []chat.Message
		for m, err := range chats.MessageChain(bg, info.SourceID, string(branch.HeadMessageID)) {
			require.NoError(t, err)
			chain = append(chain, m)
		}
		require.Len(t, chain, len(entries))
		for i, e := range entries {
			original, err := s.Original(bg, e)
			require.NoError(t, err)
			require.Equal(t, e.Role, chain[i].Name)
			require.Equal(t, e.CreatedAt.UnixMilli(), chain[i].CreatedAt)
			if e.Type == content.TypeJSON {
				require.Equal(t, string(original), string(chain[i].Data))
			}
			all[info.SourceID] = append(all[info.SourceID], fmt.Sprintf("%s %q %s %s %v", e.Role, e.Excerpt(), original, e.SourceID, digest))
		}
	}
	return all
}
