package sqladapter

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// belonging returns, for tables whose rows are not remembered, a function that reports whether the
// row with a key has a counterpart in the store.
func (c *comparer) belonging(ctx context.Context) map[*tables.Table]func(id string) (bool, error) {
	chats := chat.On(c.w.Store)
	message := func(id string) (*chat.Message, error) {
		in, err := read(ctx, c.w.DB, func(conn *Conn) (map[string]string, error) { return conn.chatsOf(ctx, []string{id}) })
		if err != nil {
			return nil, err
		}
		return chats.Message(ctx, in[id], id)
	}
	return map[*tables.Table]func(id string) (bool, error){
		tables.Messages: func(id string) (bool, error) {
			m, err := message(id)
			if errors.Is(err, chat.ErrOtherChat) { // the row differs in its chat
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

func exists(_ any, err error) (bool, error) {
	if errors.Is(err, lineage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
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

// hasContent reports whether content is used by a compared row, or other content here is derived
// from it.
func (c *comparer) hasContent(ctx context.Context, id string) (has bool, err error) {
	err = c.w.DB.Read(ctx, func(conn *Conn) error {
		found, err := conn.has(ctx, blockSQL.used, []string{id})
		if err == nil && !found[id] {
			found, err = conn.has(ctx, blockSQL.derived, []string{id})
		}
		has = found[id]
		return err
	})
	return has, err
}
