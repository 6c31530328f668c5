package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/server/problem"
)

type importInput struct {
	Format string `json:"-" query:"format" doc:"read it as this format; default what it looks like"`
	User   string `json:"-" query:"user" doc:"the user of conversations for which the archive has none"`
	Prefix string `json:"-" query:"prefix" doc:"put this before the ids of conversations, to keep archives apart"`
}

func (a *API) importArchive(ctx context.Context, c *call, in *importInput) error {
	if err := c.refuseKey("what was imported is known when it comes again"); err != nil {
		return err
	}
	r, err := a.o.Import(ctx, ImportQuery{Archive: c.r.Body, Format: in.Format, User: in.User, Prefix: in.Prefix})
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, r)
}

// native sends the agent's session file of a thread, byte for byte.
func (a *API) native(ctx context.Context, c *call, in *ofThread) error {
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	for source, err := range follow.Sources(ctx, a.o.Store) {
		if errors.Is(err, lineage.ErrCorrupt) {
			continue // the file is of another session or cannot be read
		}
		if err != nil {
			return err
		}
		if info.SourceID == "" || source.Recorded.Session != info.SourceID {
			continue
		}
		if same, err := c.isOf(ctx, source, t); err != nil || !same {
			if err != nil {
				return err
			}
			continue
		}
		return c.attach("application/octet-stream", "session", func(w io.Writer) error { return source.Export(ctx, w) })
	}
	return problem.New(http.StatusNotFound, "not found", "no session file of this thread is kept: lineage follow keeps them, an import does not")
}

// isOf reports whether the first message of a session file is in a thread. An earlier thread may have had the same
// source id.
func (c *call) isOf(ctx context.Context, source *follow.Source, t *lineage.Thread) (bool, error) {
	thread, err := c.store.View().Thread(ctx, t.ID())
	if err != nil {
		return false, err
	}
	reach, err := backend.ReachOf(ctx, c.store.View(), thread)
	if err != nil {
		return false, err
	}
	lines, err := source.Spans(ctx)
	if errors.Is(err, lineage.ErrCorrupt) || errors.Is(err, lineage.ErrErased) {
		return false, nil // its owner is unknown
	}
	if err != nil {
		return false, err
	}
	for _, spans := range lines {
		if len(spans) > 0 {
			return reach.Has(spans[0]), nil
		}
	}
	return false, nil
}

type resumeInput struct {
	ofThread
	At     string `json:"at,omitempty" doc:"the position to continue from; default the tip of the active branch"`
	Agent  string `json:"agent,omitempty" doc:"the agent; default the one that the thread is of"`
	Dir    string `json:"dir,omitempty" doc:"the folder in which it continues; default that of the thread"`
	DryRun bool   `json:"dry_run,omitempty" doc:"write nothing"`
}

// resume creates a session of an agent on the machine of the server. It does not start the agent.
func (a *API) resume(ctx context.Context, c *call, in *resumeInput) error {
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return err
	}
	_, at, err := c.start(ctx, t, in.At)
	if err != nil {
		return err
	}
	if err := c.refuseKey("each makes a session of its own"); err != nil {
		return err
	}
	r, err := a.o.Resume(ctx, ResumeQuery{At: at, Thread: t.ID(), Agent: in.Agent, Dir: in.Dir, DryRun: in.DryRun})
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, r)
}

type ofUser struct {
	User string `json:"user,omitempty" path:"user" doc:"the user"`
}

// deleteUser deletes everything of a user.
func (a *API) deleteUser(ctx context.Context, c *call, in *ofUser) error {
	if scope := &c.caller.Scope; !scope.All() && (len(scope.Users) != 1 || scope.Users[0] != in.User || len(scope.Projects) > 0) {
		return notFound("user", in.User)
	}
	if err := c.refuseKey("a deletion that is repeated finds nothing"); err != nil {
		return err
	}
	done, err := a.o.Store.DeleteUser(ctx, in.User)
	if err != nil {
		return fmt.Errorf("user %.100q: %w", in.User, err)
	}
	return c.sendJSON(http.StatusOK, fmt.Appendf(nil, "{\"threads\":%d,\"messages\":%d,\"values\":%d}\n", done.Threads, done.Messages, done.Values))
}
