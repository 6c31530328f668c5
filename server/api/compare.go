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
	"github.com/lineage-store/lineage/structure"
)

// maxCompared limits the messages of each history that are compared.
const maxCompared = 100_000

type diffQuery struct {
	of
	At         string `json:"-" query:"at" doc:"the position that the first history ends at; default the tip of the context"`
	With       string `json:"-" query:"with" doc:"the position that the second history ends at"`
	WithThread string `json:"-" query:"with_thread" doc:"the thread of that position; default that of the context"`
	listPage
}

// diff lists the messages that only one of two histories has: first those of the first history, then those of the
// second. At the end of the last page is the number of messages in common.
func (a *API) diff(ctx context.Context, c *call, in *diffQuery) (*list[records.Record], error) {
	from, err := in.place()
	if err != nil {
		return nil, err
	}
	first, second, err := c.compared(ctx, in, from)
	if err != nil {
		return nil, err
	}
	d, err := difference.Of(ctx, a.o.Store, first, second, maxCompared)
	if err == nil && d.Cut {
		err = fmt.Errorf("histories: %w: more than %d messages follow those in common", lineage.ErrTooLarge, maxCompared)
	}
	if err != nil {
		return nil, err
	}
	out, texts, after := &list[records.Record]{}, int64(0), from.after
	for _, history := range []struct {
		name string
		tip  lineage.SpanRef
		only []bool
	}{{"a", first, d.A}, {"b", second, d.B}} {
		if history.name < from.side || history.tip.IsZero() {
			continue
		}
		if history.name > from.side {
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
				out.Next = (&diffPlace{history.name, i - 1, first, second}).String()
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

// compared returns the positions that two histories end at. All pages compare what the first one compared, even if the
// contexts have moved since.
func (c *call) compared(ctx context.Context, in *diffQuery, from *diffPlace) (first, second lineage.SpanRef, err error) {
	if in.With == "" {
		return first, second, fmt.Errorf("with: %w: must be a position", lineage.ErrInvalid)
	}
	end := func(found *refs.Ref, known lineage.SpanRef, text string) (lineage.SpanRef, error) {
		if from.side != "" {
			if known.IsZero() {
				return known, nil
			}
			text = known.String()
		}
		at, err := c.position(ctx, found, text)
		if err != nil {
			return lineage.SpanRef{}, err
		}
		return at.Span, nil
	}
	found, err := c.context(ctx, in.of)
	if err != nil {
		return first, second, err
	}
	if first, err = end(found, from.first, in.At); err != nil {
		return first, second, err
	}
	if in.WithThread != "" {
		if found, err = c.context(ctx, of{Thread: in.WithThread, Context: "@"}); err != nil {
			return first, second, err
		}
	}
	second, err = end(found, from.second, in.With)
	return first, second, err
}

// diffPlace is where a page of differences begins: after a number of entries of a side. first and second are the ends of
// the histories. The zero place is the start.
type diffPlace struct {
	side          string
	after         uint64
	first, second lineage.SpanRef
}

// String returns the place as the token of a page.
func (p *diffPlace) String() string {
	return p.side + ":" + strconv.FormatUint(p.after, 10) + ":" + p.first.String() + ":" + p.second.String()
}

// place parses the token of a page of differences.
func (p *listPage) place() (*diffPlace, error) {
	if p.After == "" {
		return &diffPlace{}, nil
	}
	parts := strings.Split(p.After, ":")
	if len(parts) != 4 || parts[0] != "a" && parts[0] != "b" {
		return nil, errPage
	}
	after, err := strconv.ParseUint(parts[1], 10, 62)
	first, wrongFirst := structure.ParseSpanRef(parts[2])
	second, wrongSecond := structure.ParseSpanRef(parts[3])
	if errors.Join(err, wrongFirst, wrongSecond) != nil {
		return nil, errPage
	}
	return &diffPlace{parts[0], after, first, second}, nil
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

// readable is like Store.Provenance, for a caller of a part of the store. Each block has the type, kind of origin, parent and
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
