package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pages"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/structure"
)

type filesQuery struct {
	of
	Name     string `json:"-" query:"name" doc:"the name of the file or document, or of the speaker"`
	As       string `json:"-" query:"as" doc:"asset, document or message; default asset"`
	Role     string `json:"-" query:"role" doc:"of a message; default user"`
	ID       string `json:"-" query:"id" doc:"an id of your choice, unique in the thread"`
	Metadata string `json:"-" query:"metadata" doc:"any JSON to keep with it"`
	ifTip
}

// refuseKey returns an error if the request has a key. It is for requests that store nothing with the key.
func (c *call) refuseKey(why string) error {
	if len(c.r.Header.Values("Idempotency-Key")) > 0 {
		return fmt.Errorf("key: %w: it is not for this request: %s", lineage.ErrInvalid, why)
	}
	return nil
}

// files appends one item whose bytes are read while they arrive.
func (a *API) files(ctx context.Context, c *call, in *filesQuery) error {
	if err := c.refuseKey("with an id a file is added once"); err != nil {
		return err
	}
	item := lineage.Item{Kind: lineage.Asset, Filename: in.Name, SourceID: in.ID, Type: mediaType(c.r), Reader: c.r.Body}
	if in.Metadata != "" {
		item.Metadata = json.RawMessage(in.Metadata)
	}
	switch in.As {
	case "", "asset":
	case "document":
		item.Kind, item.Filename, item.Document = lineage.Document, "", in.Name
	case "message":
		item.Kind, item.Filename, item.Name, item.Role = lineage.Message, "", in.Name, cmp.Or(in.Role, "user")
	default:
		return fmt.Errorf("as %.100q: %w: must be asset, document or message", in.As, lineage.ErrInvalid)
	}
	m, err := c.extend(ctx, in.of, &in.ifTip, item)
	if err != nil {
		return err
	}
	return c.sendMade(http.StatusCreated, &m)
}

// mediaType returns the media type stated for a body.
func mediaType(r *http.Request) string {
	return cmp.Or(r.Header.Get("Content-Type"), "application/octet-stream")
}

// putContent stores bytes. For a day, messages can refer to them by their id.
func (a *API) putContent(ctx context.Context, c *call, _ *struct{}) error {
	if err := c.refuseKey("the same content is stored once"); err != nil {
		return err
	}
	block, _, err := a.o.Store.Put(ctx, c.r.Body, lineage.BlockOptions{Type: mediaType(c.r)})
	if err != nil {
		return err
	}
	at := block.CreatedAt.UTC()
	return c.send(http.StatusCreated, &records.Content{
		ID: block.ID.String(), MediaType: block.Type, Size: block.Size, CreatedAt: &at,
	})
}

type ofContent struct {
	Content string `json:"-" path:"content" doc:"the id of the content"`
}

// uses calls visit for the uses of a content that the caller may read, until visit returns false.
func (c *call) uses(ctx context.Context, id content.ID, visit func(*lineage.Entry) (bool, error)) error {
	may := make(map[structure.RunID]bool)
	for page, err := range pages.Of(access.FirstUses(c.store.Where(ctx, id)), access.UsesAtOnce) {
		if err != nil {
			return err
		}
		if more, err := c.visitUses(ctx, page, may, visit); err != nil || !more {
			return err
		}
	}
	return nil
}

// visitUses calls visit for those of some uses that the caller may read. may has what is known of their runs.
func (c *call) visitUses(ctx context.Context, uses []*lineage.Entry, may map[structure.RunID]bool, visit func(*lineage.Entry) (bool, error)) (more bool, err error) {
	var unknown []structure.RunID
	for _, e := range uses {
		if _, known := may[e.Span.Run]; !known {
			unknown = append(unknown, e.Span.Run)
		}
	}
	if len(unknown) > 0 {
		found, err := c.caller.Scope.HasRuns(ctx, c.store.View(), unknown)
		if err != nil {
			return false, err
		}
		maps.Copy(may, found)
	}
	for _, e := range uses {
		if !may[e.Span.Run] {
			continue
		}
		if more, err := visit(e); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// contentID returns the id of a content that the caller may read.
func (c *call) contentID(ctx context.Context, text string) (id content.ID, err error) {
	if id, err = content.ParseID(text); err != nil {
		return id, notFound("content", text)
	}
	may, err := c.caller.Scope.HasContent(ctx, c.store.View(), id, lineage.ThreadID{})
	if err == nil && !may {
		err = notFound("content", text)
	}
	return id, err
}

type usesQuery struct {
	ofContent
	Limit int `json:"-" query:"limit" doc:"at most so many; default 100, at most 1000"`
}

func (a *API) contentUses(ctx context.Context, c *call, in *usesQuery) (*list[*records.Message], error) {
	id, err := c.contentID(ctx, in.Content)
	if err != nil {
		return nil, err
	}
	p, out := listPage{Limit: in.Limit}, &list[*records.Message]{}
	err = c.uses(ctx, id, func(e *lineage.Entry) (bool, error) {
		m, err := records.OfMessage(ctx, a.o.Store, e, records.MaxPreview)
		if isGone(err) { // collected meanwhile
			return true, nil
		}
		out.Items = append(out.Items, m)
		return len(out.Items) < p.size(), err
	})
	return out, err
}
