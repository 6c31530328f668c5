package main_test

import (
	"bytes"
	"context"
	"os"
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
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// What every path says: a question, an answer, and an edit of that.
const question, answer, edited = "why is that", "because it is", "because it was"

// answered is who gave the answer.
var answered = content.Attribution{UserID: "bob", ModelID: "large", SourceID: "https://example.com"}

func item(i lineage.Item, parent lineage.ContentID) lineage.Item {
	i.Origin = content.BlockOrigin{ParentID: parent}.By(answered)
	return i
}

func chatMessage(t *testing.T, id, role, text string) chat.Message {
	data, err := engine.UIMessage{ID: id, Role: role, Parts: []engine.Part{engine.TextPart(text)}}.Encode()
	require.NoError(t, err)
	return chat.Message{ID: id, Name: role, Type: chat.TypeMessage, Data: data}
}

func chatOrigin(from string) chat.Origin {
	return chat.Origin{UserID: answered.UserID, ModelID: answered.ModelID, SourceID: answered.SourceID, DerivedFrom: from}
}

// sayInContext says it through a context.
func sayInContext(t *testing.T, c *lineage.Context) {
	ctx := t.Context()
	spans, err := c.Extend(ctx, lineage.User(question), item(lineage.Assistant(answer), lineage.ContentID{}))
	require.NoError(t, err)
	_, err = c.Edit(ctx, spans[1], item(lineage.Assistant(edited), lineage.ContentID{}), lineage.EditOptions{})
	require.NoError(t, err)
}

// sayInChat says it through a chat store.
func sayInChat(t *testing.T, chats chat.Store) {
	ctx := t.Context()
	_, err := chats.CreateChat(ctx, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	main, err := chats.ActiveBranch(ctx, "c")
	require.NoError(t, err)
	first, second, third := chatMessage(t, "q", "user", question), chatMessage(t, "a", "assistant", answer), chatMessage(t, "e", "assistant", edited)
	second.Origin, third.Origin = chatOrigin(""), chatOrigin("a")
	_, err = chats.Append(ctx, chat.AppendRequest{ChatID: "c", BranchID: main.ID, Messages: []chat.Message{first, second}})
	require.NoError(t, err)
	third.ChatID, third.ParentID = "c", "q"
	require.NoError(t, chats.AddMessage(ctx, third))
}

// sayInEngine says it in turns.
func sayInEngine(t *testing.T, chats chat.Store) {
	ctx := t.Context()
	e, err := engine.Open(ctx, chats, engine.Options{ChatID: "c", UserID: "ada"})
	require.NoError(t, err)
	for _, text := range []string{answer, edited} {
		fragment := engine.AssistantText(text, "a")
		fragment.Origin = chatOrigin("")
		if text == answer {
			require.NoError(t, e.Set(engine.User(question)))
		}
		require.NoError(t, e.Set(fragment))
		_, err = e.Save(ctx)
		require.NoError(t, err)
	}
}

func sqlChats(t *testing.T) *sqladapter.DB {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "chats.db"), sqladapter.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// importInto brings what is in a database into a store.
func importInto(t *testing.T, db *sqladapter.DB, store *lineage.Store) {
	_, err := importing.Run(t.Context(), db, store, importing.Options{
		Problem: func(chatID string, err error) { require.NoError(t, err, chatID) },
	})
	require.NoError(t, err)
}

// TestOriginsOnEveryPath writes by each path, and carries it to another store by bundles and by a database.
// In each of the three stores it is known who said what, with which model, from which source
// and what it was made from.
func TestOriginsOnEveryPath(t *testing.T) {
	for name, write := range map[string]func(*testing.T, *lineage.Store){
		"context": func(t *testing.T, s *lineage.Store) {
			thread, err := s.CreateThread(t.Context(), lineage.ThreadOptions{SourceID: "c", UserID: "ada"})
			require.NoError(t, err)
			c, err := thread.Active(t.Context())
			require.NoError(t, err)
			sayInContext(t, c)
		},
		"transaction": func(t *testing.T, s *lineage.Store) {
			require.NoError(t, s.Update(t.Context(), func(ctx context.Context, tx *lineage.Tx) error {
				thread, err := tx.CreateThread(t.Context(), lineage.ThreadOptions{SourceID: "c", UserID: "ada"})
				if err != nil {
					return err
				}
				c, err := thread.Active(t.Context())
				if err == nil {
					sayInContext(t, c)
				}
				return err
			}))
		},
		"chat": func(t *testing.T, s *lineage.Store) { sayInChat(t, chat.On(s)) },
		"chat in SQL": func(t *testing.T, s *lineage.Store) {
			db := sqlChats(t)
			sayInChat(t, sqlchat.On(db))
			importInto(t, db, s)
		},
		"engine": func(t *testing.T, s *lineage.Store) { sayInEngine(t, chat.On(s)) },
		"engine in SQL": func(t *testing.T, s *lineage.Store) {
			db := sqlChats(t)
			sayInEngine(t, sqlchat.On(db))
			importInto(t, db, s)
		},
		"conversation": func(t *testing.T, s *lineage.Store) {
			c, err := conversation.Open(t.Context(), s, "c", conversation.Options{UserID: "ada"})
			require.NoError(t, err)
			for _, m := range []conversation.Message{
				{Role: "user", Content: question}, {Role: "assistant", Content: answer, By: answered},
				{Role: "assistant", Content: edited, By: answered, DerivedFrom: content.Sum([]byte(answer))},
			} {
				require.NoError(t, c.AddMessage(t.Context(), m))
			}
			messages, err := c.Messages(t.Context())
			require.NoError(t, err)
			require.Equal(t, answered, messages[2].By)
			require.Equal(t, content.Sum([]byte(answer)), messages[2].DerivedFrom)
			require.Zero(t, messages[0].By)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := lineagetest.New(t, lineage.Options{})
			write(t, store)
			parent := requireOrigins(t, store)

			var b bytes.Buffer
			_, err := bundle.Write(t.Context(), store, &b, bundle.WriteOptions{})
			require.NoError(t, err)
			carried := lineagetest.New(t, lineage.Options{})
			_, err = bundle.Import(t.Context(), carried, &b, bundle.ImportOptions{})
			require.NoError(t, err)
			require.Equal(t, parent, requireOrigins(t, carried))

			db, again := sqlChats(t), lineagetest.New(t, lineage.Options{})
			_, err = (&project.Projector{Store: store, DB: db}).Run(t.Context())
			require.NoError(t, err)
			for d, err := range project.Compare(t.Context(), db, store, project.CompareOptions{}) {
				require.NoError(t, err)
				require.Fail(t, d.String())
			}
			importInto(t, db, again)
			require.Equal(t, parent, requireOrigins(t, again))
		})
	}
}

// requireOrigins looks up who said what. It returns the content that the edit was made from,
// which is that of the answer unless a database has the answer in another form.
func requireOrigins(t *testing.T, s *lineage.Store) lineage.ContentID {
	t.Helper()
	found := make(map[string]*lineage.Entry)
	for thread, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
		require.NoError(t, err)
		for e, err := range thread.Spans(t.Context()) {
			require.NoError(t, err)
			for _, text := range []string{question, answer, edited} {
				if strings.Contains(e.Excerpt(), text) {
					found[text] = e
				}
			}
		}
	}
	require.Len(t, found, 3)
	author := func(text string) lineage.Origin {
		a, _, err := s.Author(t.Context(), found[text])
		require.NoError(t, err)
		return a
	}
	require.Equal(t, lineage.Origin{Kind: content.OriginUser, UserID: "ada"}, author(question), "it is the user of the thread who asked")
	require.Equal(t, content.BlockOrigin{Kind: content.OriginAssistant}.By(answered), author(answer))
	parent := author(edited).ParentID
	require.Equal(t, content.BlockOrigin{Kind: content.OriginAssistant, ParentID: parent}.By(answered), author(edited))
	if _, inForm := strings.CutPrefix(found[answer].Excerpt(), "{"); parent != content.Sum([]byte(answer)) || !inForm {
		require.Equal(t, found[answer].Content, parent)
	}
	byUser, byModel := make(map[string]int), make(map[string]int)
	for thread, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
		require.NoError(t, err)
		for e, err := range thread.Spans(t.Context()) {
			require.NoError(t, err)
			a, _, err := s.Author(t.Context(), e)
			require.NoError(t, err)
			byUser[a.UserID]++
			byModel[a.ModelID]++
		}
	}
	require.NotZero(t, byModel["large"])
	require.Equal(t, byModel["large"], byUser["bob"])
	require.Equal(t, 1, byUser["ada"])
	return parent
}

// TestOriginsOfAnArchive imports a log that states models: they count, and the user is the one
// that the import is for.
func TestOriginsOfAnArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"messages":[{"role":"user","content":"why"},{"role":"assistant","content":"because"}],"model":"large"}`+"\n"), 0o666))
	s := lineagetest.New(t, lineage.Options{})
	_, err := importer.Import(t.Context(), s, archive.Path(path), importer.Options{UserID: "ada"})
	require.NoError(t, err)
	for thread, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
		require.NoError(t, err)
		for e, err := range thread.Spans(t.Context()) {
			require.NoError(t, err)
			a, _, err := s.Author(t.Context(), e)
			require.NoError(t, err)
			require.Equal(t, "ada", a.UserID)
			if e.Role == "assistant" {
				require.Equal(t, "large", a.ModelID)
			}
		}
	}
}
