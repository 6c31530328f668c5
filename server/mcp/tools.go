package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

// tools registers the tools that the client may call.
func (r *registry) tools() {
	if r.o.Search != nil {
		tool(r, "search", "Find messages and summaries by their words, the best first: in all conversations that you may read, or in one. Words are found in all their forms; \"several words\" is a phrase, word* a beginning; AND, OR and NOT combine them.", (*call).search)
	}
	tool(r, "threads", "List conversations, the one that changed last first.", (*call).listThreads)
	tool(r, "read", "Read a conversation: the latest messages that fit, or those from one position to another; with offset, one message in full.", (*call).read)
	tool(r, "tree", "Show the histories of a conversation: where it was forked, its branches and checkpoints.", (*call).tree)
	tool(r, "where", "List every message that holds the same content as a message: what was said in several conversations.", (*call).where_)
	tool(r, "diff", "Compare two positions: the messages after those that both histories begin with.", (*call).diff)
	if r.o.Usage != nil {
		tool(r, "usage", "Report what conversations cost: tokens, requests and money. Each answer of a model counts once.", (*call).usage)
	}
	writing(r, "fork", "Create a branch or an unnamed context that continues from a position and shares its history.", (*call).fork)
	writing(r, "append", "Add a message to the end of a branch or context.", (*call).append)
	writing(r, "checkpoint", "Give a message a name. A checkpoint that has the name is moved.", (*call).checkpoint)
	writing(r, "return", "Append the result of a subagent's context to the context that it was made from.", (*call).return_)
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

// guarded runs a function for a client. A panic fails only this call.
func guarded[T any](s *Service, what string, run func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Logger.Error("panic", "tool", what, "panic", p, "stack", string(debug.Stack()))
			err = errInside
		}
	}()
	return run()
}

// errInside is what a client gets for errors that it can do nothing about.
var errInside = errors.New("the store could not answer; the log of the server says why")

// said are the errors whose text tells a client what is wrong with its request.
var said = []error{
	lineage.ErrNotFound, lineage.ErrInvalid, lineage.ErrExists, lineage.ErrConflict, lineage.ErrErased, lineage.ErrTooLarge, lineage.ErrReadOnly,
	lineage.ErrOtherUser, lineage.ErrProtected, refs.ErrAmbiguous, ErrNoProject, context.Canceled, context.DeadlineExceeded, errInside,
}

// failure returns an error in the form that a client gets.
func (s *Service) failure(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if !slices.ContainsFunc(said, func(is error) bool { return errors.Is(err, is) }) {
		s.o.Logger.Error("failed", "tool", what, "err", err)
		return errInside
	}
	text := plain.Line(err.Error())
	if hint := hintOf(err); hint != "" {
		text += "\nhint: " + plain.Line(hint)
	}
	return errors.New(text)
}

// hintOf returns what a client can do about an error with these tools, empty for nothing.
func hintOf(err error) string {
	var unknown *refs.UnknownError
	var ambiguous *refs.AmbiguousError
	var step *refs.StepError
	var kind *refs.KindError
	var name *refs.NameError
	switch {
	case errors.As(err, &unknown) && len(unknown.Near) > 0:
		return unknown.Hint()
	case errors.As(err, &unknown) && unknown.Kind == "thread":
		return "the tool threads lists the conversations"
	case errors.As(err, &unknown):
		return "the tool tree lists the branches, checkpoints and messages of a conversation"
	case errors.As(err, &ambiguous):
		return ambiguous.Hint()
	case errors.As(err, &name):
		return name.Hint()
	case errors.As(err, &step):
		return "the tool read shows the history with its positions"
	case errors.As(err, &kind):
		return "a fork of the position is a context"
	}
	return ""
}

// maxText limits a text argument of a client, in bytes.
const maxText = 4 << 10

// checked returns an error if an argument is too long.
func checked(args ...string) error {
	for _, arg := range args {
		if len(arg) > maxText {
			return fmt.Errorf("an argument of %d bytes: %w: at most %d", len(arg), lineage.ErrTooLarge, maxText)
		}
	}
	return nil
}

// moment parses a time: a day, or a time in RFC 3339. An empty text is the zero time.
func moment(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %.40q: %w: must be like 2026-01-31, or as in RFC 3339", name, text, lineage.ErrInvalid)
}
