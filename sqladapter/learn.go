package sqladapter

import (
	"context"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
)

// learn makes known what other programs wrote to a chat, and forgets what they
// deleted or overwrote. It returns what stays unknown, as the database cannot be
// written, and how many messages there are.
func (db *DB) learn(ctx context.Context, chatID string) (unknown []string, messages int, err error) {
	differs := false
	err = db.Read(ctx, func(c *Conn) (err error) {
		unknown, differs = nil, false
		known, current := 0, 0
		if db.dialect.Search().Counted {
			if _, err := c.Get(ctx, knownSQL.counted, []any{chatID}, &known, &messages); err != nil || known == messages {
				return err
			}
			differs = true // if only in the numbers
		}
		_, err = c.Get(ctx, knownSQL.counts, []any{chatID, chatID, chatID}, &known, &messages, &current)
		if err != nil || known == messages && current == messages {
			return err
		}
		links, err := c.unknown(ctx, chatID)
		for _, l := range links {
			unknown = append(unknown, l.id)
		}
		differs = true
		return err
	})
	if err != nil || !differs {
		return nil, messages, err
	}
	if db.Write(ctx, func(c *Conn) error { return c.learn(ctx, chatID) }) == nil {
		return nil, messages, nil
	}
	return unknown, messages, ctx.Err()
}

// learnAll is learn for all chats.
func (db *DB) learnAll(ctx context.Context) (unknown []string, err error) {
	var chats []string
	err = db.Read(ctx, func(c *Conn) error {
		statement := knownSQL.countedBehind
		if !db.dialect.Search().Counted {
			statement = knownSQL.behind
		}
		rows, err := c.Query(ctx, statement)
		chats, err = all(rows, err, scanString)
		return err
	})
	for _, id := range chats {
		some, _, learnErr := db.learn(ctx, id)
		unknown = append(unknown, some...)
		err = errors.Join(err, learnErr)
	}
	return unknown, err
}

// unknown returns the ids of the messages of a chat that are not known as they are,
// with their versions.
func (c *Conn) unknown(ctx context.Context, chatID string) ([]link, error) {
	rows, err := c.Query(ctx, knownSQL.unknown, chatID)
	return all(rows, err, scanLink)
}

// learn makes known what others wrote to a chat, and forgets what they deleted or
// overwrote.
func (c *Conn) learn(ctx context.Context, chatID string) error {
	if err := c.hold(ctx, chatID); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, knownSQL.forgetGone, chatID); err != nil {
		return err
	}
	unknown, err := c.unknown(ctx, chatID)
	if err != nil {
		return err
	}
	counted := c.db.dialect.Search().Counted
	var depths map[string]int
	if counted {
		if depths, err = c.allDepths(ctx, chatID); err != nil {
			return err
		}
	}
	for batch := range batches(unknown, searchBatch) {
		ids, versions := make([]string, len(batch)), make(map[string]string, len(batch))
		for i, l := range batch {
			ids[i], versions[l.id] = l.id, l.parent
		}
		found, err := c.messages(ctx, ids)
		if err != nil {
			return err
		}
		messages := make([]chat.Message, 0, len(batch))
		for _, id := range ids {
			if m, ok := found[id]; ok {
				messages = append(messages, m)
			}
		}
		if err := c.forgetKnown(ctx, ids); err != nil {
			return err
		}
		if err := c.know(ctx, messages, depths, versions, false); err != nil {
			return err
		}
	}
	if counted {
		_, err = c.Exec(ctx, knownSQL.recount, chatID, chatID, chatID)
	}
	return err
}

// allDepths returns the lengths of the chains of all messages of a chat.
func (c *Conn) allDepths(ctx context.Context, chatID string) (map[string]int, error) {
	rows, err := c.Query(ctx, messageSQL.links, chatID)
	links, err := all(rows, err, scanLink)
	if err != nil {
		return nil, err
	}
	return depthsOf(links)
}

// depthsOf returns the lengths of the chains that links make. A parent that is not
// among them is not counted.
func depthsOf(links []link) (map[string]int, error) {
	parents := make(map[string]string, len(links))
	for _, l := range links {
		parents[l.id] = l.parent
	}
	depths := make(map[string]int, len(links))
	var path []string
	for _, l := range links {
		path = path[:0]
		at := l.id
		for at != "" && depths[at] == 0 {
			if _, ok := parents[at]; !ok {
				break
			}
			if len(path) > len(links) {
				return nil, &TableError{Table: "messages", Err: ErrCorrupt, Detail: "message " + l.id + " is its own ancestor"}
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
