package enginetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

// together runs a function n times concurrently and returns the errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = fn(i) })
	}
	all.Wait()
	return errs
}

func testTwoEngines(t *testing.T, s *store) {
	a, b := s.open("c"), s.open("c")
	a.set(user("q1"), assistant("a1"))
	b.set(user("q2"), assistant("a2"))
	a.save()
	b.save()
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, s.on("c", "main"), "the second turn follows the first")
	require.Equal(t, chat.Ref("a1"), a.Head(), "as last seen")
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, a.says())
	require.Equal(t, chat.Ref("a2"), a.Head())
	a.save(user("q3"))
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "q3"}, b.says())

	// One of them forks, the other does not.
	a.save(says("user", "q2", "Q2"))
	b.save(assistant("a3"))
	require.Equal(t, "main", b.Branch())
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "q3", "a3"}, s.on("c", "main"))
	require.Equal(t, []string{"q1", "a1", "Q2"}, s.on("c", "main-v2"))
	require.Equal(t, []string{"main", "main-v2*"}, s.names("c"))

	// Names depend on all existing branches.
	require.Equal(t, "main-v3", b.rewind("q1").Name)
	require.Equal(t, "main-v2-v2", a.rewind("q1").Name)

	// The head was moved to another branch.
	main, err := s.Branch(background, "c", "main")
	require.NoError(t, err)
	b.switchTo("main")
	require.NoError(t, s.UpdateBranchHead(background, "c", main.ID, "a1"))
	b.save(user("q4"))
	require.Equal(t, []string{"q1", "a1", "q4"}, s.on("c", "main"))
}

// testOneIDTwice lets two engines save the same message; it is saved once.
func testOneIDTwice(t *testing.T, s *store) {
	a, b := s.open("c"), s.open("c")
	a.set(user("q1"), assistant("a1"))
	b.set(user("q1"), assistant("b1"))
	a.save()
	b.save()
	require.Equal(t, []string{"q1", "a1", "b1"}, s.on("c", "main"))
	require.Equal(t, []string{"main*"}, s.names("c"))
	require.Equal(t, 3, s.nodes("c"))
}

// testManyEngines uses many engines on one branch. No turn may be lost or split.
func testManyEngines(t *testing.T, s *store) {
	const engines, turns = 6, 4
	s.open("c")
	for _, err := range together(engines, func(i int) error {
		e, err := engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "ada"})
		if err != nil {
			return err
		}
		for turn := range turns {
			if err := e.Set(user(fmt.Sprintf("q%d.%d", i, turn)), assistant(fmt.Sprintf("a%d.%d", i, turn))); err != nil {
				return err
			}
			if _, err := e.Save(background); err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	texts := s.on("c", "main")
	require.Len(t, texts, 2*engines*turns)
	next := make([]int, engines)
	for i := 0; i < len(texts); i += 2 {
		var by, turn int
		_, err := fmt.Sscanf(texts[i], "q%d.%d", &by, &turn)
		require.NoError(t, err)
		require.Equal(t, next[by], turn)
		require.Equal(t, "a"+texts[i][1:], texts[i+1])
		next[by]++
	}
	require.Equal(t, len(texts), s.nodes("c"), "nothing is left beside the branch")

	// All create a branch concurrently, in different ways.
	branches := make([]string, engines)
	for _, err := range together(engines, func(i int) error {
		e, err := engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "ada"})
		if err != nil {
			return err
		}
		var b chat.BranchInfo
		switch i % 3 {
		case 0:
			b, err = e.Aside(background)
		case 1:
			b, err = e.Rewind(background, texts[0])
		default:
			if err = e.Set(says("user", texts[0], "anew")); err == nil {
				_, err = e.Save(background)
			}
			b.Name = e.Branch()
		}
		branches[i] = b.Name
		return err
	}) {
		require.NoError(t, err)
	}
	require.Len(t, s.names("c"), engines+1)
	distinct := map[string]bool{}
	for _, name := range branches {
		distinct[name] = true
	}
	require.Len(t, distinct, engines)
	active := 0
	for _, name := range s.names("c") {
		if name[len(name)-1] == '*' {
			active++
		}
	}
	require.Equal(t, 1, active)
}

// testOneEngine uses one engine from many goroutines: messages set during a save are saved once.
func testOneEngine(t *testing.T, s *store) {
	const writers, turns = 6, 4
	c := s.open("c")
	for _, err := range together(writers, func(i int) error {
		for turn := range turns {
			if err := c.Set(user(fmt.Sprintf("m%d.%d", i, turn))); err != nil {
				return err
			}
			if _, err := c.Save(background); err != nil {
				return err
			}
			if _, err := c.Resolve(background, engine.ResolveOptions{}); err != nil {
				return err
			}
			c.Pending()
			c.Head()
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	require.Empty(t, c.Pending())
	texts := s.on("c", "main")
	require.Len(t, texts, writers*turns)
	distinct := map[string]bool{}
	for _, text := range texts {
		distinct[text] = true
	}
	require.Len(t, distinct, writers*turns)
}

// testMergingEngines merges members into the metadata of one chat concurrently. None may be lost.
func testMergingEngines(t *testing.T, s *store) {
	const engines, turns = 6, 5
	for _, err := range together(engines, func(i int) error {
		e, err := engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "ada", Metadata: fmt.Appendf(nil, `{"opened%d":true}`, i)})
		for turn := 0; turn < turns && err == nil; turn++ {
			_, err = e.UpdateChat(background, chat.ChatUpdate{Metadata: fmt.Appendf(nil, `{"k%d.%d":%d}`, i, turn, turn)})
		}
		return err
	}) {
		require.NoError(t, err)
	}
	got, err := s.Chat(background, "c")
	require.NoError(t, err)
	members := map[string]any{}
	require.NoError(t, json.Unmarshal(got.Metadata, &members))
	require.Len(t, members, engines*(turns+1))
}
