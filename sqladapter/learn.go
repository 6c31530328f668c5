package sqladapter

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
)

// learn indexes what other programs wrote to a chat, and removes what they deleted or overwrote. It
// returns the messages that cannot be indexed because the database is not writable, and the number
// of messages.
func (db *DB) learn(ctx context.Context, chatID string) (unknown []string, messages int, err error) {
	differs := false
	err = db.Read(ctx, func(c *Conn) (err error) {
		differs = false
		known, current := 0, 0
		if db.dialect.Search().Counted {
			if _, err := c.Get(ctx, knownSQL.counted, []any{chatID}, &known, &messages); err != nil || known == messages {
				return err
			}
			differs = true // at least in the counts
		}
		_, err = c.Get(ctx, knownSQL.counts, []any{chatID, chatID, chatID}, &known, &messages, &current)
		if err != nil || known == messages && current == messages {
			return err
		}
		differs = true
		return nil
	})
	if err != nil || !differs {
		return nil, messages, err
	}
	if messages > learnMessages {
		if err := db.learnInParts(ctx, chatID); ctx.Err() != nil {
			return nil, messages, err
		}
	}
	unknown, _, err = db.learnChats(ctx, []string{chatID}, true)
	return unknown, messages, err
}

// learnPart is the number of messages of a large chat indexed per transaction.
const learnPart = 500

// learnInParts indexes a chat in several transactions, so that others can write in between. Parents
// come first, so that chain lengths are known.
func (db *DB) learnInParts(ctx context.Context, chatID string) error {
	var ids []string
	err := db.Read(ctx, func(c *Conn) error {
		unknown, err := collectList(ctx, c, scanLink, knownSQL.unknown, []string{chatID})
		if err != nil {
			return err
		}
		depths, err := c.allDepths(ctx, []string{chatID})
		if err != nil {
			return err
		}
		ids = ids[:0]
		for _, l := range unknown {
			ids = append(ids, l.id)
		}
		slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(depths[a], depths[b]) })
		return nil
	})
	for part := range batches(ids, learnPart) {
		if err == nil {
			err = db.Write(ctx, func(c *Conn) error { return c.learnSome(ctx, chatID, part) })
		}
	}
	return err
}

// learnSome indexes those of some messages that are in a chat.
func (c *Conn) learnSome(ctx context.Context, chatID string, ids []string) error {
	if err := c.hold(ctx, chatID); err != nil {
		return err
	}
	var versions map[string]string
	if !c.db.dialect.Search().Counted {
		var err error
		if versions, err = collectMap[string](ctx, c, knownSQL.versions, ids); err != nil {
			return err
		}
	}
	messages, err := c.forgotten(ctx, ids)
	if err != nil {
		return err
	}
	messages = slices.DeleteFunc(messages, func(m chat.Message) bool { return m.ChatID != chatID })
	depths, err := c.newDepths(ctx, messages)
	if err != nil {
		return err
	}
	return c.know(ctx, messages, depths, versions, false)
}

// forgotten returns the messages with some ids, in order, and deletes their index rows.
func (c *Conn) forgotten(ctx context.Context, ids []string) ([]chat.Message, error) {
	found, err := c.messages(ctx, ids)
	if err != nil {
		return nil, err
	}
	messages := make([]chat.Message, 0, len(ids))
	for _, id := range ids {
		if m, ok := found[id]; ok {
			messages = append(messages, m)
		}
	}
	return messages, c.forgetKnown(ctx, ids)
}

// A transaction indexes chats with about learnMessages messages, and at most learnedChats chats.
const learnMessages, learnedChats = 5000, maxList

// learnAll is learn for all chats, or those of a user if userID is not empty.
func (db *DB) learnAll(ctx context.Context, userID string) (unknown []string, err error) {
	chats, err := db.behind(ctx, userID)
	if err != nil {
		return nil, err
	}
	sizes, err := db.sizes(ctx, chats)
	if err != nil {
		return nil, err
	}
	for writable := true; len(chats) > 0; {
		n, messages := 0, 0
		for n < len(chats) && n < learnedChats && messages < learnMessages {
			messages += sizes[chats[n]]
			n++
		}
		if writable && n == 1 && messages > learnMessages {
			if err := db.learnInParts(ctx, chats[0]); ctx.Err() != nil {
				return nil, err
			}
		}
		var some []string
		if some, writable, err = db.learnChats(ctx, chats[:n], writable); err != nil {
			return nil, err
		}
		unknown = append(unknown, some...)
		chats = chats[n:]
	}
	return unknown, nil
}

