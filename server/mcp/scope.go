package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/structure"
)

// call is a request of a client, with the scope of the client.
type call struct {
	*Service
	scope access.Scope
}

// call starts a request.
func (s *Service) call(ctx context.Context, c *Client, session *mcp.ServerSession) (*call, error) {
	scope, err := c.Scope(ctx, session)
	if err != nil {
		return nil, err
	}
	return &call{Service: s, scope: scope}, nil
}

// allows reports whether a thread is in the scope.
func (c *call) allows(t *structure.Thread) bool {
	return c.scope.Allows(&lineage.ThreadInfo{UserID: t.UserID, Metadata: t.Metadata})
}

// names returns a resolver of names as they are meant in a thread, which may be nil. It knows nothing outside the scope.
func (c *call) names(t *lineage.Thread) *refs.Resolver {
	r := refs.New(c.o.Store, t)
	if c.scope.All() {
		return r
	}
	return r.Within(c.allows, func(ctx context.Context, id string) (*lineage.Thread, error) {
		return c.scope.FindThread(ctx, c.o.Store, id)
	})
}

// threads yields the threads in the scope that match a query.
func (c *call) threads(ctx context.Context, q lineage.ThreadQuery) iter.Seq2[*lineage.ListedThread, error] {
	if q.User == nil && len(c.scope.Users) == 1 {
		q.User = &c.scope.Users[0]
	}
	if len(c.scope.Projects) == 1 {
		value, _ := json.Marshal(c.scope.Projects[0]) // strings always marshal
		q.Metadata = append(q.Metadata, lineage.MetadataIs{Key: archive.KeyProject, Value: value})
	}
	return func(yield func(*lineage.ListedThread, error) bool) {
		for t, err := range c.o.Store.Threads(ctx, q) {
			if err == nil && !c.scope.Allows(&t.Was) {
				continue
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// thread returns a thread by name. For an empty name it returns the thread that changed last.
func (c *call) thread(ctx context.Context, name string) (*lineage.Thread, error) {
	if name != "" {
		return c.names(nil).Thread(ctx, name)
	}
	for t, err := range c.threads(ctx, lineage.ThreadQuery{}) {
		if err != nil {
			return nil, err
		}
		return t.Thread, nil
	}
	return nil, fmt.Errorf("conversation: %w: there is none in %s", lineage.ErrNotFound, c.scopeText())
}

// scopeText describes the scope.
func (c *call) scopeText() string {
	switch {
	case c.scope.All():
		return "the store"
	case len(c.scope.Projects) > 0:
		return named("the project", c.scope.Projects)
	}
	return named("the conversations of the user", c.scope.Users)
}

// named returns a noun, in the plural if there are several names, and the names in quotes.
func named(noun string, names []string) string {
	if len(names) > 1 {
		noun += "s"
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strconv.Quote(name)
	}
	return noun + " " + strings.Join(list, ", ")
}

// position is a position in the history of a thread.
type position struct {
	*refs.Ref
	names *refs.Resolver
	// home is the thread in which the name was looked up.
	home *lineage.Thread
}

// find looks up a position in a thread.
func (c *call) find(ctx context.Context, thread, at string) (*position, error) {
	t, err := c.thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	names := c.names(t)
	found, err := names.Find(ctx, at)
	if err != nil {
		return nil, err
	}
	if found.Thread != nil {
		t = found.Thread
	}
	return &position{Ref: found, names: names, home: t}, nil
}
