package mcp

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tools registers the tools that the client may call.
func (r *registry) tools() {
	if r.o.Search != nil {
		tool(r, "search", "Find messages and summaries by their words, the best first: in all conversations that you may read, or in one. Words are found in all their forms; \"several words\" is a phrase, word* a beginning; AND, OR and NOT combine them.", (*call).search)
	}
	tool(r, "threads", "List conversations, the one that changed last first.", (*call).listThreads)
	tool(r, "read", "Read a conversation: the latest messages that fit, or those from one position to another; with offset, one message in full.", (*call).read)
	tool(r, "tree", "Show the histories of a conversation: where it was forked, its branches and checkpoints.", (*call).tree)
	tool(r, "where", "List every message that holds the same content as a message: what was said in several conversations.", (*call).where)
	tool(r, "diff", "Compare two positions: the messages after those that both histories begin with.", (*call).diff)
	if r.o.Usage != nil {
		tool(r, "usage", "Report what conversations cost: tokens, requests and money. Each answer of a model counts once.", (*call).usage)
	}
	writing(r, "fork", "Create a branch or an unnamed context that continues from a position and shares its history.", (*call).fork)
	writing(r, "append", "Add a message to the end of a branch or context.", (*call).append)
	writing(r, "checkpoint", "Give a message a name. A checkpoint that has the name is moved.", (*call).checkpoint)
	writing(r, "return", "Append the result of a subagent's context to the context that it was made from.", (*call).return_)
	r.server.AddReceivingMiddleware(r.checkCalls)
}

// checkCalls refuses calls of tools with wrong arguments.
func (r *registry) checkCalls(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if c, ok := request.(*mcp.CallToolRequest); ok && c.Params != nil && r.checks[c.Params.Name] != nil {
			if err := r.checks[c.Params.Name](c.Params.Arguments); err != nil {
				result := &mcp.CallToolResult{}
				result.SetError(r.failure(ctx, c.Params.Name, err))
				return result, nil
			}
		}
		return next(ctx, method, request)
	}
}

func tool[In any](r *registry, name, description string, run func(*call, context.Context, *In) (*answer, error)) {
	no := false
	register(r, &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}}, run)
}

// writing registers a tool that changes the store, if the client may call it.
func writing[In any](r *registry, name, description string, run func(*call, context.Context, *In) (*answer, error)) {
	if !slices.Contains(r.client.Writes, name) {
		return
	}
	no := false
	register(r, &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}}, run)
}

func register[In any](r *registry, t *mcp.Tool, run func(*call, context.Context, *In) (*answer, error)) {
	s, client := r.Service, r.client
	r.checks[t.Name] = checkArguments[In]
	mcp.AddTool(r.server, t, func(ctx context.Context, request *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		result, err := guarded(s, t.Name, func() (*mcp.CallToolResult, error) {
			c, err := s.call(ctx, client, request.Session)
			if err != nil {
				return nil, err
			}
			a, err := run(c, ctx, &in)
			if err != nil {
				return nil, err
			}
			return a.result()
		})
		return result, nil, s.failure(ctx, t.Name, err)
	})
}
