package paths_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
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

// sameMessage is a message of a conversation whose texts others have too.
type sameMessage struct {
	role, text string
	at         time.Time
}

// sameTexts returns conversations that have the same texts at different times.
func sameTexts(conversations, messages int) (all [][]sameMessage) {
	at := time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC)
	for range conversations {
		var one []sameMessage
		for i := range messages {
			at = at.Add(time.Duration(1000+(i*i*7919)%90_000) * time.Millisecond)
			one = append(one, sameMessage{[]string{"user", "assistant"}[i%2], fmt.Sprintf("The text number %d that every conversation has.", i), at})
		}
		all = append(all, one)
	}
	return all
}

// TestStructureOfManyConversations imports as many conversations as an archive of a busy service has: ten
// thousand, of a hundred messages each, with the same texts at times that do not repeat.
func TestStructureOfManyConversations(t *testing.T) {
	campaign.Long(t)
	const conversations, messages = 10_000, 100
	rng := rand.New(rand.NewPCG(1, 2))
	read, write := io.Pipe()
	go func() {
		out := bufio.NewWriter(write)
		at := int64(1_740_819_600)
		for k := range conversations {
			fmt.Fprintf(out, `{"id":"%d","messages":[`, k)
			for i := range messages {
				at += 1 + rng.Int64N(90)
				fmt.Fprintf(out, `{"role":%q,"content":"The text number %d that every conversation has.","created_at":%d}`, []string{"user", "assistant"}[i%2], i, at)
				if i+1 < messages {
					out.WriteByte(',')
				}
			}
			out.WriteString("]}\n")
		}
		write.CloseWithError(out.Flush())
	}()
	dir := t.TempDir()
	s := open(t, dir)
	report, err := importer.Import(bg, s, archive.Stream("", read), importer.Options{Format: "openai"})
	require.NoError(t, err)
	require.EqualValues(t, conversations*messages, report.NewMessages)
	require.NoError(t, s.Close())
	each := float64(journalSize(t, dir)) / (conversations * messages)
	s = open(t, dir)
	_, err = s.Pack(bg, lineage.PackOptions{All: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	packed := float64(journalSize(t, dir)) / (conversations * messages)
	t.Logf("%.1f bytes a message, %.1f packed", each, packed)
	require.LessOrEqual(t, each, 60.0)
	require.LessOrEqual(t, packed, 8.0)
}

// spelling is a way in which clients write a message, plain text if it writes nothing. Own is
// how many bytes of ids, times and names are in it.
type spelling struct {
	name  string
	own   int
	write func(m sameMessage) string
}

var spellings = []spelling{
	{"plain text", 0, nil},
	{"chat completions", 0, func(m sameMessage) string { return fmt.Sprintf(`{"role":%q,"content":%s}`, m.role, quoted(m.text)) }},
	{"content list", 0, func(m sameMessage) string {
		return fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%s}]}`, m.role, quoted(m.text))
	}},
	{"Responses item", 0, func(m sameMessage) string {
		return fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":"input_text","text":%s}]}`, m.role, quoted(m.text))
	}},
	{"UI message", 13, func(m sameMessage) string {
		return fmt.Sprintf(`{"role":%q,"parts":[{"type":"text","text":%s,"state":"done"}],"metadata":{"createdAt":%d}}`, m.role, quoted(m.text), m.at.UnixMilli())
	}},
	{"tool call", 5, func(m sameMessage) string {
		return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":%s}}]}`, quoted(m.text))
	}},
	{"with its time", 10, func(m sameMessage) string {
		return fmt.Sprintf(`{"role":%q,"content":%s,"created_at":%d}`, m.role, quoted(m.text), m.at.Unix())
	}},
}

func (sp *spelling) item(m sameMessage) lineage.Item {
	if sp.write == nil {
		return lineage.Item{Role: m.role, Body: []byte(m.text), CreatedAt: m.at}
	}
	return lineage.Item{Role: m.role, Type: content.TypeJSON, Body: []byte(sp.write(m)), CreatedAt: m.at}
}

func (sp *spelling) items(all []sameMessage) (items []lineage.Item) {
	for _, m := range all {
		items = append(items, sp.item(m))
	}
	return items
}

func (sp *spelling) json(m sameMessage) json.RawMessage {
	if sp.write == nil {
		return json.RawMessage(quoted(m.text))
	}
	return json.RawMessage(sp.write(m))
}

// manyPath is a way to write many conversations. Own is how many bytes an id of a message has.
type manyPath struct {
	name  string
	own   int
	write func(t *testing.T, s *lineage.Store, all [][]sameMessage, sp *spelling)
}

func chatsOf(t *testing.T, chats chat.Store, all [][]sameMessage, sp *spelling) {
	for k, messages := range all {
		id := fmt.Sprint("chat-", k)
		_, err := chats.CreateChat(bg, chat.Chat{ID: id, UserID: "u"})
		require.NoError(t, err)
		branch, err := chats.ActiveBranch(bg, id)
		require.NoError(t, err)
		request := chat.AppendRequest{ChatID: id, BranchID: branch.ID}
		for i, m := range messages {
			request.Messages = append(request.Messages, chat.Message{
				ID: fmt.Sprint(k, "-", i), ChatID: id, Name: m.role, Type: chat.TypeMessage, Data: sp.json(m), CreatedAt: m.at.UnixMilli(),
			})
		}
		_, err = chats.Append(bg, request)
		require.NoError(t, err)
	}
}

// oneByOne makes a commit for each message, which has a frame and names its run and context.
const oneByOne = "extend one by one"

