package sqladapter

import (
	"context"
	"database/sql"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/lineage/chat"
)

var messageSQL = struct {
	byID, byIDs, chatsOf, children, chain, links, ofChat Statement
}{
	byID: `SELECT m."id", m."chatId", m."parentId", m."name", m."type", m."data", m."createdAt", ` +
		`o."userId", o."modelId", o."sourceId", o."derivedFrom" ` +
		`FROM "messages" m LEFT JOIN "lineage_origins" o ON {same:m.id=o.messageId} WHERE m."id" = ? {kept:m.chatId}`,
	byIDs: `SELECT m."id", m."chatId", m."parentId", m."name", m."type", m."data", m."createdAt", ` +
		`o."userId", o."modelId", o."sourceId", o."derivedFrom" ` +
		`FROM "messages" m LEFT JOIN "lineage_origins" o ON {same:m.id=o.messageId} WHERE m."id" IN ({list}) {kept:m.chatId}`,
	chatsOf:  `SELECT "id", "chatId" FROM "messages" WHERE "id" IN ({list}) {kept:messages.chatId}`,
	children: `SELECT "id" FROM "messages" WHERE "parentId" = ? AND "chatId" = ? {kept:messages.chatId} ORDER BY "id" {limit}`,
	chain: `WITH {recursive} "chain" ("id", "parentId", "step") AS (` +
		`SELECT "id", "parentId", 1 FROM "messages" WHERE "id" = ? AND "chatId" = ? {kept:messages.chatId} ` +
		`UNION ALL ` +
		`SELECT m."id", m."parentId", c."step" + 1 FROM "chain" c JOIN "messages" m ON m."id" = c."parentId" WHERE m."chatId" = ? AND c."step" < ?` +
		`) SELECT "id", "parentId" FROM "chain" ORDER BY "step" {unlimited}`,
	links: `SELECT "chatId", "id", "parentId" FROM "messages" WHERE "chatId" IN ({list})`,
	ofChat: `SELECT m."id", m."chatId", m."parentId", m."name", m."type", m."data", m."createdAt", ` +
		`o."userId", o."modelId", o."sourceId", o."derivedFrom" ` +
		`FROM "messages" m LEFT JOIN "lineage_origins" o ON {same:m.id=o.messageId} WHERE m."chatId" = ? {kept:m.chatId}`,
}

// chainStep is the length of a chain that one statement follows.
const chainStep = 10_000

// chainBatch is the number of messages of a chain read per query.
const chainBatch = 200

// link is a message and its parent.
type link struct{ id, parent string }

func scanLink(rows *Rows) (link, error) {
	var l link
	var parent sql.NullString
	err := rows.Scan(&l.id, &parent)
	l.parent = parent.String
	return l, err
}

// message returns a message of a chat, nil if there is none.
func (c *Conn) message(ctx context.Context, chatID, id string) (*chat.Message, error) {
	rows, err := c.Query(ctx, messageSQL.byID, id)
	found, err := first(rows, err, scanMessage)
	if found == nil || found.ID != id {
		return nil, err
	}
	if found.ChatID != chatID {
		return nil, otherChat(chatID, id)
	}
	return found, err
}

// hasMessage reports whether a message is in a chat.
func (c *Conn) hasMessage(ctx context.Context, chatID, id string) (bool, error) {
	chats, err := c.chatsOf(ctx, []string{id})
	found, is := chats[id]
	if is && found != chatID {
		return false, otherChat(chatID, id)
	}
	return is, err
}

func otherChat(chatID, id string) error {
	return &chat.Error{Subject: chat.SubjectMessage, ID: id, ChatID: chatID, Err: chat.ErrOtherChat}
}

// messages returns messages by id.
func (c *Conn) messages(ctx context.Context, ids []string) (map[string]chat.Message, error) {
	found := make(map[string]chat.Message, len(ids))
	messages, err := collectList(ctx, c, scanMessage, messageSQL.byIDs, ids)
	for _, m := range messages {
		found[m.ID] = m
	}
	return found, err
}

