package api

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/structure"
)

// counted counts what is read for the name and the length of a history.
type counted struct {
	backend.Engine
	threads, branches, contexts, runs int
}

func (c *counted) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	c.threads++
	return c.Engine.Thread(ctx, id)
}

func (c *counted) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	c.branches++
	return c.Engine.Branch(ctx, thread, name)
}

func (c *counted) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	c.contexts++
	return c.Engine.Context(ctx, id)
}

func (c *counted) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	c.runs++
	return c.Engine.Run(ctx, id)
}

func (c *counted) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	c.runs++
	return c.Engine.Ancestry(ctx, id, limit)
}

// TestReadsOfAppends counts what an append to a branch reads besides what the library reads.
func TestReadsOfAppends(t *testing.T) {
	engine := &counted{Engine: write.Of(lineagetest.New(t, lineage.Options{})).Engine()}
	h := openOf(t, lineage.New(engine))
	id := h.do("POST", "/v1/threads", `{"id":"t","user":"ada"}`).is(201)["id"].(string)
	for i, path := range []string{"=t", "=t", "=t", id} {
		*engine = counted{Engine: engine.Engine}
		added := h.do("POST", "/v1/threads/"+path+"/contexts/main/messages", `{"messages":[{"text":"more"}]}`).is(201)
		require.EqualValues(t, i+1, added["length"])
		if i > 0 { // the handle is kept
			require.Equal(t, counted{Engine: engine.Engine, branches: 1}, *engine)
		}
	}
	// Who may read a part of the store needs the thread.
	*engine = counted{Engine: engine.Engine}
	h.do("POST", "/v1/threads/"+id+"/contexts/main/messages", `{"messages":[{"text":"more"}]}`, "Caller: ada").is(201)
	require.Positive(t, engine.threads)
	h.do("POST", "/v1/threads/"+id+"/contexts/main/messages", `{"messages":[{"text":"more"}]}`, "Caller: bob").is(404)
}

// TestLengths appends through two servers of a store, which keep handles, between what moves, forks and replaces the branch: an
// append states the length that the history has.
func TestLengths(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		of := tb{t, r}
		store := lineagetest.New(of, lineage.Options{})
		servers := []*harness{openOf(of, store), openOf(of, store)}
		servers[0].do("POST", "/v1/threads", `{"id":"t"}`).is(201)
		const branches = "/v1/threads/=t/branches"
		servers[0].do("POST", branches, `{"name":"side","from":"main"}`).is(201)
		for n := range rapid.IntRange(1, 30).Draw(r, "steps") {
			h := servers[rapid.IntRange(0, 1).Draw(r, "server")]
			name := rapid.SampledFrom([]string{"main", "side"}).Draw(r, "branch")
			c := "/v1/threads/=t/contexts/" + name
			messages := h.do("GET", c+"/messages", nil).items()
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0:
				if len(messages) > 0 {
					h.do("POST", c+"/move", fmt.Sprintf(`{"to":":%d"}`, rapid.IntRange(1, len(messages)).Draw(r, "to"))).is(200)
				}
			case 1:
				h.do("DELETE", branches+"/side", nil)
				h.do("POST", branches, `{"name":"side","from":"main"}`).is(201)
			case 2:
				h.do("DELETE", branches+"/side", nil)
				h.do("POST", branches, `{"name":"side","empty":true}`).is(201)
			default:
				by := rapid.SampledFrom([]string{c, "/v1/contexts/" + h.do("GET", c, nil).is(200)["id"].(string)}).Draw(r, "by")
				more := rapid.IntRange(1, 3).Draw(r, "more")
				added := h.do("POST", by+"/messages", map[string]any{"messages": slices.Repeat([]map[string]string{{"text": fmt.Sprint(n)}}, more)}).is(201)
				require.EqualValues(r, len(messages)+more, added["length"])
				after := h.do("GET", c+"/messages", nil).items()
				require.Len(r, after, len(messages)+more)
				require.Equal(r, after[len(after)-1]["id"], added["tip"])
			}
		}
	})
}
