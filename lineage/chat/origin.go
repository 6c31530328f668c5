package chat

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// originOf returns the origin of the message at a step.
func originOf(step *backend.Step) Origin {
	is := step.Span.Usages[0].OriginWith(step.Blocks[0].Origin)
	o := Origin{UserID: is.UserID, ModelID: is.ModelID, SourceID: is.SourceID}
	if !is.ParentID.IsZero() {
		o.DerivedFrom = is.ParentID.String()
	}
	return o
}

// source returns the content that a message was derived from, zero for none.
func (c *change) source(ctx context.Context, id string) (content.ID, error) {
	if id == "" {
		return content.ID{}, nil
	}
	at, err := c.position(ctx, Ref(id))
	if err == nil {
		return c.contentAt(ctx, at)
	}
	if parsed, notContent := content.ParseID(id); notContent == nil && isMissing(err) {
		return parsed, nil
	}
	return content.ID{}, err
}

// isMissing reports whether an error says that a message is not in a chat.
func isMissing(err error) bool { return isNotFound(err) || errors.Is(err, ErrOtherChat) }

// contentAt returns the content of the message at a span.
func (s *state) contentAt(ctx context.Context, at structure.SpanRef) (content.ID, error) {
	step, err := s.step(ctx, at, backend.PathOptions{})
	if err != nil {
		return content.ID{}, err
	}
	return step.Span.Usages[0].Content, nil
}
