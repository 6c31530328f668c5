package project

import (
	"context"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

var blockSQL = struct {
	known, used, derived, parents sqladapter.Statement
}{
	known: `SELECT "id", "content_type", "created_at", "erased" FROM "content_blocks" WHERE "id" IN ({list})`,
	used: `SELECT "id" FROM "content_blocks" b WHERE "id" IN ({list}) ` +
		`AND (EXISTS (SELECT 1 FROM "message_usages" u WHERE u."content_id" = b."id") ` +
		`OR EXISTS (SELECT 1 FROM "message_usages" u WHERE u."form_id" = b."id") ` +
		`OR EXISTS (SELECT 1 FROM "message_usages" u WHERE u."metadata_id" = b."id"))`,
	derived: `SELECT DISTINCT "origin_parent_id" FROM "content_blocks" WHERE "origin_parent_id" IN ({list})`,
	parents: `SELECT DISTINCT "origin_parent_id" FROM "content_blocks" WHERE "id" IN ({list}) AND "origin_parent_id" IS NOT NULL`,
}

// Indexes of columns of content_blocks. A bare row has only an id. Its content was erased, or is missing while other
// content is derived from it.
const blockType, blockParent, blockCreated, blockErased = 1, 7, 8, 10

// bareBlock returns a bare row.
func bareBlock(id string, erased bool) []any {
	return []any{id, "", []byte{}, content.OriginUnknown.String(), nil, nil, nil, nil, 0, 0, projected.Boolean(erased)}
}

func isBare(row []any) bool { return row[blockType] == "" }

// addBlock adds a block to the batch, with the rows it refers to. body is nil if the bytes are
// missing.
func (b *batch) addBlock(block *structure.Block, mediaType string, body []byte) {
	if body == nil {
		body = []byte{}
	}
	parent := block.Origin.ParentID
	if !parent.IsZero() && parent != block.ID {
		b.addBare(parent, false)
	}
	b.putBlock([]any{
		block.ID.String(), mediaType, body, block.Origin.Kind.String(), nil, nil, nil, projected.HashText(parent),
		block.CreatedAt.UnixMilli(), block.Size, 0,
	})
	b.bytes += len(body) + 200
}

// hasBlock reports whether the batch has a row for a block that is not bare.
func (b *batch) hasBlock(id content.ID) bool {
	row := b.blocks[id.String()]
	return row != nil && !isBare(row)
}

// addBare adds a bare row for content that is missing or erased.
func (b *batch) addBare(id content.ID, erased bool) {
	if row := b.blocks[id.String()]; row == nil || erased && isBare(row) {
		b.putBlock(bareBlock(id.String(), erased))
	}
}

// putBlock adds the row of a block. It replaces a row of the block in the batch.
func (b *batch) putBlock(row []any) {
	if b.blocks == nil {
		b.blocks = make(map[string][]any)
	}
	id := row[0].(string)
	if b.blocks[id] == nil {
		b.blockOrder = append(b.blockOrder, id)
	}
	b.blocks[id] = row
	b.n++
}

// insertBlocks inserts the missing blocks of a batch, completes bare rows, empties the rows of erased blocks, and
// replaces rows of blocks that the store has deleted and stored again.
func insertBlocks(ctx context.Context, c *sqladapter.Conn, b *batch) error {
	found, err := lists.CollectList(ctx, c, func(rows *sqladapter.Rows) (k knownBlock, err error) {
		err = rows.Scan(&k.id, &k.mediaType, &k.created, &k.erased)
		return k, err
	}, blockSQL.known, b.blockOrder)
	if err != nil {
		return err
	}
	existing := make(map[string]knownBlock, len(found))
	for _, k := range found {
		existing[k.id] = k
	}
	var added, changed [][]any
	for _, id := range b.blockOrder {
		row := b.blocks[id]
		if stored, known := existing[id]; !known {
			added = append(added, row)
		} else if !isBare(row) && (row[blockType] != stored.mediaType || row[blockCreated] != stored.created) || row[blockErased] == 1 && !stored.erased {
			changed = append(changed, row)
		}
	}
	// Blocks from which the changed ones were derived may be unused now.
	parents, err := lists.CollectList(ctx, c, lists.ScanString, blockSQL.parents, keysOf(changed))
	if err == nil {
		err = addOrphans(ctx, c, parents)
	}
	if err == nil {
		err = lists.Insert(ctx, c, tables.Blocks.Insert, parentsFirst(added))
	}
	for _, row := range changed {
		if err == nil {
			_, err = c.Exec(ctx, tables.Blocks.Update, append(row[1:len(row):len(row)], row[0])...)
		}
	}
	return err
}

// knownBlock is the part of a row of content_blocks that insertBlocks compares.
type knownBlock struct {
	id, mediaType string
	created       int64
	erased        bool
}

// parentsFirst orders blocks so that each comes after the one that it is derived from.
func parentsFirst(rows [][]any) [][]any {
	waiting := make(map[any][]any, len(rows))
	for _, row := range rows {
		waiting[row[0]] = row
	}
	ordered := make([][]any, 0, len(rows))
	var add func(row []any)
	add = func(row []any) {
		if row != nil && waiting[row[0]] != nil {
			delete(waiting, row[0])
			add(waiting[row[blockParent]])
			ordered = append(ordered, row)
		}
	}
	for _, row := range rows {
		add(row)
	}
	return ordered
}

// addOrphans records content that may be unused now: see sweep.
func addOrphans(ctx context.Context, c *sqladapter.Conn, ids []string) error {
	return insertMissing(ctx, c, tables.Orphans, ids, func(id string) []any { return []any{id} })
}