var manyPaths = []manyPath{
	{oneByOne, 0, func(t *testing.T, s *lineage.Store, all [][]sameMessage, sp *spelling) {
		for _, messages := range all {
			thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
			require.NoError(t, err)
			main, err := thread.Active(bg)
			require.NoError(t, err)
			for _, item := range sp.items(messages) {
				_, err = main.Extend(bg, item)
				require.NoError(t, err)
			}
		}
	}},
	{"extend", 0, func(t *testing.T, s *lineage.Store, all [][]sameMessage, sp *spelling) {
		for _, messages := range all {
			thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
			require.NoError(t, err)
			main, err := thread.Active(bg)
			require.NoError(t, err)
			_, err = main.Extend(bg, sp.items(messages)...)
			require.NoError(t, err)
		}
	}},
	{"update", 0, func(t *testing.T, s *lineage.Store, all [][]sameMessage, sp *spelling) {
		require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
			for _, messages := range all {
				thread, err := tx.CreateThread(bg, lineage.ThreadOptions{})
				if err != nil {
					return err
				}
				main, err := thread.Active(bg)
				if err == nil {
					_, err = main.Extend(bg, sp.items(messages)...)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}},
	{"chat", 5, func(t *testing.T, s *lineage.Store, all [][]sameMessage, sp *spelling) {
		chatsOf(t, chat.On(s), all, sp)
	}},
	{"conversation", 0, func(t *testing.T, s *lineage.Store, all [][]sameMessage, sp *spelling) {
		for k, messages := range all {
			c, err := conversation.Open(bg, s, fmt.Sprint("chat-", k), conversation.Options{})
			require.NoError(t, err)
			var list []conversation.Message
			for _, m := range messages {
				one := conversation.Message{Role: m.role, Content: m.text}
				if sp.write != nil {
					require.NoError(t, json.Unmarshal(sp.json(m), &one.Fields))
					delete(one.Fields, "role")
					if one.Content = ""; one.Fields["content"] != nil && one.Fields["content"][0] == '"' {
						delete(one.Fields, "content")
						one.Content = m.text
					}
				}
				list = append(list, one)
			}
			require.NoError(t, c.SetMessages(bg, list))
		}
	}},
	{"engine", 36, func(t *testing.T, s *lineage.Store, all [][]sameMessage, _ *spelling) {
		for k, messages := range all {
			e, err := engine.Open(bg, chat.On(s), engine.Options{ChatID: fmt.Sprint("chat-", k), UserID: "u"})
			require.NoError(t, err)
			for _, m := range messages {
				require.NoError(t, e.Set(engine.User(m.text)))
			}
			_, err = e.Save(bg)
			require.NoError(t, err)
		}
	}},
	{"import", 0, func(t *testing.T, s *lineage.Store, all [][]sameMessage, sp *spelling) {
		var b bytes.Buffer
		for k, messages := range all {
			var list []string
			for _, m := range messages {
				if sp.write == nil {
					list = append(list, spellings[1].write(m))
				} else {
					list = append(list, sp.write(m))
				}
			}
			fmt.Fprintf(&b, `{"id":"%d","created_at":%d,"messages":[%s]}`+"\n", k, messages[0].at.Unix(), strings.Join(list, ","))
		}
		report, err := importer.Import(bg, s, archive.Stream("", &b), importer.Options{Format: "openai"})
		require.NoError(t, err)
		require.Empty(t, report.Skipped)
	}},
	{"database", 5, func(t *testing.T, s *lineage.Store, all [][]sameMessage, sp *spelling) {
		db, err := sqlite.Open(bg, filepath.Join(t.TempDir(), "chats.db"), sqladapter.Options{})
		require.NoError(t, err)
		defer db.Close()
		chatsOf(t, sqlchat.On(db), all, sp)
		_, err = importing.Run(bg, db, s, importing.Options{})
		require.NoError(t, err)
	}},
	{"bundle", 5, func(t *testing.T, s *lineage.Store, all [][]sameMessage, sp *spelling) {
		from := open(t, t.TempDir())
		defer from.Close()
		chatsOf(t, chat.On(from), all, sp)
		var b bytes.Buffer
		_, err := bundle.Write(bg, from, &b, bundle.WriteOptions{})
		require.NoError(t, err)
		_, err = bundle.Import(bg, s, &b, bundle.ImportOptions{})
		require.NoError(t, err)
	}},
}

func journalSize(t *testing.T, dir string) (n int) {
	files, err := os.ReadDir(filepath.Join(dir, "journal"))
	require.NoError(t, err)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		n += int(info.Size())
	}
	return n
}

// Conversations that have the same texts at different times take little beside what differs,
// whichever way they come and however their messages are spelled.
func TestStructureOfEqualTexts(t *testing.T) {
	all := sameTexts(20, 100)
	n, text := len(all)*len(all[0]), 0
	for _, m := range all[0] {
		text += len(m.text)
	}
	for k, p := range manyPaths {
		for i := range spellings {
			sp := &spellings[i]
			if p.name == "engine" && sp.write != nil || !campaign.Runs() && (i+k)%3 != 0 { // each way and each spelling all the same
				continue
			}
			t.Run(p.name+"/"+sp.name, func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir)
				p.write(t, s, all, sp)
				require.NoError(t, s.Close())
				each := float64(journalSize(t, dir)-text) / float64(n)
				s = open(t, dir)
				_, err := s.Pack(bg, lineage.PackOptions{All: true})
				require.NoError(t, err)
				require.NoError(t, s.Close())
				packed := float64(journalSize(t, dir)) / float64(n)
				t.Logf("%.1f bytes a message, %.1f packed", each, packed)
				most := 60
				if p.name == oneByOne {
					most = 144
				}
				require.LessOrEqual(t, each, float64(most+sp.own+p.own))
				most = 8
				if p.name == "engine" {
					most += 16 // of each id, which are random
				}
				require.LessOrEqual(t, packed, float64(most))
			})
		}
	}
}
