package sqltest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// Branching is a chat with a chain of messages, further branches at its middle, and a checkpoint.
type Branching struct {
	Config             Config
	Place              Database
	Chat               string
	Messages, Branches int
}

func (b Branching) middle() string { return fmt.Sprint(b.Chat, ".", b.Messages/2) }

// Make makes the chat.
func (b Branching) Make(t testing.TB) {
	db, err := b.Place.Open(background)
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	grow(t, s, b.Chat, b.Messages)
	for i := range b.Branches {
		_, err := s.CreateBranch(background, chat.Branch{ChatID: b.Chat, Name: fmt.Sprintf("main-v%d", i+2), HeadMessageID: chat.Ref(b.middle())})
		require.NoError(t, err)
	}
	_, err = s.CreateCheckpoint(background, chat.Checkpoint{ChatID: b.Chat, Name: "here", MessageID: b.middle()})
	require.NoError(t, err)
}

// Do does the operations of an engine that make branches, and lists the branches. It returns how many statements
// each took, and the names of the last three branches.
func (b Branching) Do(t testing.TB) (statements map[string]int, names []string) {
	traced := 0
	db, err := b.Config.OpenWith(background, b.Place, sqladapter.Options{Trace: func(string) { traced++ }})
	require.NoError(t, err)
	defer db.Close()
	e, err := engine.Open(background, sqlchat.On(db), engine.Options{ChatID: b.Chat, UserID: "ada"})
	require.NoError(t, err)
	statements = make(map[string]int)
	for _, o := range []struct {
		name   string
		length int
		do     func() (chat.BranchInfo, error)
	}{
		{"aside", b.Messages, func() (chat.BranchInfo, error) { return e.Aside(background) }},
		{"rewind", b.Messages/2 + 1, func() (chat.BranchInfo, error) { return e.Rewind(background, b.middle()) }},
		{"restore", b.Messages/2 + 1, func() (chat.BranchInfo, error) { return e.Restore(background, "here") }},
		{"branches", b.Messages, func() (chat.BranchInfo, error) {
			all, err := e.Branches(background)
			for _, b := range all[len(all)-3:] {
				names = append(names, b.Name)
			}
			return all[0], err
		}},
	} {
		before := traced
		info, err := o.do()
		require.NoError(t, err, o.name)
		require.Equal(t, o.length, info.MessageCount, o.name)
		statements[o.name] = traced - before
	}
	return statements, names
}

// testBranching creates branches in a short chat, and in one with many messages and branches. Both take the same number of
// statements.
//
// feature: storage/branching
func testBranching(t *testing.T, c Config) {
	short, long := Branching{c, c.New(t), "short", 10, 1}, Branching{c, c.New(t), "long", 1_200, 300}
	short.Make(t)
	long.Make(t)
	few, _ := short.Do(t)
	many, names := long.Do(t)
	for name, n := range few {
		// Beyond a hundred versions, the number of the next one is looked for.
		require.LessOrEqual(t, many[name], n+3, name)
	}
	require.Equal(t, []string{"main-v302", "main-v303", "main-v303-v2"}, names)
}
