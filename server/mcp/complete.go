package mcp

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

const (
	// maxCompletions is the number of values that the protocol allows in an answer.
	maxCompletions = 100
	// maxLooked limits the conversations that are examined for a completion.
	maxLooked = 5000
)

// complete completes the arguments of templates and prompts.
func (s *Service) complete(ctx context.Context, client *Client, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	result, err := guarded(s, "completion/complete", func() (*mcp.CompleteResult, error) {
		c, err := s.call(ctx, client, r.Session)
		if err != nil {
			return nil, err
		}
		given := map[string]string{}
		if r.Params.Context != nil {
			given = r.Params.Context.Arguments
		}
		argument := r.Params.Argument
		if err := checked(argument.Name, argument.Value, given["thread"]); err != nil {
			return nil, err
		}
		var values []string
		switch argument.Name {
		case "thread":
			values, err = c.completeThread(ctx, argument.Value)
		case "position", "a", "b":
			values, err = c.completePosition(ctx, given["thread"], argument.Value)
		case "name":
			values, err = c.completeDocument(ctx, given["thread"], argument.Value)
		}
		if err != nil {
			return nil, err
		}
		details := mcp.CompletionResultDetails{Values: values[:min(len(values), maxCompletions)], Total: len(values), HasMore: len(values) > maxCompletions}
		if details.Values == nil {
			details.Values = []string{}
		}
		return &mcp.CompleteResult{Completion: details}, nil
	})
	return result, s.failure(ctx, "completion/complete", err)
}

// completeThread returns the ids of conversations whose id, or title, begins with a text.
func (c *call) completeThread(ctx context.Context, text string) (ids []string, err error) {
	text = strings.ToLower(text)
	looked := 0
	for t, err := range c.threads(ctx, lineage.ThreadQuery{}) {
		if err != nil {
			return nil, err
		}
		if looked++; looked > maxLooked || len(ids) > maxCompletions {
			break
		}
		id := refs.Short(t.ID())
		if strings.HasPrefix(id, text) || strings.HasPrefix(strings.ToLower(plain.Line(t.Was.Title)), text) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// completePosition returns the names of branches and checkpoints of a conversation that start with a text.
func (c *call) completePosition(ctx context.Context, thread, text string) ([]string, error) {
	t, err := c.thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	names, err := c.names(t).Names(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, text) || plain.Text(name) != name }), err
}

// completeDocument returns the names of documents on the active branch that start with a text.
func (c *call) completeDocument(ctx context.Context, thread, text string) (names []string, err error) {
	t, err := c.thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	active, err := t.Active(ctx)
	if err != nil {
		return nil, err
	}
	all, err := active.Revisions(ctx, "")
	for _, r := range all {
		if name := r.Document; strings.HasPrefix(name, text) && plain.Text(name) == name && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, err
}
