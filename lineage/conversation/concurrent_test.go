package conversation_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/conversation"
)

const writers, rounds = 6, 10

// together runs the writers, every other one on another Conversation of one session.
func together(t *testing.T, s *lineage.Store, write func(c *conversation.Conversation, writer int)) *conversation.Conversation {
	t.Helper()
	both := [...]*conversation.Conversation{open(t, s), open(t, s)}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			write(both[w%2], w)
		}()
	}
	wg.Wait()
	return open(t, s)
}

func TestConcurrentOpenMakesOneThread(t *testing.T) {
	s := storetest.NewTicking(t)
	c := together(t, s, func(_ *conversation.Conversation, w int) {
		other, err := conversation.Open(bg, s, "other", conversation.Options{})
		if assert.NoError(t, err) {
			assert.NoError(t, other.AddMessage(bg, user(fmt.Sprint(w))))
		}
	})
	require.Empty(t, said(t, c))
	other, err := conversation.Open(bg, s, "other", conversation.Options{})
	require.NoError(t, err)
	require.Len(t, said(t, other), writers)
}

func TestConcurrentAdds(t *testing.T) {
	c := together(t, storetest.NewTicking(t), func(c *conversation.Conversation, w int) {
		for i := range rounds {
			assert.NoError(t, c.AddMessage(bg, user(fmt.Sprintf("%d/%02d", w, i))))
		}
	})
	all := said(t, c)
	require.Len(t, all, writers*rounds)
	for w := range writers {
		var own []string
		for _, text := range all {
			if strings.HasPrefix(text, fmt.Sprintf("%d/", w)) {
				own = append(own, text)
			}
		}
		require.Len(t, own, rounds)
		require.True(t, slices.IsSorted(own), "each writer's messages are in its order")
	}
}

// TestConcurrentChanges does everything at once. What nobody deletes must be there.
//
// feature: branches/one-manager
func TestConcurrentChanges(t *testing.T) {
	c := together(t, storetest.NewTicking(t), func(c *conversation.Conversation, w int) {
		for i := range rounds {
			name := fmt.Sprintf("%d/%02d", w, i)
			assert.NoError(t, c.AddMessage(bg, user(name)))
			_, err := c.CreateBranch(bg, "keep "+name, name, &conversation.From{Branch: "main"})
			assert.NoError(t, err)
			_, err = c.CreateBranch(bg, "drop "+name, name, nil)
			assert.NoError(t, err)
			assert.NoError(t, c.RenameBranch(bg, "keep "+name, "renamed "+name))
			if i%5 == 0 {
				_, err = c.Fork(bg, "Same name")
				assert.NoError(t, err)
			}
			_, err = c.Checkout(bg, "main")
			assert.NoError(t, err)
			_, err = c.Branches(bg)
			assert.NoError(t, err)
			_, err = c.Messages(bg)
			assert.NoError(t, err)
			assert.NoError(t, c.DeleteBranch(bg, "drop "+name))
		}
	})
	branches, err := c.Branches(bg)
	require.NoError(t, err)
	require.Len(t, branches, 1+writers*rounds+writers*rounds/5)
	found := make(map[string]bool)
	for _, b := range branches {
		if name, kept := strings.CutPrefix(b.ID, "keep "); kept {
			require.Equal(t, "renamed "+name, b.Name)
		}
		messages, err := c.MessagesOf(bg, b.ID)
		require.NoError(t, err)
		require.Len(t, messages, b.MessageCount)
		for _, m := range messages {
			found[m.Content] = true
		}
	}
	for w := range writers {
		for i := range rounds {
			require.True(t, found[fmt.Sprintf("%d/%02d", w, i)])
		}
	}
}

func TestConcurrentMergesAddNothingTwice(t *testing.T) {
	s := storetest.NewTicking(t)
	first := open(t, s)
	fork(t, first, "Idea")
	say(t, first, "a", "b", "c")
	checkout(t, first, "main")
	c := together(t, s, func(c *conversation.Conversation, _ int) {
		_, err := c.Merge(bg, "idea", conversation.Append)
		assert.NoError(t, err)
	})
	require.Equal(t, []string{"a", "b", "c"}, said(t, c))
}

// TestConcurrentDeletes deletes the current branch under those who add to it.
func TestConcurrentDeletes(t *testing.T) {
	together(t, storetest.NewTicking(t), func(c *conversation.Conversation, w int) {
		for i := range rounds {
			id := fmt.Sprintf("%d/%d", w, i)
			_, err := c.CreateBranch(bg, id, id, nil)
			assert.NoError(t, err)
			_, err = c.Checkout(bg, id)
			assert.NoError(t, err)
			assert.NoError(t, c.AddMessage(bg, user(id)))
			assert.NoError(t, c.SetMessages(bg, []conversation.Message{user(id)}))
			_, err = c.Messages(bg)
			assert.NoError(t, err)
			assert.NoError(t, c.DeleteBranch(bg, id))
		}
	})
}

// TestEventsOfManyGoroutines checks that the order heard is one in which the current
// branch goes from each event to the next.
//
// feature: branches/events-order
func TestEventsOfManyGoroutines(t *testing.T) {
	c := newConversation(t)
	var mu sync.Mutex
	var heard []conversation.Event
	c.On(func(e conversation.Event) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, e)
	})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range rounds {
				if i%2 == 0 {
					_, err := c.Fork(bg, fmt.Sprint("Fork ", w))
					assert.NoError(t, err)
				} else {
					_, err := c.Checkout(bg, "main")
					assert.NoError(t, err)
				}
			}
		}()
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, heard, writers*rounds*2)
	current := "main"
	for _, e := range heard {
		switch e.Kind {
		case conversation.BranchCreated:
			require.Equal(t, current, e.ParentID)
		case conversation.BranchForked:
			require.Equal(t, current, e.From)
		default:
			require.Equal(t, current, e.From)
			current = e.To
		}
	}
	require.Equal(t, current, currentID(t, c))
}
