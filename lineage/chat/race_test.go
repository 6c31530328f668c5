package chat

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// overtaken is an engine on which somebody else does something right after an alias
// was found to be free.
type overtaken struct {
	backend.Engine
	alias structure.Alias
	meant func()
}

func (o *overtaken) Find(ctx context.Context, alias structure.Alias) (structure.SpanRef, error) {
	at, err := o.Engine.Find(ctx, alias)
	if alias == o.alias && o.meant != nil {
		do := o.meant
		o.meant = nil
		do()
	}
	return at, err
}

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
		l := Loading{
			Chat: Chat{ID: "c", UserID: "ada", CreatedAt: 1, UpdatedAt: 2}, Problem: func(err error) { problems = append(problems, err) },
			Messages: pairs([]Message{message("before", "root", "before"), message("m", "before", "mine"), message("after", "m", "after")}),
		}
		loading := &loading{from: &l, onStore: *s}
		err := loading.load(ctx)
		require.Equal(t, 3, loading.done.Messages)
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
				store, err := lineage.Open(ctx, t.TempDir(), &lineage.Options{Durability: lineage.Normal})
				require.NoError(t, err)
				defer store.Close()
				other := On(store)
				_, err = other.CreateChat(ctx, Chat{ID: "c", UserID: "ada"})
				require.NoError(t, err)
				require.NoError(t, other.AddMessage(ctx, message("root", "", "root")))
				engine := &overtaken{Engine: store.Engine(), alias: messageAlias("m")}
				engine.meant = func() { require.NoError(t, other.AddMessage(ctx, message("m", "", theirs))) }

				err = add(&onStore{store: store, engine: engine})
				require.Nil(t, engine.meant, "somebody else was faster")
				if name == "load" {
					require.NoError(t, err)
					require.Len(t, problems, 1)
					err = problems[0]
				}
				if name == "add" && theirs == "mine" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, ErrExists)
				}

				graph, err := other.Graph(ctx, "c")
				require.NoError(t, err)
				want := []string{"root", "m"}
				if name == "load" {
					want = append(want, "before", "after")
				}
				ids := []string{}
				for _, n := range graph.Nodes {
					ids = append(ids, n.ID)
				}
				require.ElementsMatch(t, want, ids)
				found, err := other.Message(ctx, "m")
				require.NoError(t, err)
				require.JSONEq(t, `"`+theirs+`"`, string(found.Data))
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
