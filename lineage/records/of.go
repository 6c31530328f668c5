package records

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/structure"
)

const (
	// MaxText is the maximum number of bytes of a body in a record. MaxPreview is that in a list for people.
	MaxText    = 16 << 20
	MaxPreview = 64 << 10
)

// OfThread returns the record of a thread as it is now.
func OfThread(ctx context.Context, store *lineage.Store, t *lineage.Thread) (*Thread, error) {
	return backend.AtOnce(ctx, store.View(), func(s backend.Snapshot) (*Thread, error) { return ofThread(ctx, s, t.ID()) })
}

// threadsAtOnce is the number of threads that are read in one state.
const threadsAtOnce = 100

// OfThreads returns the records of threads as they are now, without those that are gone.
func OfThreads(ctx context.Context, store *lineage.Store, ids []lineage.ThreadID) (all []*Thread, err error) {
	for batch := range slices.Chunk(ids, threadsAtOnce) {
		found, err := backend.AtOnce(ctx, store.View(), func(s backend.Snapshot) (found []*Thread, err error) {
			if s, ok := s.(backend.ThreadsAhead); ok {
				if err := s.ThreadsAhead(ctx, batch); err != nil {
					return nil, err
				}
			}
			for _, id := range batch {
				r, err := ofThread(ctx, s, id)
				if errors.Is(err, lineage.ErrNotFound) {
					continue
				}
				if err != nil {
					return nil, err
				}
				found = append(found, r)
			}
			return found, nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func ofThread(ctx context.Context, from backend.Reader, id lineage.ThreadID) (*Thread, error) {
	t, err := from.Thread(ctx, id)
	if err != nil {
		return nil, err
	}
	last, err := from.LastMessage(ctx, t.Home())
	if err != nil {
		return nil, err
	}
	r := &Thread{
		ID: t.ID.String(), SourceID: t.SourceID, User: t.UserID, Title: t.Title,
		Metadata: JSON(t.Metadata), CreatedAt: t.CreatedAt.UTC(), UpdatedAt: backend.ThreadListing{Thread: t, LastMessage: last}.Updated().UTC(),
	}
	for b, err := range from.Branches(ctx, id, "", "") {
		if err != nil {
			return nil, err
		}
		if r.Branches++; b.Context == t.Active && r.Branch == "" {
			r.Branch = b.Name
		}
	}
	if t.Active.IsZero() {
		return r, nil
	}
	r.Context = t.Active.String()
	active, err := from.Context(ctx, t.Active)
	if err != nil {
		return nil, err
	}
	if active.Tip.IsZero() {
		r.SubagentMessages, err = SubagentMessages(ctx, from, id)
		return r, err
	}
	r.Messages, err = structure.Position(active.Tip, backend.Runs(ctx, from))
	return r, err
}

// SubagentMessages counts the messages of the subagents of a thread.
func SubagentMessages(ctx context.Context, from backend.Reader, thread lineage.ThreadID) (n uint64, err error) {
	branches := make(map[lineage.ContextID]string)
	for b, err := range from.Branches(ctx, thread, "", "") {
		if err != nil {
			return 0, err
		}
		branches[b.Context] = b.Name
	}
	runs := backend.Runs(ctx, from)
	for c, err := range from.Contexts(ctx, thread, lineage.ContextID{}) {
		if err != nil {
			return 0, err
		}
		if graph.KindOf(&lineage.ContextInfo{Branch: branches[c.ID], Set: c.Set, Base: c.Base, Parent: c.Parent, Metadata: c.Metadata}) != graph.KindSubagent {
			continue
		}
		end, err := structure.Position(c.Tip, runs)
		if err != nil {
			return 0, err
		}
		base, err := structure.Position(c.Base, runs)
		if err != nil {
			return 0, err
		}
		n += end - min(base, end)
	}
	return n, nil
}

// OfBranch returns the record of a branch.
func OfBranch(b lineage.BranchInfo) *Branch {
	return &Branch{
		Name: b.Name, Thread: b.Thread.String(), Context: b.Context.String(), Head: SpanID(b.Head), Active: b.Active,
		Length: b.Length, CreatedAt: b.CreatedAt.UTC(), UpdatedAt: b.UpdatedAt.UTC(),
	}
}

// OfCheckpoint returns the record of a checkpoint of a thread.
func OfCheckpoint(ctx context.Context, store *lineage.Store, t *lineage.Thread, c lineage.CheckpointInfo) (*Checkpoint, error) {
	position, err := store.Position(ctx, c.Span)
	if err != nil {
		return nil, err
	}
	return &Checkpoint{
		ID: c.ID.String(), Name: c.Name, Thread: t.ID().String(), Message: c.Span.String(), Position: position, CreatedAt: c.CreatedAt.UTC(),
	}, nil
}

// OfContext returns the record of a context as it is now.
func OfContext(ctx context.Context, store *lineage.Store, c *lineage.Context) (*Context, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	r := &Context{
		ID: info.ID.String(), Thread: ID(info.Thread), Branch: info.Branch, SpanSet: ID(info.Set), Parent: ID(info.Parent),
		Base: SpanID(info.Base), Tip: SpanID(info.Tip), SystemPrompt: info.Overrides.SystemPrompt, Model: info.Overrides.Model,
		Overrides: JSON(info.Overrides.JSON), Metadata: JSON(info.Metadata), CreatedAt: info.CreatedAt.UTC(), UpdatedAt: info.UpdatedAt.UTC(),
		Kind: string(graph.KindOf(&info)),
	}
	if r.Length, err = store.Position(ctx, info.Tip); err != nil {
		return nil, err
	}
	if info.Thread.IsZero() {
		return r, nil
	}
	t, err := store.View().Thread(ctx, info.Thread)
	if err == nil {
		r.Active = t.Active == info.ID
	}
	return r, err
}

// OfValue returns the record of a value.
func OfValue(v *lineage.Value) *Value {
	return &Value{Key: v.Key, Value: v.JSON, Context: ID(v.Context), SetAt: v.SetAt.UTC()}
}

// OfEntry returns the record of an entry of a history without its text.
func OfEntry(ctx context.Context, store *lineage.Store, e *lineage.Entry) (*Message, error) {
	parent, err := ParentOf(ctx, store, e)
	if err != nil {
		return nil, err
	}
	m := &Message{
		ID: EntryID(e), Position: e.Position, Kind: e.Kind.String(), Role: e.Role,
		Document: e.Document, Revision: e.Revision, Filename: e.Filename,
		ContentID: e.Content.String(), MediaType: e.Type, Size: e.Size, Erased: e.Erased,
		Origin: NewOrigin(e.Origin), SourceID: e.SourceID, CreatedAt: e.CreatedAt.UTC(),
		Parent: SpanID(parent), SpanSet: ID(e.Set), Metadata: JSON(e.Metadata),
	}
	if e.Name != e.Role {
		m.Name = e.Name
	}
	return m, nil
}

// OfMessage returns the record of an entry of a history, with at most limit bytes of a body.
func OfMessage(ctx context.Context, store *lineage.Store, e *lineage.Entry, limit int64) (*Message, error) {
	m, err := OfEntry(ctx, store, e)
	if err != nil || isGone(e) || !IsText(e.Type) {
		return m, err
	}
	if len(e.Pieces) > 0 && (limit <= MaxPreview || e.Erased) {
		m.Text = e.Excerpt() // as much as was loaded with the entry
		return m, nil
	}
	body, err := bodyOf(ctx, store, e, limit)
	if err != nil {
		return nil, err
	}
	if m.Truncated = int64(len(body)) > limit; m.Truncated {
		body = body[:limit]
	} else if e.Type == content.TypeJSON {
		m.Data = JSON(body)
	}
	switch {
	case len(e.Pieces) > 0 && e.Size <= MaxText:
		m.Text, err = store.Text(ctx, e)
	case len(e.Pieces) > 0:
		m.Text = e.Excerpt()
	case e.Type == content.TypeJSON:
		m.Text = form.Text(body, e.Role)
	default:
		m.Text = string(body)
	}
	return m, err
}

// bodyOf returns the body of an entry as it was given. If a single piece is larger than limit, bodyOf reads limit+1
// bytes of it.
func bodyOf(ctx context.Context, store *lineage.Store, e *lineage.Entry, limit int64) ([]byte, error) {
	if len(e.Pieces) > 0 || e.Body != nil || e.Size <= limit {
		return store.Original(ctx, e)
	}
	r, err := store.Body(ctx, e.Content)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, limit+1))
}

// isGone reports whether all content of an entry was erased.
func isGone(e *lineage.Entry) bool {
	for i := range e.Pieces {
		if !e.Pieces[i].Erased {
			return false
		}
	}
	return e.Erased
}

// IsText reports whether people can read a media type as it is.
func IsText(mediaType string) bool {
	base, _, _ := strings.Cut(mediaType, ";")
	switch base {
	case content.TypeJSON, content.TypeXML, content.TypeYAML, content.TypeSVG, "":
		return true
	}
	return strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "+json") || strings.HasSuffix(base, "+xml")
}

// ParentOf returns the span before an entry of a history.
func ParentOf(ctx context.Context, store *lineage.Store, e *lineage.Entry) (lineage.SpanRef, error) {
	switch {
	case e.Span.Seq > 1:
		return lineage.SpanRef{Run: e.Span.Run, Seq: e.Span.Seq - 1}, nil
	case e.Position <= 1:
		return lineage.SpanRef{}, nil
	}
	return store.At(ctx, e.Span, e.Position-1)
}
