package project

import (
	"context"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

var compareSQL = struct {
	texts, rowTexts sqladapter.Statement
}{
	texts: `SELECT "messageId", "chatId", "name", "content" FROM "messages_fts" WHERE "messageId" IN ({list})`,
	rowTexts: `SELECT f."messageId", f."chatId", f."name", f."content" FROM "lineage_messages" k ` +
		`JOIN "messages_fts" f ON f."rowid" = k."row" WHERE k."messageId" IN ({list}) AND k."hasText" = 1`,
}

// comparer is the state of a comparison.
type comparer struct {
	w     *applier
	yield func(Difference) error
	// found has the keys of the expected rows, for tables whose rows are remembered. counts has the number of
	// expected rows for the others.
	counts map[*tables.Table]int64
	found  map[*tables.Table]map[string]bool
}

var errStop = errors.New("stopped")

var (
	documentedTables = []*tables.Table{tables.Chats, tables.Messages, tables.Origins, tables.Branches, tables.Checkpoints}
	projectedTables  = []*tables.Table{tables.Sets, tables.Spans, tables.Usages, tables.Contexts, tables.Values, tables.Summaries, tables.Users, tables.Blocks}

	texts = tables.New("messages_fts", 1, "messageId chatId name content")
)

// textQuery reads the rows of the documented full-text index for a list of messages.
func (c *comparer) textQuery() sqladapter.Statement {
	if c.w.DB.Dialect().Search().Numbered {
		return compareSQL.rowTexts
	}
	return compareSQL.texts
}

// textRows returns the rows of messages in the documented full-text index.
func (c *comparer) textRows(messages []chat.Message) [][]any {
	rows, limits := make([][]any, len(messages)), c.w.DB.Dialect().Limits()
	for i, m := range messages {
		rows[i] = []any{m.ID, m.ChatID, m.Name, chatrows.Fitting(limits, form.Searched(m.Data, m.Name))}
	}
	return rows
}

// compareRows compares rows with those that a query finds by their keys.
func (c *comparer) compareRows(ctx context.Context, t *tables.Table, query sqladapter.Statement, rows [][]any) error {
	for part := range lists.Batches(rows, 200) {
		stored, err := lists.ReadList(ctx, c.w.DB, scanRow(t), query, keysOf(part))
		if err != nil {
			return err
		}
		has := byKey(stored)
		for _, want := range part {
			d := Difference{Kind: Missing, Table: t.Name, ID: want[0].(string)}
			if got, found := has[d.ID]; found {
				c.count(t, d.ID)
				d.Kind = Different
				for _, i := range differences(t, want, got) {
					d.Columns = append(d.Columns, t.Columns[i])
				}
				if len(d.Columns) == 0 {
					continue
				}
			}
			if err := c.yield(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// remembered are the tables for which the keys of expected rows are remembered.
var remembered = []*tables.Table{tables.Chats, tables.Branches, tables.Checkpoints, tables.Contexts, tables.Sets, tables.Values, tables.Summaries}

// count records that an expected row was found.
func (c *comparer) count(t *tables.Table, id string) {
	if !slices.Contains(remembered, t) {
		c.counts[t]++
		return
	}
	if c.found[t] == nil {
		c.found[t] = make(map[string]bool)
	}
	c.found[t][id] = true
}
