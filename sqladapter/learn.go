package sqladapter

import (
	"context"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
)

// learn makes known what other programs wrote to a chat, and forgets what they
// deleted. It returns what stays unknown, as the database cannot be written, and how
// many messages there are.
func (db *DB) learn(ctx context.Context, chatID string) (unknown []string, messages int, err error) {
	differs := false
	err = db.Read(ctx, func(c *Conn) (err error) {
		unknown, differs = nil, false
		known := 0
		if db.dialect.Search().Counted {
			if _, err := c.Get(ctx, knownSQL.counted, []any{chatID}, &known, &messages); err != nil || known == messages {
				return err
			}
			differs = true // if only in the numbers
		}
		if _, err := c.Get(ctx, knownSQL.counts, []any{chatID, chatID}, &known, &messages); err != nil || known == messages {
			return err
		}
		unknown, err = c.unknown(ctx, chatID)
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
			known, messages := 0, 0
			if _, err := c.Get(ctx, knownSQL.allCounts, nil, &known, &messages); err != nil || known == messages {
				return err
			}
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

// unknown returns the ids of the messages of a chat that are not known.
func (c *Conn) unknown(ctx context.Context, chatID string) ([]string, error) {
	rows, err := c.Query(ctx, knownSQL.unknown, chatID)
	return all(rows, err, scanString)
}

// learn makes known what others wrote to a chat, and forgets what they deleted.
func (c *Conn) learn(ctx context.Context, chatID string) error {
	if err := c.hold(ctx, chatID); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, knownSQL.forgetGone, chatID); err != nil {
		return err
	}
	ids, err := c.unknown(ctx, chatID)
	if err != nil {
		return err
	}
	depths, err := c.allDepths(ctx, chatID)
	if err != nil {
		return err
	}
	for batch := range batches(ids, searchBatch) {
		found, err := c.messages(ctx, batch)
		if err != nil {
			return err
		}
		messages := make([]chat.Message, 0, len(batch))
		for _, id := range batch {
			if m, ok := found[id]; ok {
				messages = append(messages, m)
			}
		}
		if err := c.know(ctx, messages, depths, false); err != nil {
			return err
		}
	}
	if c.db.dialect.Search().Counted {
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
