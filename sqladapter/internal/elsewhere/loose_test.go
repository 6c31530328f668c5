package elsewhere_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// TestLoose uses tables of another program with columns that compare loosely, as in SQL Server:
// ignoring trailing spaces or case. An id that equals another one only loosely is not found, and
// creating it is an error that says why.
func TestLoose(t *testing.T) {
	documented, err := os.ReadFile(filepath.Join("..", "..", "sqlserver", "schema_documented.sql"))
	require.NoError(t, err)
	for collation, other := range map[string]string{"RTRIM": "sp1 ", "NOCASE": "SP1"} {
		t.Run(collation, func(t *testing.T) {
			ctx := context.Background()
			f := file(filepath.Join(t.TempDir(), "chats.db"))
			require.NoError(t, f.Exec(ctx, strings.ReplaceAll(translated(string(documented)), "NVARCHAR(255)", "NVARCHAR(255) COLLATE "+collation)))
			db, err := f.Open(ctx)
			require.NoError(t, err)
			defer db.Close()
			s := sqlchat.On(db)
			said := func(id string) chat.Message {
				return chat.Message{ID: id, ChatID: "sp1", Name: "user", Data: []byte(`"x"`)}
			}

			_, err = s.CreateChat(ctx, chat.Chat{ID: "sp1", UserID: "ada"})
			require.NoError(t, err)
			require.NoError(t, s.AddMessage(ctx, said("sp1")))
			_, err = s.CreateBranch(ctx, chat.Branch{ID: "sp1", ChatID: "sp1", Name: "sp1", HeadMessageID: "sp1"})
			require.NoError(t, err)
			_, err = s.CreateCheckpoint(ctx, chat.Checkpoint{ID: "sp1", ChatID: "sp1", Name: "sp1", MessageID: "sp1"})
			require.NoError(t, err)

			taken := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, chat.ErrExists)
				require.ErrorContains(t, err, "without case or spaces")
			}
			_, err = s.CreateChat(ctx, chat.Chat{ID: other, UserID: "ada"})
			taken(err)
			_, err = s.UpsertChat(ctx, chat.Chat{ID: other, UserID: "ada"})
			taken(err)
			taken(s.AddMessage(ctx, said(other)))
			_, err = s.Append(ctx, chat.AppendRequest{ChatID: "sp1", BranchID: "sp1", ExpectedHead: "sp1", Messages: []chat.Message{said(other)}})
			taken(err)
			_, err = s.CreateBranch(ctx, chat.Branch{ChatID: "sp1", Name: other})
			taken(err)
			_, err = s.CreateBranch(ctx, chat.Branch{ID: other, ChatID: "sp1", Name: "new"})
			taken(err)
			_, err = s.CreateCheckpoint(ctx, chat.Checkpoint{ChatID: "sp1", Name: other, MessageID: "sp1"})
			taken(err)

			c, err := s.Chat(ctx, other)
			require.NoError(t, err)
			require.Nil(t, c)
			m, err := s.Message(ctx, "sp1", other)
			require.NoError(t, err)
			require.Nil(t, m)
			b, err := s.Branch(ctx, "sp1", other)
			require.NoError(t, err)
			require.Nil(t, b)
			k, err := s.Checkpoint(ctx, "sp1", other)
			require.NoError(t, err)
			require.Nil(t, k)
			require.ErrorIs(t, s.AddMessage(ctx, chat.Message{ID: "new", ChatID: other, Name: "user", Data: []byte(`"x"`)}), chat.ErrNotFound)
			require.ErrorIs(t, s.AddMessage(ctx, chat.Message{ID: "new", ChatID: "sp1", ParentID: chat.Ref(other), Name: "user", Data: []byte(`"x"`)}), chat.ErrNotFound)
			_, err = s.UpdateChat(ctx, other, chat.ChatUpdate{Metadata: []byte(`{}`)})
			require.ErrorIs(t, err, chat.ErrNotFound)
			require.ErrorIs(t, s.UpdateBranchHead(ctx, "sp1", other, ""), chat.ErrNotFound)
			deleted, err := s.DeleteChat(ctx, other, chat.DeleteOptions{})
			require.NoError(t, err)
			require.False(t, deleted)
			require.NoError(t, s.DeleteCheckpoint(ctx, "sp1", other))
			k, err = s.Checkpoint(ctx, "sp1", "sp1")
			require.NoError(t, err)
			require.NotNil(t, k)
		})
	}
}
