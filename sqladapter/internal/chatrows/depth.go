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

// The depth of a message is the length of its chain. Where depths are stored, triggers notice when other programs
// change chains. On SQLite they delete the rows of lineage_messages. On Postgres they increase the epoch of the chat,
// and depths of earlier epochs are ignored.

var depthSQL = struct {
	depths, above, links, epochs sqladapter.Statement
}{
	depths: `SELECT k."messageId", k."depth" FROM "lineage_messages" k WHERE k."messageId" IN ({list}) {lasting:k}`,
	above: `WITH {recursive} "above" ("parentId", "depth", "step") AS (` +
		`SELECT m."parentId", k."depth", 1 FROM "messages" m LEFT JOIN "lineage_messages" k ON {same:m.id=k.messageId} {lasting:k} WHERE m."id" = ? AND m."chatId" = ? ` +
		`UNION ALL ` +
		`SELECT m."parentId", k."depth", a."step" + 1 FROM "above" a JOIN "messages" m ON m."id" = a."parentId" ` +
		`LEFT JOIN "lineage_messages" k ON {same:m.id=k.messageId} {lasting:k} WHERE a."depth" IS NULL AND a."step" < ? AND m."chatId" = ?` +
		`) SELECT "depth", "step", "parentId" FROM "above" ORDER BY "step" DESC {limit}`,
	links:  `SELECT "chatId", "id", "parentId" FROM "messages" WHERE "chatId" IN ({list})`,
	epochs: `SELECT "chatId", "epoch" FROM "lineage_chains" WHERE "chatId" IN ({list})`,
}

// Depths returns the lengths of the chains of messages in a chat. If the database stores lengths, those of indexed
// messages are stored. For a single message that is not indexed, the chain is followed to an indexed message nearby.
// Otherwise the whole chat is read.
func Depths(ctx context.Context, c *sqladapter.Conn, chatID string, ids []string) (map[string]int, error) {
	depths, _, err := depthsIn(ctx, c, chatID, ids)
	return depths, err
}

// depthsIn is Depths. loose has those messages without a stored length whose chain does not begin with a message
// without a parent.
func depthsIn(ctx context.Context, c *sqladapter.Conn, chatID string, ids []string) (depths map[string]int, loose map[string]bool, err error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	if !c.Dialect().Search().Depths {
		depths, err = AllDepths(ctx, c, []string{chatID})
		return depths, nil, err
	}
	if depths, err = lists.CollectMap[int](ctx, c, depthSQL.depths, ids); err != nil {
		return nil, nil, err
	}
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return depths[id] > 0 })
	if len(unknown) == 0 {
		return depths, nil, nil
	}
	if len(unknown) == 1 {
		depth, near, rooted, err := depth(ctx, c, chatID, unknown[0])
		if near || err != nil {
			depths[unknown[0]] = depth
			return depths, map[string]bool{unknown[0]: !rooted}, err
		}
	}
	links, err := linksOf(ctx, c, []string{chatID})
	if err != nil {
		return nil, nil, err
	}
	return depthsOf(links[chatID])
}

// depthSteps is the number of messages that depth follows to find an indexed one.
const depthSteps = 1000

// depth returns the number of messages from the start of a chat to a message that is not indexed, 0 if the chat does not have
// the message. It follows parents to the first indexed one. near is false if it found none in depthSteps messages. rooted is set
// if the first message has no parent.
func depth(ctx context.Context, c *sqladapter.Conn, chatID, id string) (depth int, near, rooted bool, err error) {
	var above sql.NullInt64
	var parent sql.NullString
	steps := 0
	if _, err := c.Get(ctx, depthSQL.above, []any{id, chatID, depthSteps, chatID, 1}, &above, &steps, &parent); err != nil {
		return 0, false, false, err
	}
	if above.Valid {
		return steps - 1 + int(above.Int64), true, true, nil
	}
	return steps, steps < depthSteps, steps > 0 && !parent.Valid, nil
}

// NewDepths are the lengths of the chains of messages that will be indexed.
type NewDepths struct {
	depths map[string]int
	loose  map[string]bool // of chains that do not begin with a message without a parent
	epochs map[string]int64
}

// columns returns the columns depth and epoch of a message, on databases with epochs.
func (d NewDepths) columns(m *chat.Message) (depth, epoch any) {
	if d.depths[m.ID] == 0 || d.loose[m.ID] {
		return nil, nil
	}
	return d.depths[m.ID], d.epochs[m.ChatID]
}