// mustMessage returns an error if a message is not in a chat. An empty id is allowed.
func (c *Conn) mustMessage(ctx context.Context, chatID string, id chat.Ref) error {
	if id == "" {
		return nil
	}
	is, err := c.hasMessage(ctx, chatID, string(id))
	if err == nil && !is {
		err = &chat.Error{Subject: chat.SubjectMessage, ID: string(id), ChatID: chatID, Err: chat.ErrNotFound}
	}
	return err
}

// chatsOf returns the chats of existing messages.
func (c *Conn) chatsOf(ctx context.Context, ids []string) (map[string]string, error) {
	return collectMap[string](ctx, c, messageSQL.chatsOf, ids)
}

// AddMessage implements chat.Store.
func (s *chatStore) AddMessage(ctx context.Context, m chat.Message) error {
	if err := errors.Join(m.Check(), s.db.checkMessage(m)); err != nil {
		return err
	}
	m.CreatedAt = moment(m.CreatedAt)
	err := s.db.Write(ctx, func(c *Conn) error {
		if err := c.touch(ctx, m.ChatID); err != nil {
			return err
		}
		known, err := c.message(ctx, m.ChatID, m.ID)
		if err != nil {
			return err
		}
		if known != nil {
			if err := m.AgreesWith(*known); err != nil {
				return err
			}
			return errUnchanged
		}
		if err := c.mustMessage(ctx, m.ChatID, m.ParentID); err != nil {
			return err
		}
		if err := c.mustKnowSources(ctx, []chat.Message{m}); err != nil {
			return err
		}
		return c.insertMessages(ctx, []chat.Message{m})
	})
	return s.db.storable(err, chat.SubjectMessage, m.ID)
}

// Append implements chat.Store.
func (s *chatStore) Append(ctx context.Context, r chat.AppendRequest) (chat.Ref, error) {
	r, err := r.Normal()
	if err != nil {
		return "", err
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		m.CreatedAt = moment(m.CreatedAt)
		if err := s.db.checkMessage(*m); err != nil {
			return "", err
		}
	}
	if r.NewBranch != nil {
		b, err := s.db.completeBranch(*r.NewBranch)
		if err != nil {
			return "", err
		}
		r.NewBranch = &b
	}
	last := chat.Ref(r.Messages[len(r.Messages)-1].ID)
	err = s.db.Write(ctx, func(c *Conn) error { return c.append(ctx, r, last) })
	if err != nil {
		return "", s.db.storable(err, chat.SubjectMessage, string(last))
	}
	return last, nil
}

// append performs an append request.
func (c *Conn) append(ctx context.Context, r chat.AppendRequest, last chat.Ref) error {
	if err := c.touch(ctx, r.ChatID); err != nil {
		return err
	}
	branchID := r.BranchID
	if r.NewBranch == nil {
		b, err := c.mustBranch(ctx, r.ChatID, branchID)
		if err != nil {
			return err
		}
		if b.HeadMessageID != r.ExpectedHead {
			if err := c.mustMessage(ctx, r.ChatID, r.ExpectedHead); err != nil {
				return err
			}
			return &chat.HeadError{BranchID: branchID, Expected: r.ExpectedHead, Actual: b.HeadMessageID}
		}
	} else {
		branchID = r.NewBranch.ID
		if err := c.createBranch(ctx, *r.NewBranch); err != nil {
			return err
		}
	}
	ids := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		ids[i] = m.ID
	}
	known, err := c.chatsOf(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if chatID, ok := known[id]; ok {
			reason := chat.ErrExists
			if chatID != r.ChatID {
				reason = chat.ErrOtherChat
			}
			return &chat.Error{Subject: chat.SubjectMessage, ID: id, ChatID: r.ChatID, Err: reason}
		}
	}
	if err := c.mustKnowSources(ctx, r.Messages); err != nil {
		return err
	}
	if err := c.insertMessages(ctx, r.Messages); err != nil {
		return err
	}
	_, err = c.Exec(ctx, branchSQL.move, string(last), branchID)
	return err
}

// Message implements chat.Store.
func (s *chatStore) Message(ctx context.Context, chatID, id string) (*chat.Message, error) {
	return read(ctx, s.db, func(c *Conn) (*chat.Message, error) { return c.message(ctx, chatID, id) })
}

