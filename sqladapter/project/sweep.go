package project

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

var sweepSQL = struct {
	orphans, unusedUsers sqladapter.Statement
}{
	orphans: `SELECT "content_id" FROM "lineage_orphans" ORDER BY "content_id" {limit}`,
	unusedUsers: `DELETE FROM "users" WHERE NOT EXISTS (SELECT 1 FROM "content_blocks" ` +
		`WHERE "content_blocks"."origin_user_id" = "users"."id") AND NOT EXISTS (SELECT 1 FROM "message_usages" ` +
		`WHERE "message_usages"."origin_user_id" = "users"."id") AND NOT EXISTS (SELECT 1 FROM "chats" ` +
		`WHERE "chats"."userId" {exactly} = "users"."id")`,
}

// sweepStep is the number of blocks checked per transaction.
const sweepStep = 200

// sweep deletes unused content and users.
func (w *applier) sweep(ctx context.Context) error {
	for {
		left := false
		err := w.DB.Read(ctx, func(c *sqladapter.Conn) error {
			orphan, err := lists.First(ctx, c, lists.ScanString, sweepSQL.orphans, 1)
			left = orphan != nil
			return err
		})
		if err != nil || !left {
			return err
		}
		w.batch.before = append(w.batch.before, sweepSome)
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
}

// sweepSome deletes some orphans if they are not used, and users without content.
func sweepSome(ctx context.Context, c *sqladapter.Conn) error {
	ids, err := lists.Collect(ctx, c, lists.ScanString, sweepSQL.orphans, sweepStep)
	if err != nil {
		return err
	}
	used, err := lists.CollectSet(ctx, c, blockSQL.used, ids)
	if err != nil {
		return err
	}
	if err := lists.ExecList(ctx, c, tables.Orphans.Remove, ids); err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return used[id] })
	parents, err := lists.CollectList(ctx, c, lists.ScanString, blockSQL.parents, gone)
	if err != nil {
		return err
	}
	derived, err := lists.CollectSet(ctx, c, blockSQL.derived, gone)
	if err != nil {
		return err
	}
	for id := range derived {
		if _, err := c.Exec(ctx, tables.Blocks.Update, append(bareBlock(id, false)[1:], id)...); err != nil {
			return err
		}
	}
	gone = slices.DeleteFunc(gone, func(id string) bool { return derived[id] })
	if err := lists.ExecList(ctx, c, tables.Blocks.Remove, gone); err != nil {
		return err
	}
	if err := addOrphans(ctx, c, parents); err != nil || len(ids) == sweepStep || len(parents) > 0 {
		return err
	}
	_, err = c.Exec(ctx, sweepSQL.unusedUsers)
	return err
}
