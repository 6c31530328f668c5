package sqlchat

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

var branchSQL = struct {
	active, names, taken, move, deactivate, activate sqladapter.Statement
}{
	active: `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" ` +
		`WHERE "chatId" = ? {kept:branches.chatId} ORDER BY "isActive" DESC, "createdAt", "id" {limit}`,
	names:      `SELECT "name" FROM "branches" WHERE "chatId" = ? AND "name" LIKE ? {kept:branches.chatId} ORDER BY "name" {limit}`,
	taken:      `SELECT "name" FROM "branches" WHERE "chatId" = ? AND "name" IN ({list}) {kept:branches.chatId}`,
	move:       `UPDATE "branches" SET "headMessageId" = ? WHERE "id" = ?`,
	deactivate: `UPDATE "branches" SET "isActive" = ? WHERE "chatId" = ? AND "isActive" = ?`,
	activate:   `UPDATE "branches" SET "isActive" = ? WHERE "id" = ?`,
}

// insertBranch inserts the row of a branch.
func insertBranch(ctx context.Context, c *sqladapter.Conn, b chat.Branch) error {
	return lists.Insert(ctx, c, tables.Branches.Insert, [][]any{chatrows.BranchRow(&b)})
}

// createBranch creates a branch in a touched chat. It checks the head.
func createBranch(ctx context.Context, c *sqladapter.Conn, b chat.Branch) error {
	known, err := branchByID(ctx, c, b.ID)
	if err != nil {
		return err
	}
	if known != nil {
		return &chat.Error{Subject: chat.SubjectBranch, ID: b.ID, Err: chat.ErrExists}
	}
	if known, err = branchNamed(ctx, c, b.ChatID, b.Name); err != nil {
		return err
	}
	if known != nil {
		return &chat.Error{Subject: chat.SubjectBranch, ID: b.Name, ChatID: b.ChatID, Err: chat.ErrExists}
	}
	if err := mustMessage(ctx, c, b.ChatID, b.HeadMessageID); err != nil {
		return err
	}
	if b.IsActive {
		if _, err := c.Exec(ctx, branchSQL.deactivate, false, b.ChatID, true); err != nil {
			return err
		}
	}
	return insertBranch(ctx, c, b)
}

// completeBranch validates a new branch and fills in defaults.
func completeBranch(db *sqladapter.DB, b chat.Branch) (chat.Branch, error) {
	if err := errors.Join(b.Check(), chatrows.CheckID(db, chat.SubjectBranch, b.ID, b.Name)); err != nil {
		return b, err
	}
	if b.ID == "" {
		b.ID = chat.NewID()
	}
	b.CreatedAt = moment(b.CreatedAt)
	return b, nil
}

// CreateBranch implements chat.Store.
func (s *store) CreateBranch(ctx context.Context, b chat.Branch) (chat.Branch, error) {
	b, err := completeBranch(s.db, b)
	if err != nil {
		return chat.Branch{}, err
	}
	err = chatrows.Write(ctx, s.db, func(c *sqladapter.Conn) error {
		if err := touch(ctx, c, b.ChatID); err != nil {
			return err
		}
		return createBranch(ctx, c, b)
	})
	if err != nil {
		return chat.Branch{}, storable(s.db, err, chat.SubjectBranch, b.Name)
	}
	return b, nil
}

// Branch implements chat.Store.
func (s *store) Branch(ctx context.Context, chatID, name string) (found *chat.Branch, err error) {
	return lists.Read(ctx, s.db, func(c *sqladapter.Conn) (*chat.Branch, error) { return branchNamed(ctx, c, chatID, name) })
}

// ActiveBranch implements chat.Store. If another program left a chat without an active branch, it
// is the oldest one.
func (s *store) ActiveBranch(ctx context.Context, chatID string) (found *chat.Branch, err error) {
	err = s.db.Read(ctx, func(c *sqladapter.Conn) error {
		found, err = lists.First(ctx, c, chatrows.ScanBranch, branchSQL.active, chatID, 1)
		return err
	})
	return found, err
}

// SetActiveBranch implements chat.Store.
func (s *store) SetActiveBranch(ctx context.Context, chatID, branchID string) error {
	return chatrows.Write(ctx, s.db, func(c *sqladapter.Conn) error {
		if err := touch(ctx, c, chatID); err != nil {
			return err
		}
		if _, err := mustBranch(ctx, c, chatID, branchID); err != nil {
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
func (s *store) UpdateBranchHead(ctx context.Context, chatID, branchID string, head chat.Ref) error {
	return chatrows.Write(ctx, s.db, func(c *sqladapter.Conn) error {
		if err := touch(ctx, c, chatID); err != nil {
			return err
		}
		if _, err := mustBranch(ctx, c, chatID, branchID); err != nil {
			return err
		}
		if err := mustMessage(ctx, c, chatID, head); err != nil {
			return err
		}
		_, err := c.Exec(ctx, branchSQL.move, chatrows.Optional(head), branchID)
		return err
	})
}

// ListBranches implements chat.Store.
func (s *store) ListBranches(ctx context.Context, chatID string) (infos []chat.BranchInfo, err error) {
	err = s.db.Read(ctx, func(c *sqladapter.Conn) error {
		infos = nil
		branches, err := chatrows.Branches(ctx, c, chatID)
		if err != nil {
			return err
		}
		var heads []string
		for _, b := range branches {
			if b.HeadMessageID != "" {
				heads = append(heads, string(b.HeadMessageID))
			}
		}
		depths, err := chatrows.Depths(ctx, c, chatID, heads)
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

// BranchNames implements chat.Store. Comparison in the database depends on its collation, so prefixes are compared
// here: the database may return names that do not match, and is then asked for all names.
func (s *store) BranchNames(ctx context.Context, chatID, prefix string, limit int) (names []string, err error) {
	err = s.db.Read(ctx, func(c *sqladapter.Conn) error {
		for _, most := range []int{min(limit, mostNames), mostNames} {
			found, err := lists.Collect(ctx, c, lists.ScanString, branchSQL.names, chatID, likePrefix(prefix, false), most)
			if err != nil {
				return err
			}
			names = slices.DeleteFunc(found[:len(found):len(found)], func(name string) bool { return !strings.HasPrefix(name, prefix) })
			if len(names) >= limit || len(found) < most {
				break
			}
		}
		names = names[:min(limit, len(names))]
		return nil
	})
	return names, err
}

// mostNames is larger than the number of branches of any chat.
const mostNames = math.MaxInt32

// TakenBranchNames implements chat.Store. The database may treat different names as equal.
func (s *store) TakenBranchNames(ctx context.Context, chatID string, names []string) ([]string, error) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !utf8.ValidString(name) })
	taken, err := lists.ReadList(ctx, s.db, lists.ScanString, branchSQL.taken, names, chatID)
	return slices.DeleteFunc(taken, func(name string) bool { return !slices.Contains(names, name) }), err
}