// HasChildren implements chat.Store.
func (s *chatStore) HasChildren(ctx context.Context, chatID, id string) (bool, error) {
	return read(ctx, s.db, func(c *Conn) (bool, error) {
		if is, err := c.hasMessage(ctx, chatID, id); err != nil || !is {
			return false, err
		}
		rows, err := c.Query(ctx, messageSQL.children, id, chatID, 1)
		child, err := first(rows, err, scanString)
		return child != nil, err
	})
}

// Messages implements chat.Store.
func (s *chatStore) Messages(ctx context.Context, chatID string) iter.Seq2[chat.Message, error] {
	return func(yield func(chat.Message, error) bool) {
		b, err := s.ActiveBranch(ctx, chatID)
		if err == nil && b == nil {
			var c *chat.Chat
			if c, err = s.Chat(ctx, chatID); err == nil && c == nil {
				err = noChat(chatID)
			}
		}
		if err != nil {
			yield(chat.Message{}, err)
			return
		}
		if b == nil || b.HeadMessageID == "" {
			return
		}
		for m, err := range s.MessageChain(ctx, chatID, string(b.HeadMessageID)) {
			if errors.Is(err, chat.ErrNotFound) {
				err = noChat(chatID) // messages are only deleted with their chat
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// MessageChain implements chat.Store. It reads the ids first, and the messages on demand; if the
// chat is deleted meanwhile, the error is ErrNotFound.
func (s *chatStore) MessageChain(ctx context.Context, chatID, id string) iter.Seq2[chat.Message, error] {
	return func(yield func(chat.Message, error) bool) {
		ids, err := read(ctx, s.db, func(c *Conn) ([]string, error) {
			ids, err := c.chain(ctx, chatID, id)
			if err == nil && len(ids) == 0 {
				_, err = c.hasMessage(ctx, chatID, id)
			}
			return ids, err
		})
		if err != nil {
			yield(chat.Message{}, err)
			return
		}
		for m, err := range s.db.messagesInOrder(ctx, ids) {
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// messagesInOrder yields messages by id, ErrNotFound for those that were deleted.
func (db *DB) messagesInOrder(ctx context.Context, ids []string) iter.Seq2[chat.Message, error] {
	return func(yield func(chat.Message, error) bool) {
		for batch := range batches(ids, chainBatch) {
			found, err := db.readMessages(ctx, batch)
			if err != nil {
				yield(chat.Message{}, err)
				return
			}
			for _, id := range batch {
				m, ok := found[id]
				if !ok {
					err = &chat.Error{Subject: chat.SubjectMessage, ID: id, Err: chat.ErrNotFound, Detail: "deleted while it was read"}
				} else {
					err = nil
				}
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

// CountMessages implements chat.Store.
func (s *chatStore) CountMessages(ctx context.Context, chatID, id string) (int, error) {
	return read(ctx, s.db, func(c *Conn) (int, error) {
		if is, err := c.hasMessage(ctx, chatID, id); err != nil || !is {
			return 0, err
		}
		depths, err := c.depths(ctx, chatID, []string{id})
		return depths[id], err
	})
}

// chain returns the ids from the root to a message of a chat, none if the message does not exist.
func (c *Conn) chain(ctx context.Context, chatID, id string) ([]string, error) {
	var ids []string
	var seen map[string]bool
	for at := id; at != ""; {
		part, err := collect(ctx, c, scanLink, messageSQL.chain, at, chatID, chatID, chainStep)
		if err != nil {
			return nil, err
		}
		if len(part) == 0 {
			break
		}
		for _, l := range part {
			ids = append(ids, l.id)
		}
		if at = part[len(part)-1].parent; at == "" {
			break
		}
		if seen == nil {
			seen = make(map[string]bool)
		}
		for _, l := range part {
			if seen[l.id] {
				return nil, &TableError{Table: "messages", Err: ErrCorrupt, Detail: "message " + l.id + " is its own ancestor"}
			}
			seen[l.id] = true
		}
	}
	for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids, nil
}
