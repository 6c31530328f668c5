package importer_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// branchyShapes returns conversations with n leaves each, by shape. The last node is the current
// one.
func branchyShapes(n int) map[string]*archive.Conversation {
	shapes := make(map[string]*archive.Conversation)
	shape := func(name string, nodes int, parent func(i int) int) *archive.Conversation {
		c := &archive.Conversation{SourceID: name}
		for i := range nodes {
			node := archive.Node{ID: strconv.Itoa(i), Role: "user", Body: []byte("message " + strconv.Itoa(i)), Root: i == 0}
			if i > 0 {
				node.Parent = strconv.Itoa(parent(i))
			}
			c.Nodes = append(c.Nodes, node)
		}
		shapes[name] = c
		return c
	}
	shape("star", n+1, func(int) int { return 0 })
	// Answers to a chain of questions: each answer is before or after the next question.
	shape("comb", 2*n, func(i int) int { return max(0, i-1-(i+1)%2) })
	shape("comb, answers last", 2*n, func(i int) int {
		if i < n {
			return i - 1
		}
		return 2*n - 1 - i
	})
	chains := shape("chains that grow side by side", 3*n+1, func(i int) int { return max(0, i-n) })
	backwards := *chains
	backwards.SourceID = "the same, current first"
	backwards.Current = "1"
	shapes[backwards.SourceID] = &backwards
	random := rand.New(rand.NewPCG(1, 2))
	shape("random", 2*n, func(i int) int { return i - 1 - random.IntN(min(i, 40)) })
	return shapes
}

// watched is an engine that records the largest commit and the number of deleted contexts.
type watched struct {
	backend.Engine
	largest, deleted int
}

func (d *watched) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	d.largest = max(d.largest, len(c.Records))
	for _, r := range c.Records {
		if deletion, ok := r.(*structure.Deletion); ok && deletion.Subject == structure.KindContext {
			d.deleted++
		}
	}
	return d.Engine.Apply(ctx, c, o)
}

// A branch costs the same in large and small conversations: the context that protects it becomes
// its context. No commit grows with the conversation.
func TestImportOfManyBranches(t *testing.T) {
	const few, many = 60, 1_500
	costs := make(map[string]float64)
	for _, n := range []int{few, many} {
		for name, c := range branchyShapes(n) {
			s := storetest.New(t)
			engine := backendtest.NewCounting(write.Of(s).Engine())
			watched := &watched{Engine: engine}
			each := float64(engine.Cost(func() { importMade(t, lineage.New(watched), []*archive.Conversation{c}) })) / float64(n)
			require.Less(t, watched.largest, 1_000, name)
			if n == few {
				requireImported(t, s, []*archive.Conversation{c})
				costs[name] = each
				continue
			}
			require.LessOrEqual(t, each, 1.5*costs[name], name)
			if name != "random" {
				require.Less(t, watched.deleted, n/100, name)
			}
			require.Less(t, watched.deleted, n/3, name)
		}
	}
}

// The history of the current message is a single run, or a run per part of a conversation in parts,
// for any order of messages.
func TestCurrentMessageIsAtTheEndOfOneRun(t *testing.T) {
	for name, c := range branchyShapes(200) {
		s := storetest.New(t)
		importMade(t, s, []*archive.Conversation{c})
		thread, err := s.FindThread(t.Context(), name)
		require.NoError(t, err, name)
		main, err := thread.BranchContext(t.Context(), lineage.MainBranch)
		require.NoError(t, err, name)
		tip, err := main.Tip(t.Context())
		require.NoError(t, err, name)
		runs := 0
		for at := tip; !at.IsZero(); runs++ {
			run, err := s.View().Run(t.Context(), at.Run)
			require.NoError(t, err, name)
			at = run.Parent
		}
		require.Equal(t, 1, runs, name)
		shuffled := *c
		shuffled.Nodes = slices.Clone(c.Nodes)
		require.Zero(t, importMade(t, s, []*archive.Conversation{&shuffled}).NewMessages, name)
	}
}