// DepthsOfNew returns the chain lengths of messages whose parents come before them or exist already,
// if lengths are stored.
func DepthsOfNew(ctx context.Context, c *sqladapter.Conn, messages []chat.Message) (NewDepths, error) {
	d := NewDepths{depths: make(map[string]int, len(messages)), loose: make(map[string]bool)}
	if !c.Dialect().Search().Depths {
		return NewDepths{}, nil
	}
	own := make(map[string]bool, len(messages))
	var chats []string
	parents := make(map[string][]string) // that exist, by chat
	for _, m := range messages {
		if !slices.Contains(chats, m.ChatID) {
			chats = append(chats, m.ChatID)
		}
		if m.ParentID != "" && !own[string(m.ParentID)] {
			parents[m.ChatID] = append(parents[m.ChatID], string(m.ParentID))
		}
		own[m.ID] = true
	}
	var err error
	if d.epochs, err = epochsOf(ctx, c, chats); err != nil {
		return NewDepths{}, err
	}
	for chatID, ids := range parents {
		above, loose, err := depthsIn(ctx, c, chatID, ids)
		if err != nil {
			return NewDepths{}, err
		}
		for _, id := range ids {
			d.depths[id], d.loose[id] = above[id], loose[id] || above[id] == 0
		}
	}
	for _, m := range messages {
		parent := string(m.ParentID)
		d.depths[m.ID], d.loose[m.ID] = d.depths[parent]+1, d.loose[parent]
	}
	return d, nil
}

// DepthsInChats returns the chain lengths of all messages of chats, if lengths are stored.
func DepthsInChats(ctx context.Context, c *sqladapter.Conn, chats []string) (NewDepths, error) {
	d := NewDepths{depths: make(map[string]int), loose: make(map[string]bool)}
	if !c.Dialect().Search().Depths {
		return NewDepths{}, nil
	}
	var err error
	if d.epochs, err = epochsOf(ctx, c, chats); err != nil {
		return NewDepths{}, err
	}
	links, err := linksOf(ctx, c, chats)
	if err != nil {
		return NewDepths{}, err
	}
	for _, id := range slices.Sorted(maps.Keys(links)) {
		known, loose, err := depthsOf(links[id])
		if err != nil {
			return NewDepths{}, err
		}
		maps.Copy(d.depths, known)
		maps.Copy(d.loose, loose)
	}
	return d, nil
}

// epochsOf returns the epochs of chats that have one, on databases with epochs. It must be called before chains are
// read. If another program changes a chain in between, the lengths read are ignored.
func epochsOf(ctx context.Context, c *sqladapter.Conn, chats []string) (map[string]int64, error) {
	if !c.Syntax().Epochs {
		return nil, nil
	}
	return lists.CollectMap[int64](ctx, c, depthSQL.epochs, chats)
}

// linksOf returns the messages of chats with their parents.
func linksOf(ctx context.Context, c *sqladapter.Conn, chats []string) (map[string][]Edge, error) {
	links := make(map[string][]Edge)
	_, err := lists.CollectList(ctx, c, func(rows *sqladapter.Rows) (_ struct{}, err error) {
		var chatID string
		var l Edge
		var parent sql.NullString
		err = rows.Scan(&chatID, &l.ID, &parent)
		l.Parent = parent.String
		links[chatID] = append(links[chatID], l)
		return struct{}{}, err
	}, depthSQL.links, chats)
	return links, err
}

// AllDepths returns the chain lengths of all messages of chats.
func AllDepths(ctx context.Context, c *sqladapter.Conn, chats []string) (map[string]int, error) {
	links, err := linksOf(ctx, c, chats)
	if err != nil {
		return nil, err
	}
	depths := make(map[string]int)
	for _, id := range slices.Sorted(maps.Keys(links)) {
		known, err := DepthsOf(links[id])
		if err != nil {
			return nil, err
		}
		maps.Copy(depths, known)
	}
	return depths, nil
}

// DepthsOf returns the lengths of the chains formed by links. Parents that are not in links do not
// count.
func DepthsOf(links []Edge) (map[string]int, error) {
	depths, _, err := depthsOf(links)
	return depths, err
}

// depthsOf is DepthsOf. loose are the messages whose chains do not reach a root, because a parent is not in links.
func depthsOf(links []Edge) (depths map[string]int, loose map[string]bool, err error) {
	parents := make(map[string]string, len(links))
	for _, l := range links {
		parents[l.ID] = l.Parent
	}
	depths, loose = make(map[string]int, len(links)), make(map[string]bool)
	var path []string
	for _, l := range links {
		path = path[:0]
		at := l.ID
		for at != "" && depths[at] == 0 {
			if _, ok := parents[at]; !ok {
				break
			}
			if len(path) > len(links) {
				return nil, nil, &sqladapter.TableError{Table: "messages", Err: sqladapter.ErrCorrupt, Detail: "message " + l.ID + " is its own ancestor"}
			}
			path = append(path, at)
			at = parents[at]
		}
		depth, cut := depths[at], loose[at] || at != "" && depths[at] == 0
		for _, id := range slices.Backward(path) {
			depth++
			depths[id] = depth
			if cut {
				loose[id] = true
			}
		}
	}
	return depths, loose, nil
}
