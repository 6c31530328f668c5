package project

import (
	"context"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

var setSQL = struct{ setParent sqladapter.Statement }{
	setParent: `UPDATE "span_sets" SET "parent_span_id" = ? WHERE "id" = ?`,
}

// writeBatch writes a batch in a transaction.
func writeBatch(ctx context.Context, c *sqladapter.Conn, b *batch) error {
	for _, do := range b.before {
		if err := do(ctx, c); err != nil {
			return err
		}
	}
	if err := insertBatch(ctx, c, b); err != nil {
		return err
	}
	for _, do := range b.after {
		if err := do(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// insertBatch writes the rows of a batch.
func insertBatch(ctx context.Context, c *sqladapter.Conn, b *batch) error {
	if err := insertAll(ctx, c, b, tables.Scopes, tables.Chats, tables.Reach, tables.Pins, tables.Erased, tables.LeftOut, tables.Users); err != nil {
		return err
	}
	if err := insertBlocks(ctx, c, b); err != nil {
		return err
	}
	// A set follows a span that may be in the batch, and the set may contain a span of the batch.
	var parents []operation
	err := insertMissing(ctx, c, tables.Sets, keysOf(b.needed(tables.Sets)), func(id string) []any {
		row := b.missing[tables.Sets][id]
		if row[1] != nil {
			parents = append(parents, exec(setSQL.setParent, row[1], row[0]))
		}
		return []any{row[0], nil, row[2], row[3]}
	})
	if err == nil {
		err = insertAll(ctx, c, b, tables.Spans)
	}
	for _, set := range parents {
		if err == nil {
			err = set(ctx, c)
		}
	}
	if err == nil {
		err = insertAll(ctx, c, b, tables.Usages, tables.Contexts, tables.Values, tables.Summaries)
	}
	if err != nil {
		return err
	}
	if len(b.messages) > 0 {
		if err := chatrows.Insert(ctx, c, b.messages); err != nil {
			return err
		}
	}
	return insertAll(ctx, c, b, tables.Branches, tables.Checkpoints)
}

// insertAll writes the rows of tables.
func insertAll(ctx context.Context, c *sqladapter.Conn, b *batch, list ...*tables.Table) error {
	for _, t := range list {
		if err := lists.Insert(ctx, c, t.Insert, b.rows[t]); err != nil {
			return err
		}
		missing := b.missing[t]
		if err := insertMissing(ctx, c, t, keysOf(b.needed(t)), func(id string) []any { return missing[id] }); err != nil {
			return err
		}
		for _, w := range b.wanted[t] {
			if err := replace(ctx, c, t, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace makes the rows of a table equal to the wanted ones. A row whose first columns differ is inserted again,
// because another row may have got its name.
func replace(ctx context.Context, c *sqladapter.Conn, t *tables.Table, w wanted) error {
	var found [][]any
	var err error
	if w.owner != nil {
		found, err = lists.Collect(ctx, c, scanRow(t), t.SelectOf, w.owner...)
	} else {
		found, err = lists.CollectList(ctx, c, scanRow(t), t.Select, keysOf(w.rows))
	}
	if err != nil {
		return err
	}
	has := byKey(found)
	var gone []string
	var added, changed [][]any
	for _, row := range w.rows {
		id := row[0].(string)
		was, there := has[id]
		delete(has, id)
		if !there {
			added = append(added, row)
		} else if differ := differences(t, row, was); len(differ) > 0 && differ[0] < t.Fixed {
			gone, added = append(gone, id), append(added, row)
		} else if len(differ) > 0 {
			changed = append(changed, row)
		}
	}
	if w.owner != nil {
		gone = slices.AppendSeq(gone, maps.Keys(has))
	}
	if err := lists.ExecList(ctx, c, t.Remove, gone); err != nil {
		return err
	}
	for _, row := range changed {
		if _, err := c.Exec(ctx, t.Update, append(row[t.Fixed:len(row):len(row)], row[0])...); err != nil {
			return err
		}
	}
	return lists.Insert(ctx, c, t.Insert, added)
}
