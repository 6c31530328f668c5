package project

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// CompareOptions configure a comparison.
type CompareOptions struct {
	// Progress, when not nil, is called with the number of compared threads and contexts outside of
	// threads.
	Progress func(done, total int)
}

// Compare compares all projected rows of a database with the store, and yields the differences. The database must be
// up to date with the store: see Projector. The memory needed depends on the numbers of chats, contexts, names and
// values. For messages it is only a few bytes per run.
func Compare(ctx context.Context, db *sqladapter.DB, store *lineage.Store, o CompareOptions) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		c := &comparer{yield: func(d Difference) error {
			if !yield(d, nil) {
				return errStop
			}
			return nil
		}, counts: make(map[*tables.Table]int64), found: make(map[*tables.Table]map[string]bool)}
		err := c.run(ctx, db, store, o)
		if errors.Is(err, lineage.ErrExpired) {
			err = fmt.Errorf("another process collected garbage or closed the store during the comparison; repeat it: %w", err)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Difference{}, err)
		}
	}
}

// checkIntegrity returns an error if the database reports damage in a table to compare. Rows that are read through a
// damaged index may differ from those in the table.
func (c *comparer) checkIntegrity(ctx context.Context, db *sqladapter.DB) error {
	check := db.Dialect().Syntax().Integrity
	if check == "" {
		return nil
	}
	list := []*tables.Table{tables.Chats, tables.Messages, tables.Branches, tables.Checkpoints}
	if !c.w.ChatsOnly {
		list = append(list, structureTables...)
	}
	return db.Read(ctx, func(conn *sqladapter.Conn) error {
		for _, table := range list {
			found, err := lists.Collect(ctx, conn, lists.ScanString, check, table.Name)
			if err != nil {
				return err
			}
			if len(found) != 1 || found[0] != "ok" {
				return &sqladapter.TableError{Table: table.Name, Err: sqladapter.ErrCorrupt, Detail: strings.Join(found[:min(len(found), 3)], "; ")}
			}
		}
		return nil
	})
}

func (c *comparer) run(ctx context.Context, db *sqladapter.DB, store *lineage.Store, o CompareOptions) error {
	mark, err := lists.Read(ctx, db, func(conn *sqladapter.Conn) (*projected.Mark, error) { return projected.ReadMark(ctx, conn) })
	if err != nil {
		return err
	}
	p := &Projector{Store: store, DB: db, ChatsOnly: mark != nil && !mark.Lineage}
	if err := p.check(mark); err != nil {
		return err
	}
	snapshot, err := store.View().Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	head, err := snapshot.Head(ctx)
	if err != nil {
		return err
	}
	c.w = &applier{
		Projector: p, state: snapshot, report: &Report{}, limit: 2000,
		usages: make(map[string]uint64), places: make(map[structure.ContextID]placed), check: c.compare,
	}
	if err := mark.Check(ctx, store); err != nil {
		return ahead(err)
	}
	if mark.At != head || !mark.Settled() {
		return fmt.Errorf("database has commit %d of %d: %w", mark.At.Number, head.Number, ErrBehind)
	}
	if err := c.checkIntegrity(ctx, db); err != nil {
		return err
	}
	if c.w.leftOut, err = p.readLeftOut(ctx); err != nil {
		return err
	}
	todo, err := c.w.resolve(ctx, derived.NewChanges())
	if err != nil {
		return err
	}
	c.w.valueOwners = todo.owners
	for i, s := range todo.scopes {
		if c.w.isOut(s.key) {
			err = c.missing(ctx, s)
		} else {
			err = c.w.grow(ctx, s)
		}
		if err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(i+1, len(todo.scopes))
		}
	}
	if err := c.w.writeValues(ctx, todo.forks); err != nil {
		return err
	}
	if err := c.w.flush(ctx); err != nil {
		return err
	}
	return c.extras(ctx)
}

// missing yields a scope that is left out.
func (c *comparer) missing(ctx context.Context, s *scope) error {
	if s.thread.IsZero() {
		return c.yield(Difference{Kind: Missing, Table: tables.Contexts.Name, ID: s.context.String()})
	}
	t, err := c.w.state.Thread(ctx, s.thread)
	if err != nil {
		return err
	}
	return c.yield(Difference{Kind: Missing, Table: tables.Chats.Name, ID: chat.IDOfThread(t)})
}

// compare compares a batch with the rows in the database.
func (c *comparer) compare(ctx context.Context, b *batch) error {
	rows := map[*tables.Table][][]any{tables.Messages: chatrows.MessageRows(b.messages), tables.Origins: chatrows.OriginRows(b.messages), tables.Blocks: blockRows(b)}
	for _, t := range append(documentedTables, projectedTables...) {
		if err := c.compareRows(ctx, t, t.Select, slices.Concat(rows[t], b.rows[t], b.needed(t))); err != nil {
			return err
		}
	}
	return c.compareRows(ctx, texts, c.textQuery(), c.textRows(b.messages))
}

// blockRows returns the rows of blocks. Only the id of a bare block is compared, because another scope may have its
// content.
func blockRows(b *batch) [][]any {
	var rows [][]any
	for _, id := range b.blockOrder {
		row := b.blocks[id]
		if isBare(row) && row[blockErased] == 0 {
			row = row[:1]
		}
		rows = append(rows, row)
	}
	return rows
}
