package sqlchat

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
)

var summarySQL = struct {
	context, ofContext sqladapter.Statement
}{
	context: `SELECT "id", "thread_id" FROM "contexts" WHERE "branch_id" = ? AND "chat_id" = ?`,
	ofContext: `WITH {recursive} "line" ("id", "parent", "nesting") AS (SELECT "id", "parent_context_id", 0 FROM "contexts" WHERE "id" = ? ` +
		`UNION ALL SELECT c."id", c."parent_context_id", l."nesting" + 1 FROM "line" l JOIN "contexts" c ON c."id" = l."parent" AND c."remnant" = 0) ` +
		`SELECT s."level", s."after_span_id", s."to_span_id", s."summary_text" FROM "line" l JOIN "lineage_summaries" s ON s."context_id" = l."id" ` +
		`WHERE s."summary_text" IS NOT NULL ORDER BY l."nesting", s."id" {unlimited}`,
}

// storedSummary is a row of lineage_summaries.
type storedSummary struct {
	level     int
	after, to sql.NullString
	text      string
}

func scanSummary(rows *sqladapter.Rows) (s storedSummary, err error) {
	err = rows.Scan(&s.level, &s.after, &s.to, &s.text)
	return s, err
}

// Summaries implements chat.Store. Only a projection with content and structure has summaries. They are those of the
// branch's context and of the contexts that it was forked from. A summary counts only if its messages are in the
// chain of the branch.
func (s *store) Summaries(ctx context.Context, chatID, branchID string) ([]chat.Summary, error) {
	b, err := lists.Read(ctx, s.db, func(c *sqladapter.Conn) (*chat.Branch, error) { return mustBranch(ctx, c, chatID, branchID) })
	if errors.Is(err, chat.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	has, err := projected.HasContexts(ctx, s.db)
	if errors.Is(err, sqladapter.ErrOtherTables) {
		return nil, nil // the table does not exist
	}
	if err != nil || !has {
		return nil, err
	}
	contexts, err := lists.ReadAll(ctx, s.db, chatrows.ScanLink, summarySQL.context, b.ID, chatID)
	if err != nil || len(contexts) == 0 {
		return nil, err
	}
	id, thread := contexts[0].ID, contexts[0].Parent
	rows, err := lists.ReadAll(ctx, s.db, scanSummary, summarySQL.ofContext, id)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	chain, err := lists.Read(ctx, s.db, func(c *sqladapter.Conn) ([]string, error) { return chainOf(ctx, c, chatID, string(b.HeadMessageID)) })
	if err != nil {
		return nil, err
	}
	places := map[chat.Ref]int{"": 0}
	for i, id := range chain {
		places[chat.Ref(id)] = i + 1
	}
	placeOf := func(span sql.NullString) (place int, on bool, err error) {
		at, err := projected.MessageAt(ctx, s.db, chatID, thread, span)
		if errors.Is(err, chat.ErrNotFound) {
			return 0, false, nil
		}
		place, on = places[at]
		return place, on, err
	}
	var summaries []chat.Summary
	for _, row := range rows {
		before, follows, err := placeOf(row.after)
		if err != nil {
			return nil, err
		}
		last, end, err := placeOf(row.to)
		if err != nil {
			return nil, err
		}
		if follows && end {
			summaries = append(summaries, chat.Summary{First: before + 1, Last: last, Level: row.level, Text: row.text})
		}
	}
	slices.SortStableFunc(summaries, func(a, b chat.Summary) int { return cmp.Compare(a.First, b.First) })
	return summaries, nil
}
