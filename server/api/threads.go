package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/problem"
)

// firstThread and lastThread are before and after all threads of the same time.
var (
	firstThread = lineage.ThreadID{len(lineage.ThreadID{}) - 1: 1}
	lastThread  = lineage.ThreadID(bytes.Repeat([]byte{0xff}, len(lineage.ThreadID{})))
)

func (a *API) getThread(ctx context.Context, c *call, in *ofThread) (*records.Thread, error) {
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	return c.threadRecord(ctx, t)
}

// mayHave refuses to create a thread that the caller could not read.
func (w *within) mayHave(t *lineage.ThreadInfo) error {
	if !w.caller.Scope.Allows(t) {
		return problem.New(http.StatusForbidden, "not allowed", "the token is not for threads of this user or project")
	}
	return nil
}

type createThread struct {
	ID       string          `json:"id,omitempty" doc:"an id of your choice, unique in the store"`
	Reuse    bool            `json:"reuse,omitempty" doc:"with an id: if there is such a thread, it is the answer, unchanged"`
	User     string          `json:"user,omitempty" doc:"the user it belongs to"`
	Title    string          `json:"title,omitempty" doc:"the title"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"any JSON of the caller; the members of an object can be listed by"`
	Keep     bool            `json:"keep,omitempty" doc:"keep every message as long as the thread, also when no context leads to it"`

	SystemPrompt *string         `json:"system_prompt,omitempty" doc:"the system prompt of the main branch"`
	Model        *string         `json:"model,omitempty" doc:"the model of the main branch"`
	Overrides    json.RawMessage `json:"overrides,omitempty" doc:"further settings of the main branch: a JSON object"`
}

func (o *createThread) do(ctx context.Context, w *within) (made, error) {
	info := lineage.ThreadInfo{UserID: o.User, Metadata: orNil(o.Metadata)}
	if users := w.caller.Scope.Users; info.UserID == "" && len(users) == 1 {
		info.UserID = users[0]
	}
	if err := w.mayHave(&info); err != nil {
		return made{}, err
	}
	id := o.ID
	if id != "" {
		if there, err := o.found(ctx, w); err != nil || there.Found {
			return there, err
		}
		id = w.caller.Scope.Space(&info) + id
	}
	t, err := w.store.CreateThread(ctx, lineage.ThreadOptions{
		SourceID: id, UserID: info.UserID, Title: o.Title, Metadata: info.Metadata, Keep: o.Keep,
		Overrides: lineage.Overrides{SystemPrompt: o.SystemPrompt, Model: o.Model, JSON: orNil(o.Overrides)},
	})
	if err != nil {
		return made{}, err
	}
	return made{Thread: t.ID().String()}, nil
}

// found returns the thread for which the id was chosen already, nothing if there is none that the caller may see.
func (o *createThread) found(ctx context.Context, w *within) (made, error) {
	t, err := w.caller.Scope.FindThread(ctx, w.store, o.ID)
	if errors.Is(err, lineage.ErrNotFound) {
		return made{}, nil
	}
	if err == nil && !o.Reuse {
		err = fmt.Errorf("thread %.100q: %w", o.ID, lineage.ErrExists)
	}
	if err != nil {
		return made{}, err
	}
	info, err := t.Info(ctx)
	if err == nil && o.User != "" && info.UserID != o.User {
		err = fmt.Errorf("thread %.100q: %w", o.ID, lineage.ErrOtherUser)
	}
	return made{Thread: t.ID().String(), Found: true}, err
}

type updateThread struct {
	ofThread
	Title    *string         `json:"title,omitempty" doc:"the title"`
	User     *string         `json:"user,omitempty" doc:"the user it belongs to, if it has none yet"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"in place of what was there; null for none"`
	Merge    json.RawMessage `json:"merge,omitempty" doc:"what to change in the metadata, which are an object or none: a merge patch (RFC 7396)"`
	If       json.RawMessage `json:"if_metadata,omitempty" doc:"only if these are the metadata, null for none; conflict if another program has changed them"`
}

func (o *updateThread) do(ctx context.Context, w *within) (made, error) {
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	if o.Merge != nil && (o.Metadata != nil || !rawjson.IsObject(o.Merge)) {
		return made{}, fmt.Errorf("merge: %w: must be an object, and cannot be combined with metadata", lineage.ErrInvalid)
	}
	err = t.Update(ctx, func(info *lineage.ThreadInfo) error {
		if o.If != nil && !sameJSON(orNil(o.If), info.Metadata) {
			return fmt.Errorf("metadata of thread %s: %w", info.ID, lineage.ErrConflict)
		}
		if o.Merge != nil && info.Metadata != nil && !rawjson.IsObject(info.Metadata) {
			return fmt.Errorf("merge: %w: the metadata of thread %s are no object", lineage.ErrInvalid, info.ID)
		}
		if o.Merge != nil {
			info.Metadata = rawjson.MergePatch(info.Metadata, o.Merge)
		}
		if o.Title != nil {
			info.Title = *o.Title
		}
		if o.User != nil {
			info.UserID = *o.User
		}
		if o.Metadata != nil {
			info.Metadata = orNil(o.Metadata)
		}
		return w.mayHave(info)
	})
	return made{Thread: t.ID().String()}, err
}

type deleteThread struct {
	ofThread
	User *string `json:"user,omitempty" query:"user" doc:"only if it belongs to this user"`
}

func (o *deleteThread) do(ctx context.Context, w *within) (made, error) {
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	return made{}, t.Delete(ctx, func(info *lineage.ThreadInfo) error {
		if o.User != nil && info.UserID != *o.User {
			return notFound("thread", o.Thread)
		}
		return nil
	})
}
