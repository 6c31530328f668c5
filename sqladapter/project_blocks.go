package sqladapter

import (
	"context"
	"database/sql"
	"maps"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// blockRow is a row of content_blocks. A bare one is of content of which nothing is
// known but its id: it was erased, or is not here and other content was derived from
// it.
type blockRow struct {
	id           string
	bare, erased bool
	block        *structure.Block
	body         []byte
	parent       string
}

// mostBody is how long a body may be to be brought. Longer ones stay in the store:
// databases have no good place for them.
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

// addBlock adds a block to the batch, with what it refers to. body is nil when the
// bytes are not there.
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

// addBare adds a row of content that is not here, because it was erased if that is so.
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

// values are all columns but the id.
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

// insertBlocks inserts the blocks of a batch that are missing, and fills in those
// that were bare. First come those without a parent, then the others, whose parents
// are then there, if only bare.
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

// insertDerived inserts blocks that were derived from others, some of which are
// among them: a block comes after its parent.
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
			now, later = rows, nil // they go round in a circle: let the database judge
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

// used returns which content usages name.
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
