// Package importing brings chats of a SQL database, whatever program filled it, into a store.
package importing

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
)

var chatSQL = struct {
	after, links sqladapter.Statement
}{
	after: `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE "id" > ? {kept:chats.id} ORDER BY "id" {limit}`,
	links: `SELECT "id", "parentId", "createdAt" FROM "messages" WHERE "chatId" = ?`,
}

// Options configure an import.
type Options struct {
	// UserID, when not empty, restricts the import to chats of a user.
	UserID string
	// Progress, when not nil, is called after each chat with the progress so far.
	Progress func(Report)
	// Problem, when not nil, is called for each item that could not be imported, with its chat, if
	// any. The rest is imported.
	Problem func(chatID string, err error)
}

// Report is the result of an import.
type Report struct {
	// Chats is the number of chats read, Changed the number that were new or had changes.
	Chats, Changed int
	// Messages is the number of messages read, New the number that were new or changed.
	Messages, New int
	// Problems is the number of skipped items.
	Problems int
}

// problem records a skipped item.
func (r *Report) problem(o Options, chatID string, err error) {
	r.Problems++
	if o.Problem != nil {
		o.Problem(chatID, err)
	}
}

// importPage is the number of chats read per query.
const importPage = 100

// Run copies the chats of a database to a store, with their ids and times: chats become threads,
// branches become contexts, and equal content is stored once. The database may have been filled by
// any program. Importing again adds only what is new: added messages, and a new version of each
// message changed in place. Deletions in the database are not applied to the store. See chat.Load.
//
// An assistant message without parts at the head of a branch is a turn in progress. It is imported
// once it has been filled in.
//
// The ids of a chat's messages are held in memory. An interrupted import is continued by the next
// one.
func Run(ctx context.Context, db *sqladapter.DB, store *lineage.Store, o Options) (Report, error) {
	var report Report
	contexts, err := projected.HasContexts(ctx, db)
	if err != nil {
		return report, err
	}
	for after := ""; ; {
		chats, err := lists.ReadAll(ctx, db, chatrows.ScanChat, chatSQL.after, after, importPage)
		if err != nil {
			return report, err
		}
		if len(chats) == 0 {
			if contexts {
				if _, err := importValues(ctx, db, store, "", "", o, func(err error) { report.problem(o, "", err) }); err != nil {
					return report, err
				}
			}
			return report, store.Sync(ctx)
		}
		after = chats[len(chats)-1].ID
		for _, c := range chats {
			if o.UserID != "" && o.UserID != c.UserID {
				continue
			}
			if err := importChat(ctx, db, store, c, contexts, o, &report); err != nil {
				return report, fmt.Errorf("import chat %q: %w", c.ID, err)
			}
			if o.Progress != nil {
				o.Progress(report)
			}
		}
	}
}

func importChat(ctx context.Context, db *sqladapter.DB, store *lineage.Store, c chat.Chat, contexts bool, o Options, report *Report) error {
	problem := func(err error) { report.problem(o, c.ID, err) }
	var said *saidReader
	var stored []storedContext
	var err error
	if contexts {
		if said, err = readerOf(ctx, db, &c); err != nil {
			return err
		}
		if stored, err = lists.ReadAll(ctx, db, scanContext, contextSQL.ofThread, said.thread); err != nil {
			return err
		}
	}
	l := chat.Loading{Chat: c, Problem: problem}
	var nodes []treeNode
	err = db.Read(ctx, func(conn *sqladapter.Conn) error {
		if nodes, err = lists.Collect(ctx, conn, scanNode, chatSQL.links, c.ID); err != nil {
			return err
		}
		if l.Branches, err = chatrows.Branches(ctx, conn, c.ID); err != nil {
			return err
		}
		l.Checkpoints, err = chatrows.Checkpoints(ctx, conn, c.ID)
		return err
	})
	if err != nil {
		return err
	}
	if said != nil {
		l.Said, l.Context = said.read, branchContext(db, c.ID, said.thread, stored)
	}
	if nodes, err = withoutReserved(ctx, db, nodes, said, &l); err != nil {
		return err
	}
	ordered, cut := treeOrder(nodes, func(id string, detail string) {
		problem(&chat.Error{Subject: chat.SubjectMessage, ID: id, ChatID: c.ID, Err: chat.ErrInvalid, Detail: detail})
	})
	l.Messages = func(yield func(chat.Message, error) bool) {
		for m, err := range chatrows.InOrder(ctx, db, ordered) {
			if errors.Is(err, chat.ErrNotFound) {
				continue // deleted meanwhile
			}
			if cut[m.ID] {
				m.ParentID = ""
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
	if err := c.Check(); err != nil {
		problem(err)
		return nil
	}
	done, err := chat.Load(ctx, store, l)
	report.Chats++
	report.Messages += done.Messages
	report.New += done.New
	changed := done.Changed
	if contexts && err == nil {
		var more bool
		more, err = importContexts(ctx, db, store, c.ID, said.thread, stored, problem)
		changed = changed || more
		if err == nil {
			more, err = importValues(ctx, db, store, c.ID, said.thread, o, problem)
			changed = changed || more
		}
	}
	if changed {
		report.Changed++
	}
	if errors.Is(err, chat.ErrOtherUser) {
		problem(err)
		return nil
	}
	return err
}
