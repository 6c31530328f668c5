package sqladapter

import (
	"context"
	"errors"
	"strings"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

var branchSQL = struct {
	byID, byName, active, ofChat Statement
	names                        Statement
	move                         Statement
	deactivate, activate         Statement
}{
	byID:   `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" WHERE "id" = ? {kept:branches.chatId}`,
	byName: `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" WHERE "chatId" = ? AND "name" = ? {kept:branches.chatId}`,
	active: `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" ` +
		`WHERE "chatId" = ? {kept:branches.chatId} ORDER BY "isActive" DESC, "createdAt", "id" {limit}`,
	ofChat: `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" ` +
		`WHERE "chatId" = ? {kept:branches.chatId} ORDER BY "createdAt", "id"`,
	names:      `SELECT "name" FROM "branches" WHERE "chatId" = ? {kept:branches.chatId}`,
	move:       `UPDATE "branches" SET "headMessageId" = ? WHERE "id" = ?`,
	deactivate: `UPDATE "branches" SET "isActive" = ? WHERE "chatId" = ? AND "isActive" = ?`,
	activate:   `UPDATE "branches" SET "isActive" = ? WHERE "id" = ?`,
}

func (c *Conn) insertBranch(ctx context.Context, b chat.Branch) error {
	return c.insert(ctx, sqlOf[tables.Branches].insert, [][]any{branchRow(&b)})
}

func (c *Conn) branch(ctx context.Context, id string) (*chat.Branch, error) {
	rows, err := c.Query(ctx, branchSQL.byID, id)
	found, err := first(rows, err, scanBranch)
	if found == nil || found.ID != id {
		return nil, err
	}
	return found, err
}

// mustBranch returns a branch of a chat, or an error if there is none.
func (c *Conn) mustBranch(ctx context.Context, chatID, id string) (*chat.Branch, error) {
	b, err := c.branch(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return nil, &chat.Error{Subject: chat.SubjectBranch, ID: id, ChatID: chatID, Err: chat.ErrNotFound}
	case b.ChatID != chatID:
		return nil, &chat.Error{Subject: chat.SubjectBranch, ID: id, ChatID: chatID, Err: chat.ErrOtherChat}
	}
	return b, nil
}

// createBranch creates a branch in a touched chat. It checks the head.
func (c *Conn) createBranch(ctx context.Context, b chat.Branch) error {
	known, err := c.branch(ctx, b.ID)
	if err != nil {
		return err
	}
	if known != nil {
		return &chat.Error{Subject: chat.SubjectBranch, ID: b.ID, Err: chat.ErrExists}
	}
	if known, err = c.branchNamed(ctx, b.ChatID, b.Name); err != nil {
		return err
	}
	if known != nil {
		return &chat.Error{Subject: chat.SubjectBranch, ID: b.Name, ChatID: b.ChatID, Err: chat.ErrExists}
	}
	if err := c.mustMessage(ctx, b.ChatID, b.HeadMessageID); err != nil {
		return err
	}
	if b.IsActive {
		if _, err := c.Exec(ctx, branchSQL.deactivate, false, b.ChatID, true); err != nil {
			return err
		}
	}
	return c.insertBranch(ctx, b)
}

func (c *Conn) branchNamed(ctx context.Context, chatID, name string) (*chat.Branch, error) {
	rows, err := c.Query(ctx, branchSQL.byName, chatID, name)
	found, err := first(rows, err, scanBranch)
	if found == nil || found.Name != name || found.ChatID != chatID {
		return nil, err
	}
	return found, err
}

// completeBranch validates a new branch and fills in defaults.
func (db *DB) completeBranch(b chat.Branch) (chat.Branch, error) {
	if err := errors.Join(b.Check(), db.checkID(chat.SubjectBranch, b.ID, b.Name)); err != nil {
		return b, err
	}
	if b.ID == "" {
		b.ID = chat.NewID()
	}
	b.CreatedAt = moment(b.CreatedAt)
	return b, nil
}

// CreateBranch implements chat.Store.
func (s *chatStore) CreateBranch(ctx context.Context, b chat.Branch) (chat.Branch, error) {
	b, err := s.db.completeBranch(b)
	if err != nil {
		return chat.Branch{}, err
	}
	err = s.db.Write(ctx, func(c *Conn) error {
		if err := c.touch(ctx, b.ChatID); err != nil {
			return err
		}
		return c.createBranch(ctx, b)
	})
	if err != nil {
		return chat.Branch{}, s.db.storable(err, chat.SubjectBranch, b.Name)
	}
	return b, nil
}

// Branch implements chat.Store.
func (s *chatStore) Branch(ctx context.Context, chatID, name string) (found *chat.Branch, err error) {
	return read(ctx, s.db, func(c *Conn) (*chat.Branch, error) { return c.branchNamed(ctx, chatID, name) })
}

// ActiveBranch implements chat.Store. If another program left a chat without an active branch, it
// is the oldest one.
func (s *chatStore) ActiveBranch(ctx context.Context, chatID string) (found *chat.Branch, err error) {
	err = s.db.Read(ctx, func(c *Conn) error {
		rows, err := c.Query(ctx, branchSQL.active, chatID, 1)
		found, err = first(rows, err, scanBranch)
		return err
	})
	return found, err
}

// SetActiveBranch implements chat.Store.
func (s *chatStore) SetActiveBranch(ctx context.Context, chatID, branchID string) error {
	return s.db.Write(ctx, func(c *Conn) error {
		if err := c.touch(ctx, chatID); err != nil {
			return err
		}
		if _, err := c.mustBranch(ctx, chatID, branchID); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, branchSQL.deactivate, false, chatID, true); err != nil {
			return err
		}
		_, err := c.Exec(ctx, branchSQL.activate, true, branchID)
		return err
	})
}

