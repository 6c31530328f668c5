package api

import (
	"context"
	"errors"
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

// provenance lists a content and what it was derived from. For a caller of a part of the store the list is made from
// the messages that the caller may read. Who else has a content, since when, and what it was derived from there, does
// not show in it.
func (a *API) provenance(ctx context.Context, c *call, in *ofContent) (*list[*records.Content], error) {
	id, err := content.ParseID(in.Content)
	if err != nil {
		return nil, notFound("content", in.Content)
	}
	var chain []content.Block
	if c.caller.Scope.All() {
		chain, err = a.o.Store.Provenance(ctx, id)
	} else {
		chain, err = c.readable(ctx, id)
	}
	if err == nil && len(chain) == 0 {
		err = notFound("content", in.Content)
	}
	if err != nil {
		return nil, err
	}
	out := &list[*records.Content]{}
	for i := range chain[:min(len(chain), maxPage)] {
		b := &chain[i]
		r := &records.Content{ID: b.ID.String(), Step: i, MediaType: b.Type, Size: b.Size, Origin: records.NewOrigin(b.Origin.By(content.Attribution{}))}
		if r.Missing = b.CreatedAt.IsZero() && b.Type == ""; !r.Missing {
			at := b.CreatedAt.UTC()
			r.CreatedAt = &at
		}
		out.Items = append(out.Items, r)
	}
	return out, nil
}

// readable is Store.Provenance for a caller of a part of the store. Each block has the type, kind of origin, parent and
// time that the oldest messages state which the caller may read. The chain ends before content that the caller may not
// read.
func (c *call) readable(ctx context.Context, id content.ID) (chain []content.Block, err error) {
	seen := make(map[content.ID]bool)
	for !id.IsZero() && !seen[id] && len(chain) < maxPage {
		seen[id] = true
		var first, derived *lineage.Entry // the oldest message with the content, and the oldest that states a parent
		err := c.uses(ctx, id, func(e *lineage.Entry) (bool, error) {
			if first == nil || e.Commit < first.Commit {
				first = e
			}
			if e.Content == id && !e.Origin.ParentID.IsZero() && (derived == nil || e.Commit < derived.Commit) {
				derived = e
			}
			return true, nil
		})
		if err != nil && !isGone(err) {
			return nil, err
		}
		if first == nil {
			break
		}
		blocks, err := c.store.View().Blocks(ctx, []content.ID{id})
		if len(chain) > 0 && (errors.Is(err, lineage.ErrNotFound) || errors.Is(err, lineage.ErrErased)) {
			return append(chain, content.Block{ID: id}), nil
		}
		if err != nil {
			return nil, err
		}
		block := content.Block{ID: id, Type: typeIn(first, id, blocks[0].Type), Size: blocks[0].Size, CreatedAt: first.CreatedAt}
		block.Origin.Kind = first.Origin.Kind
		if id = (content.ID{}); derived != nil {
			block.Origin.ParentID, id = derived.Origin.ParentID, derived.Origin.ParentID
		}
		chain = append(chain, block)
	}
	return chain, nil
}

// typeIn returns the media type of a content in a message, or other if the content is none of its pieces.
func typeIn(e *lineage.Entry, id content.ID, other string) string {
	if e.Content == id {
		return e.Type
	}
	for i := range e.Pieces {
		if p := &e.Pieces[i]; p.Content == id {
			return p.Type
		}
	}
	return other
}
