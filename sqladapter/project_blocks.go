package sqladapter

import (
	"context"
	"database/sql"
	"maps"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// blockRow is a row of content_blocks. A bare one has only an id: the content was erased, or is
// missing but other content is derived from it.
type blockRow struct {
	id           string
	bare, erased bool
	block        *structure.Block
	body         []byte
	parent       string
}

// mostBody is the maximum size of a projected body. Larger ones stay in the store, because they are
// unsuitable for databases.
const mostBody = 64 << 20

var blockSQL = struct {
	known, orphans, removeOrphans                      Statement
	used, usedAsForm, usedAsMetadata, derived, parents Statement
	remove, unusedUsers                                Statement
}{
	known:          `SELECT "id", "content_type", "erased" FROM "content_blocks" WHERE "id" IN ({list})`,
	orphans:        `SELECT "content_id" FROM "lineage_orphans" ORDER BY "content_id" {limit}`,
	removeOrphans:  `DELETE FROM "lineage_orphans" WHERE "content_id" IN ({list})`,
	used:           `SELECT DISTINCT "content_id" FROM "message_usages" WHERE "content_id" IN ({list})`,
	usedAsForm:     `SELECT DISTINCT "form_id" FROM "message_usages" WHERE "form_id" IN ({list})`,
	usedAsMetadata: `SELECT DISTINCT "metadata_id" FROM "message_usages" WHERE "metadata_id" IN ({list})`,
	derived:        `SELECT DISTINCT "origin_parent_id" FROM "content_blocks" WHERE "origin_parent_id" IN ({list})`,
	parents:        `SELECT DISTINCT "origin_parent_id" FROM "content_blocks" WHERE "id" IN ({list}) AND "origin_parent_id" IS NOT NULL`,
	remove:         `DELETE FROM "content_blocks" WHERE "id" IN ({list})`,
	unusedUsers: `DELETE FROM "users" WHERE NOT EXISTS (SELECT 1 FROM "content_blocks" ` +
		`WHERE "content_blocks"."origin_user_id" = "users"."id") AND NOT EXISTS (SELECT 1 FROM "message_usages" ` +
		`WHERE "message_usages"."origin_user_id" = "users"."id") AND NOT EXISTS (SELECT 1 FROM "chats" ` +
		`WHERE "chats"."userId" {exactly} = "users"."id")`,
}

// addBlock adds a block to the batch, with the rows it refers to. body is nil if the bytes are
// missing.
func (b *batch) addBlock(block *structure.Block, body []byte) {
	id := block.ID.String()
	row := &blockRow{id: id, block: block, body: body}
	if !block.Origin.ParentID.IsZero() {
		row.parent = block.Origin.ParentID.String()
		if row.parent != id {
			b.addBare(block.Origin.ParentID, false)
		}
	}
	b.putBlock(row)
	b.n++
	b.bytes += len(body) + 200
}

// hasBlock reports whether the batch has a row of a block that is not bare.
func (b *batch) hasBlock(id content.ID) bool {
	known := b.blocks[id.String()]
	return known != nil && !known.bare
}

// addBare adds a bare row for content that is missing or erased.
func (b *batch) addBare(id content.ID, erased bool) {
	key := id.String()
	if b.blocks[key] == nil {
		b.putBlock(&blockRow{id: key, bare: true})
		b.n++
	}
	if row := b.blocks[key]; row.bare && erased {
		row.erased = true
	}
}

func (b *batch) putBlock(row *blockRow) {
	if b.blocks == nil {
		b.blocks = make(map[string]*blockRow)
	}
	if b.blocks[row.id] == nil {
		b.blockOrder = append(b.blockOrder, row.id)
	}
	b.blocks[row.id] = row
}

// values are all columns except the id.
func (r *blockRow) values() []any {
	if r.bare {
		return []any{"", []byte{}, content.OriginUnknown.String(), nil, nil, nil, nil, 0, 0, boolean(r.erased)}
	}
	body := r.body
	if body == nil {
		body = []byte{}
	}
	return []any{
		r.block.Type, body, r.block.Origin.Kind.String(), nil, nil, nil, optional(r.parent),
		r.block.CreatedAt.UnixMilli(), r.block.Size, 0,
	}
}

// insertBlocks inserts the missing blocks of a batch, and fills in bare ones. Blocks without a
// parent come first; the parents of the others then exist, at least bare.
func (c *Conn) insertBlocks(ctx context.Context, b *batch) error {
	if len(b.blocks) == 0 {
		return nil
	}
	type known struct {
		id, contentType string
		erased          bool
	}
	there := make(map[string]known)
	for part := range batches(b.blockOrder, maxList) {
		args := padded(part)
		rows, err := c.QueryN(ctx, blockSQL.known, len(args), args...)
		found, err := all(rows, err, func(rows *sql.Rows) (k known, err error) {
			err = rows.Scan(&k.id, &k.contentType, &k.erased)
			return k, err
		})
		if err != nil {
			return err
		}
		for _, k := range found {
			there[k.id] = k
		}
	}
	var roots, derived [][]any
	var fill []*blockRow
	for _, id := range b.blockOrder {
		row := b.blocks[id]
		is, known := there[id]
		switch {
		case known && (is.contentType != "" || row.bare && (is.erased || !row.erased)):
		case known:
			fill = append(fill, row)
		case row.parent == "":
			roots = append(roots, append([]any{id}, row.values()...))
		default:
			derived = append(derived, append([]any{id}, row.values()...))
		}
	}
	if err := c.insert(ctx, sqlOf[tables.Blocks].insert, roots); err != nil {
		return err
	}
	if err := c.insertDerived(ctx, derived); err != nil {
		return err
	}
	for _, row := range fill {
		if _, err := c.Exec(ctx, sqlOf[tables.Blocks].update, append(row.values(), row.id)...); err != nil {
			return err
		}
	}
	return nil
}

// insertDerived inserts blocks derived from others, each after its parent.
func (c *Conn) insertDerived(ctx context.Context, rows [][]any) error {
	const id, parent = 0, 7
	waiting := make(map[any]bool, len(rows))
	for _, row := range rows {
		waiting[row[id]] = true
	}
	for len(rows) > 0 {
		var now, later [][]any
		for _, row := range rows {
			if waiting[row[parent]] && row[parent] != row[id] {
				later = append(later, row)
			} else {
				now = append(now, row)
			}
		}
		if len(now) == 0 {
			now, later = rows, nil // circular: let the database report it
		}
		if err := c.insert(ctx, sqlOf[tables.Blocks].insert, now); err != nil {
			return err
		}
		for _, row := range now {
			delete(waiting, row[id])
		}
		rows = later
	}
	return nil
}

// used returns which content is used by usages.
func (c *Conn) used(ctx context.Context, ids []string) (map[string]bool, error) {
	used := make(map[string]bool)
	for _, s := range [...]Statement{blockSQL.used, blockSQL.usedAsForm, blockSQL.usedAsMetadata} {
		found, err := c.has(ctx, s, ids)
		if err != nil {
			return nil, err
		}
		maps.Copy(used, found)
	}
	return used, nil
}
