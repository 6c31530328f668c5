package project

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// belonging returns functions for the tables whose rows are not remembered. A function reports whether the row with a
// key has a counterpart in the store.
func (c *comparer) belonging(ctx context.Context) map[*tables.Table]func(id string) (bool, error) {
	chats := chat.On(c.w.Store)
	message := func(id string) (*chat.Message, error) {
		in, err := lists.Read(ctx, c.w.DB, func(conn *sqladapter.Conn) (map[string]string, error) {
			return chatrows.ChatsOf(ctx, conn, []string{id})
		})
		if err != nil {
			return nil, err
		}
		return chats.Message(ctx, in[id], id)
	}
	return map[*tables.Table]func(id string) (bool, error){
		tables.Messages: func(id string) (bool, error) {
			m, err := message(id)
			if errors.Is(err, chat.ErrOtherChat) { // the row states another chat
				return true, nil
			}
			return m != nil, err
		},
		tables.Origins: func(id string) (bool, error) {
			m, err := message(id)
			if errors.Is(err, chat.ErrOtherChat) {
				return false, nil
			}
			return m != nil && m.Origin != chat.Origin{}, err
		},
		tables.Spans:  func(id string) (bool, error) { return c.sees(id), nil },
		tables.Usages: func(id string) (bool, error) { return c.hasUsage(ctx, id) },
		tables.Blocks: func(id string) (bool, error) { return c.hasContent(ctx, id) },
	}
}

// sees reports whether anything in the store sees a span.
func (c *comparer) sees(id string) bool {
	at, err := structure.ParseSpanRef(id)
	return err == nil && at.String() == id && at.Seq > 0 && c.w.usages[at.Run.String()] >= at.Seq
}

func (c *comparer) hasUsage(ctx context.Context, id string) (bool, error) {
	span, place, _ := strings.Cut(id, ".")
	index, err := strconv.Atoi(place)
	if err != nil || strconv.Itoa(index) != place || !c.sees(span) {
		return false, nil
	}
	at, err := structure.ParseSpanRef(span)
	if err != nil {
		return false, nil
	}
	for step, err := range c.w.state.Path(ctx, at, structure.Window{Last: 1}, backend.PathOptions{}) {
		if err != nil {
			return false, err
		}
		return index >= 0 && index < len(step.Span.Usages), nil
	}
	return false, nil
}

// hasContent reports whether a compared row uses content, or other content in the database is derived from it.
func (c *comparer) hasContent(ctx context.Context, id string) (has bool, err error) {
	err = c.w.DB.Read(ctx, func(conn *sqladapter.Conn) error {
		found, err := lists.CollectSet(ctx, conn, blockSQL.used, []string{id})
		if err == nil && !found[id] {
			found, err = lists.CollectSet(ctx, conn, blockSQL.derived, []string{id})
		}
		has = found[id]
		return err
	})
	return has, err
}

// comparedPage is the number of ids per query when searching for extra rows.
const comparedPage = 500

// extras yields rows without a counterpart in the store.
func (c *comparer) extras(ctx context.Context) error {
	list := documentedTables
	if !c.w.ChatsOnly {
		list = append(list[:len(list):len(list)], projectedTables...)
	}
	belongs := c.belonging(ctx)
	for _, t := range list {
		if t == tables.Users {
			continue // unused rows are not searched for
		}
		if more, err := c.hasMore(ctx, t); err != nil {
			return err
		} else if !more {
			continue
		}
		if err := c.extraRows(ctx, t, belongs[t]); err != nil {
			return err
		}
	}
	return nil
}

// extraRows yields the rows of a table without a counterpart in the store: those that were not compared or, if belongs is not nil,
// for which it returns false.
func (c *comparer) extraRows(ctx context.Context, t *tables.Table, belongs func(id string) (bool, error)) error {
	if belongs == nil {
		belongs = func(id string) (bool, error) { return c.found[t][id], nil }
	}
	for after := ""; ; {
		ids, err := lists.ReadAll(ctx, c.w.DB, lists.ScanString, t.Page, after, comparedPage)
		if err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
		for _, id := range ids {
			ok, err := belongs(id)
			if err == nil && !ok {
				err = c.yield(Difference{Kind: Extra, Table: t.Name, ID: id})
			}
			if err != nil {
				return err
			}
		}
	}
}

// hasMore reports whether a table may have more rows than were compared. Blocks always may, because they belong to
// several threads.
func (c *comparer) hasMore(ctx context.Context, t *tables.Table) (more bool, err error) {
	if t == tables.Blocks {
		return true, nil
	}
	err = c.w.DB.Read(ctx, func(conn *sqladapter.Conn) error {
		var n int64
		_, err := conn.Get(ctx, t.Count, nil, &n)
		more = n != max(c.counts[t], int64(len(c.found[t])))
		return err
	})
	return more, err
}
