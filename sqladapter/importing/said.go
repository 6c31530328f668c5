package importing

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// A projection has the usages of its messages. From these, an import restores the original messages, and not only the
// data column.

var saidSQL = struct {
	threadOf, ownSpans, blocks sqladapter.Statement
}{
	threadOf: `SELECT "scope", "metadata" FROM "lineage_scopes" WHERE "scope" IN (?, ?) AND "chat_id" = ?`,
	ownSpans: `SELECT u."source_id", u."span_id" FROM "lineage_reach" r ` +
		`JOIN "spans" s ON s."run_id" = r."run_id" AND s."seq" <= r."own" JOIN "message_usages" u ON u."span_id" = s."id" ` +
		`WHERE r."scope" = ? AND u."lookup" > 0 ORDER BY u."lookup"`,
	blocks: `SELECT "id", "content_type", "origin_kind", "origin_parent_id", "created_at", "size", "erased", ` +
		`CASE WHEN "size" <= ? THEN "body" END AS "body" FROM "content_blocks" WHERE "id" IN ({list})`,
}

// readerOf returns a reader of the original messages of a chat. It also restores the original metadata of the chat,
// unless another program has changed it.
func readerOf(ctx context.Context, db *sqladapter.DB, projectedChat *chat.Chat) (*saidReader, error) {
	r := &saidReader{db: db, own: make(map[string]string)}
	err := db.Read(ctx, func(c *sqladapter.Conn) error {
		var metadata sql.NullString
		known, err := c.Get(ctx, saidSQL.threadOf, []any{projectedChat.ID, write.SourceThread(projectedChat.ID).String(), projectedChat.ID}, &r.thread, &metadata)
		if err != nil || !known {
			return err
		}
		if stored := json.RawMessage(metadata.String); metadata.Valid && projected.SameJSON(projected.CleanJSON(stored), projectedChat.Metadata) {
			projectedChat.Metadata = stored
		}
		own, err := lists.Collect(ctx, c, chatrows.ScanLink, saidSQL.ownSpans, r.thread)
		for _, l := range own { // the latest version comes last
			r.own[l.ID] = l.Parent
		}
		return err
	})
	return r, err
}

// saidReader reads the original messages of a chat.
type saidReader struct {
	db     *sqladapter.DB
	thread string
	own    map[string]string // message id → span
}

// spanOf returns the span of a message, empty if another program added the message.
func (r *saidReader) spanOf(id string) string {
	if r == nil || r.thread == "" {
		return ""
	}
	if span, ok := r.own[id]; ok {
		return span
	}
	span, _ := strings.CutPrefix(id, r.thread+"/")
	if span == id {
		return ""
	}
	return span
}

// read returns the originals of messages. If the row of a message differs from its original, another program has
// changed it, and the data column is used.
func (r *saidReader) read(ctx context.Context, messages []chat.Message) ([]*chat.Said, error) {
	contents := make([]*chat.Said, len(messages))
	var spans []string
	for _, m := range messages {
		if span := r.spanOf(m.ID); span != "" {
			spans = append(spans, span)
		}
	}
	usages, err := r.usages(ctx, spans)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, spanUsages := range usages {
		for i := range spanUsages {
			for _, id := range spanUsages[i].Named(nil) {
				ids = append(ids, id.String())
			}
		}
	}
	blocks, err := blocksUpTo(ctx, r.db, ids, content.InlineLimit)
	if err != nil {
		return nil, err
	}
	for i, m := range messages {
		spanUsages := usages[r.spanOf(m.ID)]
		if len(spanUsages) == 0 {
			continue
		}
		same, err := r.isSaid(ctx, m, spanUsages, blocks)
		if err != nil {
			return nil, err
		}
		if same {
			contents[i] = &chat.Said{Usages: spanUsages, From: projectedContent{r.db}}
		}
	}
	return contents, nil
}

// usages returns the usages of spans, in order.
func (r *saidReader) usages(ctx context.Context, spans []string) (map[string][]structure.Usage, error) {
	found, err := lists.ReadList(ctx, r.db, projected.ScanUsage, tables.Usages.SelectOf, spans)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b projected.Usage) int {
		return cmp.Or(strings.Compare(a.Span, b.Span), cmp.Compare(a.Place, b.Place))
	})
	usages := make(map[string][]structure.Usage)
	for _, u := range found {
		usages[u.Span] = append(usages[u.Span], u.Usage)
	}
	return usages, nil
}

