package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
)

// Templates of the URIs of resources.
const (
	historyTemplate  = "lineage://thread/{thread}"
	positionTemplate = "lineage://thread/{thread}/at/{+position}"
	documentTemplate = "lineage://thread/{thread}/document/{+name}"
	uriPrefix        = "lineage://thread/"
)

// maxDocument limits a document that is read as a resource, in bytes.
const maxDocument = 4 << 20

// resources registers histories and documents.
func (r *registry) resources() {
	for _, t := range []*mcp.ResourceTemplate{
		{Name: "history", Title: "A conversation", URITemplate: historyTemplate, MIMEType: "text/plain", Description: "The latest messages of a conversation."},
		{Name: "position", Title: "A position of a conversation", URITemplate: positionTemplate, MIMEType: "text/plain", Description: "The messages that lead to a branch, checkpoint or message."},
		{Name: "document", Title: "A document", URITemplate: documentTemplate, Description: "The latest revision of a document in a conversation, byte for byte."},
	} {
		r.server.AddResourceTemplate(t, r.readResource)
	}
	list := r.listResources
	r.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			if asked, ok := request.(*mcp.ListResourcesRequest); ok && method == "resources/list" {
				result, err := guarded(r.Service, method, func() (*mcp.ListResourcesResult, error) { return list(ctx, asked) })
				if err != nil || r.o.More == nil {
					return result, err
				}
				more, err := next(ctx, method, request)
				if further, ok := more.(*mcp.ListResourcesResult); ok && err == nil {
					result.Resources = append(further.Resources, result.Resources...)
				}
				return result, err
			}
			return next(ctx, method, request)
		}
	})
}

// listResources lists the conversations in scope, page by page.
func (r *registry) listResources(ctx context.Context, request *mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	c, err := r.call(ctx, r.client, request.Session)
	if err != nil {
		return nil, r.failure(ctx, "resources/list", err)
	}
	cursor := ""
	if request.Params != nil {
		cursor = request.Params.Cursor
	}
	q := lineage.ThreadQuery{}
	if q.After, err = backend.ParsePageToken(cursor); err != nil {
		return nil, fmt.Errorf("cursor: %w", lineage.ErrInvalid)
	}
	result := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}, Cacheable: mcp.Cacheable{CacheScope: "private"}}
	last := ""
	for t, err := range c.threads(ctx, q) {
		if err != nil {
			return nil, r.failure(ctx, "resources/list", err)
		}
		if len(result.Resources) == maxRows {
			result.NextCursor = last
			break
		}
		title, err := c.title(ctx, &t.Was)
		if err != nil {
			return nil, r.failure(ctx, "resources/list", err)
		}
		result.Resources = append(result.Resources, &mcp.Resource{
			URI: uriPrefix + t.ID().String(), Name: refs.Short(t.ID()), Title: title, MIMEType: "text/plain",
			Description: "A conversation, last changed " + stamp(t.Was.UpdatedAt) + ". Its title is " + quotedNotice + ".",
		})
		last = t.Page.String()
	}
	return result, nil
}

// readResource reads a history or document.
func (r *registry) readResource(ctx context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := request.Params.URI
	result, err := guarded(r.Service, "resources/read", func() (*mcp.ReadResourceResult, error) {
		thread, kind, name, err := splitURI(uri)
		if err != nil {
			return nil, err
		}
		c, err := r.call(ctx, r.client, request.Session)
		if err != nil {
			return nil, err
		}
		if kind == "document" {
			return c.document(ctx, uri, thread, name)
		}
		a, err := c.read(ctx, &readInput{Thread: thread, At: name})
		if err != nil {
			return nil, err
		}
		if a.next != nil || len(a.notes) > 0 {
			a.note("The tool read shows the rest.")
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: a.String()}}}, nil
	})
	if errors.Is(err, lineage.ErrNotFound) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return result, r.failure(ctx, "resources/read", err)
}

// splitURI splits the URI of a resource. kind is empty for a conversation; otherwise it is at or document.
func splitURI(uri string) (thread, kind, name string, err error) {
	rest, ok := strings.CutPrefix(uri, uriPrefix)
	parts := strings.SplitN(rest, "/", 3)
	if !ok || len(uri) > maxText || len(parts) != 1 && (len(parts) != 3 || parts[1] != "at" && parts[1] != "document") {
		return "", "", "", fmt.Errorf("resource %.80q: %w", uri, lineage.ErrNotFound)
	}
	for i := range parts {
		if parts[i], err = url.PathUnescape(parts[i]); err != nil || parts[i] == "" {
			return "", "", "", fmt.Errorf("resource %.80q: %w", uri, lineage.ErrNotFound)
		}
	}
	if thread = parts[0]; len(parts) == 3 {
		kind, name = parts[1], parts[2]
	}
	return thread, kind, name, nil
}

// document returns the latest revision of a document on the active branch, after a note that it is text of others.
func (c *call) document(ctx context.Context, uri, thread, name string) (*mcp.ReadResourceResult, error) {
	t, err := c.thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	active, err := t.Active(ctx)
	if err != nil {
		return nil, err
	}
	e, err := active.Revision(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	if e.Size > maxDocument {
		return nil, fmt.Errorf("document %q: %d bytes: %w: at most %d", name, e.Size, lineage.ErrTooLarge, maxDocument)
	}
	body, err := c.o.Store.Original(ctx, e)
	if err != nil {
		return nil, err
	}
	contents := &mcp.ResourceContents{URI: uri, MIMEType: plain.Line(e.Type), Meta: mcp.Meta{"lineage/notice": quotedNotice}}
	if records.IsText(e.Type) && string(body) == plain.Text(string(body)) {
		contents.Text = string(body)
	} else {
		contents.Blob = body
	}
	note := fmt.Sprintf("Revision %d of a document, %s.", e.Revision, quotedNotice)
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri + "#notice", MIMEType: "text/plain", Text: note}, contents}}, nil
}
