package importer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage/archive"
)

// However large a conversation is, its messages share commits: one for each of them would cost too much.
func TestLargeConversationsHaveFewCommits(t *testing.T) {
	large := strings.Repeat("large ", 4<<20)
	conversation := func(id string, bodies ...string) *archive.Conversation {
		c := &archive.Conversation{SourceID: id}
		for i, body := range bodies {
			c.Nodes = append(c.Nodes, archive.Node{Role: "user", Body: []byte(body), ID: fmt.Sprint(id, "-", i)})
		}
		return c
	}
	var small []string
	for i := range 600 {
		small = append(small, fmt.Sprint("message ", i))
	}
	begun := conversation("parts", append([]string{large}, small[:300]...)...)
	begun.More = true
	rest := conversation("parts", append([]string{large + "too"}, small[300:]...)...)
	for i := range rest.Nodes {
		rest.Nodes[i].ID += "rest"
	}
	after := conversation("after", small...)
	for name, all := range map[string][]*archive.Conversation{
		"whole":    {conversation("whole", append([]string{large}, small...)...), after},
		"in parts": {begun, rest, after},
		"no id":    {conversation("", append([]string{large}, small...)...), after},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			importMade(t, s, all)
			head, err := s.View().Head(context.Background())
			require.NoError(t, err)
			require.Less(t, head.Number, uint64(15), "commits")
			requireNothingNew(t, s, all)
		})
	}
}

// Messages in a commit keep the text of their conversation in memory, so a commit has those of few large ones.
func TestLargeTextsAreReleased(t *testing.T) {
	var all []*archive.Conversation
	for i := range 6 {
		c := &archive.Conversation{SourceID: fmt.Sprint("c", i), Nodes: []archive.Node{{ID: fmt.Sprint("first", i), Role: "user", Body: []byte("first")}}}
		c.AddRest(20<<20, func(yield func(archive.Node) bool) {
			yield(archive.Node{ID: fmt.Sprint("last", i), Role: "user", Body: []byte("last")})
		})
		all = append(all, c)
	}
	s := storetest.New(t)
	importMade(t, s, all)
	head, err := s.View().Head(context.Background())
	require.NoError(t, err)
	require.GreaterOrEqual(t, head.Number, uint64(len(all)), "commits")
	requireNothingNew(t, s, all)
}
