package api

import (
	"context"
	"fmt"
	"strconv"

	"github.com/lineage-store/lineage/internal/difference"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type documentsQuery struct {
	of
	Name string `json:"-" query:"name" doc:"only those of this document"`
	listPage
}

// listDocuments lists the revisions of documents in a history, with the starts of their texts.
func (a *API) listDocuments(ctx context.Context, c *call, in *documentsQuery) (*list[*records.Message], error) {
	found, err := c.context(ctx, in.of)
	if err != nil {
		return nil, err
	}
	end, n, err := in.inHistory()
	if err != nil {
		return nil, err
	}
	at, err := c.position(ctx, found, end)
	if err != nil {
		return nil, err
	}
	revisions, err := a.o.Store.Revisions(ctx, at.Span, in.Name)
	if err != nil {
		return nil, err
	}
	out, texts := &list[*records.Message]{}, int64(0)
	for i := min(n, uint64(len(revisions))); i < uint64(len(revisions)); i++ {
		e, err := a.o.Store.RevisionEntry(ctx, &revisions[i])
		if err != nil {
			return nil, err
		}
		texts += min(e.Size, records.MaxPreview)
		if len(out.Items) == in.size() || len(out.Items) > 0 && texts > maxTexts {
			out.Next = at.Span.String() + ":" + strconv.FormatUint(i, 10)
			break
		}
		m, err := records.OfMessage(ctx, a.o.Store, e, records.MaxPreview)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, m)
	}
	return out, nil
}

type ofDocument struct {
	of
	Document string `json:"-" path:"document" doc:"the name of the document"`
}

type documentQuery struct {
	ofDocument
	Revision uint64 `json:"-" query:"revision" doc:"the number of the revision; default the latest"`
}

func (a *API) getDocument(ctx context.Context, c *call, in *documentQuery) (*records.Message, error) {
	found, err := c.context(ctx, in.of)
	if err != nil {
		return nil, err
	}
	e, err := found.Context.Revision(ctx, in.Document, in.Revision)
	if err != nil {
		return nil, err
	}
	return records.OfMessage(ctx, a.o.Store, e, records.MaxText)
}

type documentDiffQuery struct {
	ofDocument
	From uint64 `json:"-" query:"from" doc:"the number of the first revision"`
	To   uint64 `json:"-" query:"to" doc:"the number of the second; default the latest"`
}

// diffDocument compares two revisions of a document line by line.
func (a *API) diffDocument(ctx context.Context, c *call, in *documentDiffQuery) (*records.DocumentDiff, error) {
	found, err := c.context(ctx, in.of)
	if err != nil {
		return nil, err
	}
	if in.From == 0 {
		return nil, fmt.Errorf("from: %w: must be the number of a revision", lineage.ErrInvalid)
	}
	old, from, err := difference.RevisionLines(ctx, a.o.Store, found.Context, in.Document, in.From)
	if err != nil {
		return nil, err
	}
	current, to, err := difference.RevisionLines(ctx, a.o.Store, found.Context, in.Document, in.To)
	if err != nil {
		return nil, err
	}
	return &records.DocumentDiff{Document: in.Document, From: from, To: to, Lines: difference.Lines(old, current)}, nil
}
