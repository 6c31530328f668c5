package serving

import (
	"context"
	"errors"
	"io"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/sources"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/resume"
)

// transfers implements the API's imports and sessions.
type transfers struct{ *app.OpenStore }

// session creates a session of an agent on this machine.
func (t *transfers) session(ctx context.Context, at lineage.SpanRef, o resume.Options) (made *resume.Session, err error) {
	if o.Environment, _, err = t.Machine(); err != nil {
		return nil, err
	}
	return resume.New(ctx, t.Store, at, o)
}

// isNoSession reports whether an error says that no session is possible, or that something must be chosen first.
func isNoSession(err error) bool {
	return errors.Is(err, resume.ErrNoWayIn) || errors.Is(err, resume.ErrNothing) || errors.Is(err, resume.ErrNoFolder) || errors.As(err, new(*follow.UnknownAgentError))
}

// tried returns the record of a session that is not written.
func tried(ctx context.Context, made *resume.Session) (*records.Resumed, error) {
	const written = false
	r := sources.ResumedRecord(made, written)
	size, err := made.Content(ctx, io.Discard)
	r.Lines, r.Bytes = size.Lines, size.Bytes
	return r, err
}
