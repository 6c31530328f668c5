package chatrows

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
)

// The depth of a message is the length of its chain.

var depthSQL = struct {
	depths, above, links sqladapter.Statement
}{
	depths: `SELECT "messageId", "depth" FROM "lineage_messages" WHERE "messageId" IN ({list})`,
	above: `WITH {recursive} "above" ("parentId", "depth", "step") AS (` +
		`SELECT m."parentId", k."depth", 1 FROM "messages" m LEFT JOIN "lineage_messages" k ON {same:m.id=k.messageId} WHERE m."id" = ? AND m."chatId" = ? ` +
		`UNION ALL ` +
		`SELECT m."parentId", k."depth", a."step" + 1 FROM "above" a JOIN "messages" m ON m."id" = a."parentId" ` +
		`LEFT JOIN "lineage_messages" k ON {same:m.id=k.messageId} WHERE a."depth" IS NULL AND a."step" < ? AND m."chatId" = ?` +
		`) SELECT "depth", "step" FROM "above" ORDER BY "step" DESC {limit}`,
	links: `SELECT "chatId", "id", "parentId" FROM "messages" WHERE "chatId" IN ({list})`,
}

// Depths returns the lengths of the chains of messages that are in a chat. Lengths of indexed messages are
// stored, if the database counts. For one message that is not indexed, the chain is followed to an indexed one
// nearby; otherwise the whole chat is read.
func Depths(ctx context.Context, c *sqladapter.Conn, chatID string, ids []string) (map[string]int, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if !c.Dialect().Search().Counted {
		return AllDepths(ctx, c, []string{chatID})
	}
	depths, err := lists.CollectMap[int](ctx, c, depthSQL.depths, ids)
	if err != nil {
		return nil, err
	}
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return depths[id] > 0 })
	if len(unknown) == 0 {
		return depths, nil
	}
	if len(unknown) == 1 {
		depth, near, err := depth(ctx, c, chatID, unknown[0])
		if near || err != nil {
			depths[unknown[0]] = depth
			return depths, err
		}
	}
	return AllDepths(ctx, c, []string{chatID})
}

// depthSteps is the number of messages after an indexed one that depth follows.
const depthSteps = 1000

// depth returns the chain length of a message that is not indexed, 0 if it is not in the chat. near is false
// if no indexed message is near.
func depth(ctx context.Context, c *sqladapter.Conn, chatID, id string) (depth int, near bool, err error) {
	var above sql.NullInt64
	steps := 0
	if _, err := c.Get(ctx, depthSQL.above, []any{id, chatID, depthSteps, chatID, 1}, &above, &steps); err != nil {
		return 0, false, err
	}
	if above.Valid {
		return steps - 1 + int(above.Int64), true, nil
	}
	return steps, steps < depthSteps, nil
}

// NewDepths returns the chain lengths of messages whose parents come before them or exist already,
// if lengths are stored.
func NewDepths(ctx context.Context, c *sqladapter.Conn, messages []chat.Message) (map[string]int, error) {
	if !c.Dialect().Search().Counted {
		return nil, nil
	}
	depths := make(map[string]int, len(messages))
	own := make(map[string]bool, len(messages))
	parents := make(map[string][]string) // existing ones, by chat
	for _, m := range messages {
		if m.ParentID != "" && !own[string(m.ParentID)] {
			parents[m.ChatID] = append(parents[m.ChatID], string(m.ParentID))
		}
		own[m.ID] = true
	}
	for chatID, ids := range parents {
		above, err := Depths(ctx, c, chatID, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			depths[id] = above[id]
		}
	}
	for _, m := range messages {
		depths[m.ID] = depths[string(m.ParentID)] + 1
	}
	return depths, nil
}

// AllDepths returns the chain lengths of all messages of chats.
func AllDepths(ctx context.Context, c *sqladapter.Conn, chats []string) (map[string]int, error) {
	links := make(map[string][]Link)
	_, err := lists.CollectList(ctx, c, func(rows *sqladapter.Rows) (_ struct{}, err error) {
		var chatID string
		var l Link
		var parent sql.NullString
		err = rows.Scan(&chatID, &l.ID, &parent)
		l.Parent = parent.String
		links[chatID] = append(links[chatID], l)
		return struct{}{}, err
	}, depthSQL.links, chats)
	if err != nil {
		return nil, err
	}
	depths := make(map[string]int)
	for _, id := range slices.Sorted(maps.Keys(links)) {
		some, err := DepthsOf(links[id])
		if err != nil {
			return nil, err
		}
		maps.Copy(depths, some)
	}
	return depths, nil
}

// DepthsOf returns the lengths of the chains formed by links. Parents that are not in links do not
// count.
func DepthsOf(links []Link) (map[string]int, error) {
	parents := make(map[string]string, len(links))
	for _, l := range links {
		parents[l.ID] = l.Parent
	}
	depths := make(map[string]int, len(links))
	var path []string
	for _, l := range links {
		path = path[:0]
		at := l.ID
		for at != "" && depths[at] == 0 {
			if _, ok := parents[at]; !ok {
				break
			}
			if len(path) > len(links) {
				return nil, &sqladapter.TableError{Table: "messages", Err: sqladapter.ErrCorrupt, Detail: "message " + l.ID + " is its own ancestor"}
			}
			path = append(path, at)
			at = parents[at]
		}
		depth := depths[at]
		for _, id := range slices.Backward(path) {
			depth++
			depths[id] = depth
		}
	}
	return depths, nil
}
