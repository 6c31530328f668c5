package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Apply implements backend.Engine. It refuses commits that the encoding cannot express. If the
// answer is lost, the error matches ErrUncertain and ErrDisconnected.
func (c *Client) Apply(ctx context.Context, commit *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return backend.Receipt{}, context.Cause(ctx)
	}
	var p judge.Preparation
	if err := p.Begin(commit); err != nil {
		return backend.Receipt{}, err
	}
	if o.Durability == backend.DefaultDurability {
		o.Durability = c.o.Durability
	}
	a := c.newAsk(ctx, codeApply, 0)
	callApply.args(a.body, &applyArgs{commit, o})
	if err := a.body.err; err != nil {
		return backend.Receipt{}, fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	w, err := c.request(ctx, a)
	if err != nil {
		c.recent.forget(o.Tips)
		lost := errors.Is(err, ErrDisconnected) || ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
		if a.sent && lost && !errors.Is(err, backend.ErrUncertain) {
			err = fmt.Errorf("commit: %w: %w", backend.ErrUncertain, err)
		}
		return backend.Receipt{}, err
	}
	answer, err := callApply.read(w)
	c.recent.remember(answer.contexts)
	return answer.receipt, err
}