// isSaid reports whether a message has the content of usages, and all of it is available.
func (r *saidReader) isSaid(ctx context.Context, m chat.Message, usages []structure.Usage, blocks map[string]*structure.Block) (bool, error) {
	bodies := make([]*structure.Block, len(usages))
	for i := range usages {
		for _, id := range usages[i].Named(nil) {
			b := blocks[id.String()]
			if b == nil || b.Size > projected.MaxBody || b.Body != nil && content.Sum(b.Body) != *id {
				return false, nil
			}
		}
		if usages[i].Check() != nil || i == 0 && usages[i].Kind == structure.PartUsage {
			return false, nil
		}
		bodies[i] = blocks[usages[i].Content.String()]
	}
	original, err := chat.MessageOf(ctx, projectedContent{r.db}, usages, bodies, m.ID)
	if errors.Is(err, sqladapter.ErrCorrupt) || errors.Is(err, lineage.ErrNotFound) || errors.Is(err, form.ErrMismatch) {
		return false, nil
	}
	original.ChatID, original.ParentID = m.ChatID, m.ParentID
	original.Name, original.Type, original.Data = projected.Clean(original.Name), projected.Clean(original.Type), projected.CleanJSON(original.Data)
	return original.Same(m), err
}

// projectedContent reads content from a projection.
type projectedContent struct{ db *sqladapter.DB }

// Chunks implements form.Blocks: a database has only whole bodies.
func (projectedContent) Chunks(context.Context, []content.Key) ([][]byte, error) {
	return nil, fmt.Errorf("chunk: %w", lineage.ErrNotFound)
}

// Blocks implements form.Blocks, with whole bodies.
func (p projectedContent) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	blocks := make([]*structure.Block, len(ids))
	for i, id := range ids {
		found, err := blocksUpTo(ctx, p.db, []string{id.String()}, projected.MaxBody)
		if err != nil {
			return nil, err
		}
		b := found[id.String()]
		switch {
		case b == nil || b.Size > projected.MaxBody:
			return nil, fmt.Errorf("content %v: %w", id, lineage.ErrNotFound)
		case projected.IsErased(b):
			return nil, fmt.Errorf("content %v: %w", id, lineage.ErrErased)
		case content.Sum(b.Body) != id:
			return nil, &sqladapter.TableError{Table: tables.Blocks.Name, Err: sqladapter.ErrCorrupt, Detail: "the body of content " + id.String() + " is another"}
		}
		blocks[i] = b
	}
	return blocks, nil
}

// blocksUpTo returns content of a projection by id, with bodies up to a size.
func blocksUpTo(ctx context.Context, db *sqladapter.DB, ids []string, most int) (map[string]*structure.Block, error) {
	blocks, err := lists.ReadList(ctx, db, scanBlock, saidSQL.blocks, ids, most)
	found := make(map[string]*structure.Block, len(blocks))
	for _, b := range blocks {
		found[b.ID.String()] = b
	}
	return found, err
}

func scanBlock(rows *sqladapter.Rows) (*structure.Block, error) {
	var id, kind string
	var parent sql.NullString
	var created int64
	var erased bool
	b := structure.Described(content.Block{})
	err := rows.Scan(&id, &b.Type, &kind, &parent, &created, &b.Size, &erased, &b.Body)
	if err != nil {
		return nil, err
	}
	if b.ID, err = content.ParseID(id); err == nil {
		b.Origin.Kind, err = content.ParseOriginKind(kind)
	}
	if err == nil && parent.Valid {
		b.Origin.ParentID, err = content.ParseID(parent.String)
	}
	if err != nil {
		return nil, &sqladapter.TableError{Table: tables.Blocks.Name, Err: sqladapter.ErrCorrupt, Detail: fmt.Sprintf("row %q: %v", id, err)}
	}
	b.CreatedAt = time.UnixMilli(created).UTC()
	switch {
	case erased:
		b.Body = nil
	case b.Size > content.InlineLimit && b.Body == nil:
		b.Tree.Size = b.Size // the body was not read
	case b.Body == nil:
		b.Body = []byte{}
	}
	return b, nil
}
