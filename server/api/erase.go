package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/lineage-store/lineage/internal/erasure"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type eraseContent struct {
	ofContent
	DryRun bool `json:"-" query:"dry_run" doc:"only say what would be erased"`
}

// eraseContent erases a content from every history.
func (a *API) eraseContent(ctx context.Context, c *call, in *eraseContent) error {
	id, err := c.contentID(ctx, in.Content)
	if err != nil {
		return err
	}
	plan, err := erasure.OfContent(ctx, a.o.Store, id)
	return c.erase(ctx, plan, err, in.DryRun)
}

type eraseMessage struct {
	of
	At     string `json:"at" doc:"the message"`
	DryRun bool   `json:"dry_run,omitempty" doc:"only say what would be erased"`
}

// eraseMessage erases the text of a message from every history, and those of its other contents that no other message
// has.
func (a *API) eraseMessage(ctx context.Context, c *call, in *eraseMessage) error {
	found, err := c.context(ctx, in.of)
	if err != nil {
		return err
	}
	if in.At == "" {
		return fmt.Errorf("at: %w: must be the position of a message", lineage.ErrInvalid)
	}
	at, err := c.position(ctx, found, in.At)
	if err != nil {
		return err
	}
	e, err := refs.New(c.store, found.Thread).Entry(ctx, at)
	if err != nil {
		return err
	}
	plan, err := erasure.OfMessage(ctx, a.o.Store, e)
	return c.erase(ctx, plan, err, in.DryRun)
}

// erase carries out a plan. It answers with what was erased and what remains.
func (c *call) erase(ctx context.Context, plan *erasure.Plan, err error, dry bool) error {
	if err == nil {
		err = c.refuseKey("what was erased is found erased when it comes again")
	}
	if err == nil && !dry {
		err = plan.Do(ctx, c.store, nil)
	}
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, &list[*records.Erased]{Items: append(plan.Erased, plan.Stays...)})
}