// UpdateBranchHead implements chat.Store.
func (s *chatStore) UpdateBranchHead(ctx context.Context, chatID, branchID string, head chat.Ref) error {
	return s.db.Write(ctx, func(c *Conn) error {
		if err := c.touch(ctx, chatID); err != nil {
			return err
		}
		if _, err := c.mustBranch(ctx, chatID, branchID); err != nil {
			return err
		}
		if err := c.mustMessage(ctx, chatID, head); err != nil {
			return err
		}
		_, err := c.Exec(ctx, branchSQL.move, optional(head), branchID)
		return err
	})
}

// ListBranches implements chat.Store.
func (s *chatStore) ListBranches(ctx context.Context, chatID string) (infos []chat.BranchInfo, err error) {
	err = s.db.Read(ctx, func(c *Conn) error {
		infos = nil
		branches, err := c.branches(ctx, chatID)
		if err != nil {
			return err
		}
		var heads []string
		for _, b := range branches {
			if b.HeadMessageID != "" {
				heads = append(heads, string(b.HeadMessageID))
			}
		}
		depths, err := c.depths(ctx, chatID, heads)
		if err != nil {
			return err
		}
		for _, b := range branches {
			infos = append(infos, chat.BranchInfo{Branch: b, MessageCount: depths[string(b.HeadMessageID)]})
		}
		return nil
	})
	return infos, err
}

func (c *Conn) branches(ctx context.Context, chatID string) ([]chat.Branch, error) {
	return collect(ctx, c, scanBranch, branchSQL.ofChat, chatID)
}

// BranchNames implements chat.Store. Prefixes are compared here, because comparisons in the
// database depend on its collation.
func (s *chatStore) BranchNames(ctx context.Context, chatID, prefix string, limit int) (names []string, err error) {
	err = s.db.Read(ctx, func(c *Conn) error {
		names = nil
		is, err := c.branchNamed(ctx, chatID, prefix)
		if err != nil {
			return err
		}
		if is != nil {
			names = append(names, is.Name)
		}
		rows, err := c.Query(ctx, branchSQL.names, chatID)
		if err != nil {
			return matched(err)
		}
		defer rows.Close()
		for len(names) < limit && rows.Next() {
			name, err := scanString(rows)
			if err != nil {
				return err
			}
			if strings.HasPrefix(name, prefix) && name != prefix {
				names = append(names, name)
			}
		}
		return rows.Err()
	})
	return names, err
}
