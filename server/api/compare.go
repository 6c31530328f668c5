package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/difference"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// maxCompared limits the messages of each history that are compared.
const maxCompared = 100_000

type diffQuery struct {
	of
	At         string `json:"-" query:"at" doc:"the position that the first history ends at; default the tip of the context"`
	With       string `json:"-" query:"with" doc:"the position that the second history ends at"`
	WithThread string `json:"-" query:"with_thread" doc:"the thread of that position; default that of the context"`
	page
}

// diff lists the messages that only one of two histories has: first those of the first history, then those of the
// second. At the end of the last page is the number of messages in common.
func (a *API) diff(ctx context.Context, c *call, in *diffQuery) (*list[records.Record], error) {
	first, second, err := c.compared(ctx, in)
	if err != nil {
		return nil, err
	}
	side, after, err := afterOf(in.After)
	if err != nil {
		return nil, err
	}
	d, err := difference.Of(ctx, a.o.Store, first.Span, second.Span, maxCompared)
	if err == nil && d.Cut {
		err = fmt.Errorf("histories: %w: more than %d messages follow those in common", lineage.ErrTooLarge, maxCompared)
	}
	if err != nil {
		return nil, err
	}
	out, texts := &list[records.Record]{}, int64(0)
	for _, history := range []struct {
		name string
		tip  lineage.SpanRef
		only []bool
	}{{"a", first.Span, d.A}, {"b", second.Span, d.B}} {
		if history.name < side || history.tip.IsZero() {
			continue
		}
		if history.name > side {
			after = 0
		}
		i := uint64(0) // entries of a step are counted too
		for e, err := range a.o.Store.History(ctx, history.tip, lineage.Window{From: d.Common + 1}) {
			if err != nil {
				return nil, err
			}
			if i++; i <= after || !history.only[i-1] {
				continue
			}
			if len(out.Items) == in.size() || len(out.Items) > 0 && texts+e.Size > maxTexts {
				out.Next = history.name + ":" + strconv.FormatUint(i-1, 10)
				return out, nil
			}
			m, err := records.OfMessage(ctx, a.o.Store, e, records.MaxText)
			if err != nil {
				return nil, err
			}
			texts += e.Size
			out.Items = append(out.Items, &records.Diff{Side: history.name, Message: m})
		}
	}
	out.Items = append(out.Items, &records.DiffSummary{Common: d.Common, OnlyA: d.OnlyA(), OnlyB: d.OnlyB(), Same: d.Same})
	return out, nil
}

// compared returns the positions that two histories end at.
func (c *call) compared(ctx context.Context, in *diffQuery) (first, second *refs.Ref, err error) {
	found, err := c.context(ctx, in.of)
	if err != nil {
		return first, second, err
	}
	if first, err = c.position(ctx, found, in.At); err != nil {
		return first, second, err
	}
	if in.WithThread != "" {
		if found, err = c.context(ctx, of{Thread: in.WithThread, Context: "@"}); err != nil {
			return first, second, err
		}
	}
	if in.With == "" {
		return first, second, fmt.Errorf("with: %w: must be a position", lineage.ErrInvalid)
	}
	second, err = c.position(ctx, found, in.With)
	return first, second, err
}

// afterOf parses the token of a page: a side, and a number of entries in its history.
func afterOf(text string) (side string, after uint64, err error) {
	if text == "" {
		return "", 0, nil
	}
	side, number, _ := strings.Cut(text, ":")
	after, err = strconv.ParseUint(number, 10, 62)
	if err != nil || side != "a" && side != "b" {
		return "", 0, fmt.Errorf("after: %w: must be the next value of a page", lineage.ErrInvalid)
	}
	return side, after, nil
}

// provenance lists a content and what it was derived from. It stops before content that the caller may not read.
func (a *API) provenance(ctx context.Context, c *call, in *ofContent) (*list[*records.Content], error) {
	id, err := c.contentID(ctx, in.Content)
	if err != nil {
		return nil, err
	}
	chain, err := a.o.Store.Provenance(ctx, id)
	if err == nil && len(chain) == 0 {
		err = notFound("content", in.Content)
	}
	if err != nil {
		return nil, err
	}
	out := &list[*records.Content]{}
	for i := range chain[:min(len(chain), maxPage)] {
		b := &chain[i]
		if i > 0 {
			if _, err := c.contentID(ctx, b.ID.String()); isGone(err) {
				break
			} else if err != nil {
				return nil, err
			}
		}
		r := &records.Content{ID: b.ID.String(), Step: i, MediaType: b.Type, Size: b.Size, Origin: records.NewOrigin(b.Origin.By(content.Attribution{}))}
		if r.Missing = b.CreatedAt.IsZero() && b.Type == ""; !r.Missing {
			at := b.CreatedAt.UTC()
			r.CreatedAt = &at
		}
		out.Items = append(out.Items, r)
	}
	return out, nil
}
