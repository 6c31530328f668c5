// Package importing copies the chats of a SQL database, whatever program filled it, to a store.
package importing

import (
	"context"
	"errors"
	"fmt"
	"iter"

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
	// Progress, when not nil, is called after each chat with the counts so far.
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

// importer is the state of an import.
type importer struct {
	db      *sqladapter.DB
	store   *lineage.Store
	options Options
	report  Report
	// contexts is set if a projector has written contexts to the database.
	contexts bool
}

// problem returns a function that records a skipped item.
func (im *importer) problem(chatID string) func(error) {
	return func(err error) {
		im.report.Problems++
		if im.options.Problem != nil {
			im.options.Problem(chatID, err)
		}
	}
}

// importPage is the number of chats read per query.
const importPage = 100

// Run copies the chats of a database to a store, with their ids and times: chats become threads, branches become
// contexts, and equal content is stored once. The database may have been filled by any program. Importing again adds
// only what is new: new messages, and a new version of each message that was changed in place. Deletions in the
// database are not applied to the store. See chat.Load.
//
// An assistant message without parts at the head of a branch is a reply in progress. It is imported after it has been
// filled in.
//
// The ids of a chat's messages are held in memory. After an interrupted import, the next one continues.
func Run(ctx context.Context, db *sqladapter.DB, store *lineage.Store, o Options) (Report, error) {
	im := &importer{db: db, store: store, options: o}
	err := im.run(ctx)
	return im.report, err
}

func (im *importer) run(ctx context.Context) (err error) {
	if im.contexts, err = projected.HasContexts(ctx, im.db); err != nil {
		return err
	}
	o := &im.options
	for after := ""; ; {
		chats, err := lists.ReadAll(ctx, im.db, chatrows.ScanChat, chatSQL.after, after, importPage)
		if err != nil {
			return err
		}
		if len(chats) == 0 {
			if im.contexts {
				rest := &importedChat{db: im.db, problem: im.problem("")}
				if _, err := rest.importValues(ctx, im.store, o.UserID); err != nil {
					return err
				}
			}
			return im.store.Sync(ctx)
		}
		after = chats[len(chats)-1].ID
		for _, c := range chats {
			if o.UserID != "" && o.UserID != c.UserID {
				continue
			}
			if err := im.importChat(ctx, c); err != nil {
				return fmt.Errorf("import chat %q: %w", c.ID, err)
			}
			if o.Progress != nil {
				o.Progress(im.report)
			}
		}
	}
}

// importChat imports a chat, with its contexts and values.
func (im *importer) importChat(ctx context.Context, c chat.Chat) error {
	problem := im.problem(c.ID)
	l := chat.Loading{Problem: problem}
	var reader *saidReader
	var from *importedChat // nil if the database has no contexts
	var contexts []storedContext
	if im.contexts {
		var err error
		if reader, err = readerOf(ctx, im.db, &c); err != nil {
			return err
		}
		if contexts, err = lists.ReadAll(ctx, im.db, scanContext, contextSQL.ofThread, reader.thread); err != nil {
			return err
		}
		from = &importedChat{db: im.db, chatID: c.ID, thread: reader.thread, problem: problem}
		l.Said, l.Context = reader.read, from.branchContext(contexts)
	}
	l.Chat = c // with its original metadata
	nodes, err := im.readGraph(ctx, &l)
	if err != nil {
		return err
	}
	if nodes, err = withoutReserved(ctx, im.db, nodes, reader, &l); err != nil {
		return err
	}
	l.Messages = im.messages(ctx, c.ID, nodes)
	if err := c.Check(); err != nil {
		problem(err)
		return nil
	}
	done, err := chat.Load(ctx, im.store, l)
	im.report.Chats++
	im.report.Messages += done.Messages
	im.report.New += done.New
	changed := done.Changed
	if from != nil && err == nil {
		var more bool
		more, err = from.importContexts(ctx, im.store, contexts)
		changed = changed || more
	}
	if from != nil && err == nil {
		var more bool
		more, err = from.importValues(ctx, im.store, im.options.UserID)
		changed = changed || more
	}
	if changed {
		im.report.Changed++
	}
	if errors.Is(err, chat.ErrOtherUser) {
		problem(err)
		return nil
	}
	return err
}

// readGraph reads the branches and checkpoints of a chat, and returns the links of its messages.
func (im *importer) readGraph(ctx context.Context, l *chat.Loading) (nodes []treeNode, err error) {
	err = im.db.Read(ctx, func(conn *sqladapter.Conn) error {
		if nodes, err = lists.Collect(ctx, conn, scanNode, chatSQL.links, l.Chat.ID); err != nil {
			return err
		}
		if l.Branches, err = chatrows.Branches(ctx, conn, l.Chat.ID); err != nil {
			return err
		}
		l.Checkpoints, err = chatrows.Checkpoints(ctx, conn, l.Chat.ID)
		return err
	})
	return nodes, err
}

// messages returns the messages of a chat, each after its parent.
func (im *importer) messages(ctx context.Context, chatID string, nodes []treeNode) iter.Seq2[chat.Message, error] {
	problem := im.problem(chatID)
	ordered, cut := treeOrder(nodes, func(id, detail string) {
		problem(&chat.Error{Subject: chat.SubjectMessage, ID: id, ChatID: chatID, Err: chat.ErrInvalid, Detail: detail})
	})
	return func(yield func(chat.Message, error) bool) {
		for m, err := range chatrows.InOrder(ctx, im.db, ordered) {
			if errors.Is(err, chat.ErrNotFound) {
				continue // deleted in the meantime
			}
			if cut[m.ID] {
				m.ParentID = ""
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}