// behind returns the chats that other programs may have written to, of all users or one.
func (db *DB) behind(ctx context.Context, userID string) (chats []string, err error) {
	counted := db.dialect.Search().Counted
	statement, args := knownSQL.behind, []any(nil)
	switch {
	case counted && userID != "":
		statement, args = knownSQL.countedBehindOfUser, []any{userID}
	case counted:
		statement = knownSQL.countedBehind
	case userID != "":
		statement, args = knownSQL.behindOfUser, []any{userID, userID}
	}
	return readAll(ctx, db, scanString, statement, args...)
}

// learnChats indexes what other programs wrote to chats in one transaction, if write is set. It
// returns what is still not indexed because that failed, and whether further writes may succeed.
func (db *DB) learnChats(ctx context.Context, chats []string, write bool) (unknown []string, writable bool, err error) {
	if write {
		err = db.Write(ctx, func(c *Conn) error {
			return c.learn(ctx, chats)
		})
		switch {
		case err == nil:
			return nil, true, nil
		case ctx.Err() != nil:
			return nil, false, err
		case errors.Is(err, ErrCorrupt):
			writable = true
			if half := len(chats) / 2; half > 0 { // one of the chats is corrupt
				for _, part := range [][]string{chats[:half], chats[half:]} {
					var some []string
					if some, writable, err = db.learnChats(ctx, part, writable); err != nil {
						return nil, false, err
					}
					unknown = append(unknown, some...)
				}
				return unknown, writable, nil
			}
		}
	}
	err = db.Read(ctx, func(c *Conn) error {
		unknown = nil
		some, err := collectList(ctx, c, scanLink, knownSQL.unknown, chats)
		for _, l := range some {
			unknown = append(unknown, l.id)
		}
		return err
	})
	return unknown, writable, err
}

// learn indexes what others wrote to chats, and removes what they deleted or overwrote.
func (c *Conn) learn(ctx context.Context, chats []string) error {
	if err := c.hold(ctx, chats...); err != nil {
		return err
	}
	if err := c.execAll(ctx, knownSQL.forgetGone, chats); err != nil {
		return err
	}
	unknown, err := collectList(ctx, c, scanLink, knownSQL.unknown, chats)
	if err != nil {
		return err
	}
	counted := c.db.dialect.Search().Counted
	var depths map[string]int
	if counted {
		if depths, err = c.allDepths(ctx, chats); err != nil {
			return err
		}
	}
	for batch := range batches(unknown, searchBatch) {
		ids, versions := make([]string, len(batch)), make(map[string]string, len(batch))
		for i, l := range batch {
			ids[i], versions[l.id] = l.id, l.parent
		}
		messages, err := c.forgotten(ctx, ids)
		if err != nil {
			return err
		}
		if err := c.know(ctx, messages, depths, versions, false); err != nil {
			return err
		}
	}
	if !counted {
		return nil
	}
	for batch := range batches(chats, maxList) {
		args := padded(batch)
		if _, err := c.ExecN(ctx, knownSQL.recount, len(args), append(args, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// allDepths returns the chain lengths of all messages of chats.
func (c *Conn) allDepths(ctx context.Context, chats []string) (map[string]int, error) {
	links := make(map[string][]link)
	_, err := collectList(ctx, c, func(rows *Rows) (_ struct{}, err error) {
		var chatID string
		var l link
		var parent sql.NullString
		err = rows.Scan(&chatID, &l.id, &parent)
		l.parent = parent.String
		links[chatID] = append(links[chatID], l)
		return struct{}{}, err
	}, messageSQL.links, chats)
	if err != nil {
		return nil, err
	}
	depths := make(map[string]int)
	for _, id := range slices.Sorted(maps.Keys(links)) {
		some, err := depthsOf(links[id])
		if err != nil {
			return nil, err
		}
		maps.Copy(depths, some)
	}
	return depths, nil
}

// depthsOf returns the lengths of the chains formed by links. Parents that are not in links do not
// count.
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
