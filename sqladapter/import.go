package sqladapter

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
)

// ImportOptions configure an import.
type ImportOptions struct {
	// UserID, when not empty, restricts the import to chats of a user.
	UserID string
	// Progress, when not nil, is called after each chat with the progress so far.
	Progress func(ImportReport)
	// Problem, when not nil, is called for each item that could not be imported, with its chat, if
	// any. The rest is imported.
	Problem func(chatID string, err error)
}

// ImportReport is the result of an import.
type ImportReport struct {
	// Chats is the number of chats read, Changed the number that were new or had changes.
	Chats, Changed int
	// Messages is the number of messages read, New the number that were new or changed.
	Messages, New int
	// Problems is the number of skipped items.
	Problems int
}

// problem records a skipped item.
func (r *ImportReport) problem(o ImportOptions, chatID string, err error) {
	r.Problems++
	if o.Problem != nil {
		o.Problem(chatID, err)
	}
}

var importSQL = struct {
	chatsAfter, links Statement
}{
	chatsAfter: `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE "id" > ? {kept:chats.id} ORDER BY "id" {limit}`,
	links:      `SELECT "id", "parentId", "createdAt" FROM "messages" WHERE "chatId" = ?`,
}

// importPage is the number of chats read per query.
const importPage = 100

// Import copies the chats of a database to a store, with their ids and times: chats become threads,
// branches become contexts, and equal content is stored once. The database may have been filled by
// any program. Importing again adds only what is new: added messages, and a new version of each
// message changed in place. Deletions in the database are not applied to the store. See chat.Load.
//
// An assistant message without parts at the head of a branch is a turn in progress. It is imported
// once it has been filled in.
//
// The ids of a chat's messages are held in memory. An interrupted import is continued by the next
// one.
func Import(ctx context.Context, db *DB, store *lineage.Store, o ImportOptions) (ImportReport, error) {
	var report ImportReport
	contexts, err := db.hasContexts(ctx)
	if err != nil {
		return report, err
	}
	for after := ""; ; {
		var chats []chat.Chat
		chats, err := readAll(ctx, db, scanChat, importSQL.chatsAfter, after, importPage)
		if err != nil {
			return report, err
		}
		if len(chats) == 0 {
			if contexts {
				if _, err := db.importValues(ctx, store, "", "", o, func(err error) { report.problem(o, "", err) }); err != nil {
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
			if err := db.importChat(ctx, store, c, contexts, o, &report); err != nil {
				return report, fmt.Errorf("import chat %q: %w", c.ID, err)
			}
			if o.Progress != nil {
				o.Progress(report)
			}
		}
	}
}

func (db *DB) importChat(ctx context.Context, store *lineage.Store, c chat.Chat, contexts bool, o ImportOptions, report *ImportReport) error {
	problem := func(err error) { report.problem(o, c.ID, err) }
	var said *saidReader
	var stored []storedContext
	var err error
	if contexts {
		if said, err = db.saidReader(ctx, &c); err != nil {
			return err
		}
		if stored, err = readAll(ctx, db, scanContext, importContextSQL.ofThread, said.thread); err != nil {
			return err
		}
	}
	l := chat.Loading{Chat: c, Problem: problem}
	var nodes []treeNode
	err = db.Read(ctx, func(conn *Conn) error {
		if nodes, err = collect(ctx, conn, scanNode, importSQL.links, c.ID); err != nil {
			return err
		}
		if l.Branches, err = conn.branches(ctx, c.ID); err != nil {
			return err
		}
		l.Checkpoints, err = collect(ctx, conn, scanCheckpoint, checkpointSQL.ofChat, c.ID)
		return err
	})
	if err != nil {
		return err
	}
	if said != nil {
		l.Said, l.Context = said.read, db.branchContext(c.ID, said.thread, stored)
	}
	if nodes, err = db.withoutReserved(ctx, nodes, said, &l); err != nil {
		return err
	}
	ordered, cut := treeOrder(nodes, func(id string, detail string) {
		problem(&chat.Error{Subject: chat.SubjectMessage, ID: id, ChatID: c.ID, Err: chat.ErrInvalid, Detail: detail})
	})
	l.Messages = func(yield func(chat.Message, error) bool) {
		for m, err := range db.messagesInOrder(ctx, ordered) {
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
		more, err = db.importContexts(ctx, store, c.ID, said.thread, stored, problem)
		changed = changed || more
		if err == nil {
			more, err = db.importValues(ctx, store, c.ID, said.thread, o, problem)
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

// loadAt makes a transaction as of a time, and reports whether it changes anything.
func loadAt(ctx context.Context, store *lineage.Store, at time.Time, load func(tx *lineage.Store) error) (changed bool, err error) {
	err = store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		stage := write.Of(tx.Store).Engine().(*write.Stage)
		stage.AllowLarge()
		stage.Load(at, backend.Normal)
		err := load(tx.Store)
		changed = stage.Changes() > 0
		return err
	})
	return changed && err == nil, err
}

// withoutReserved removes turns in progress: assistant messages without parts and without
// successors, which a program has reserved as a branch's head. The branch ends before them.
// Messages from a store are never removed.
func (db *DB) withoutReserved(ctx context.Context, nodes []treeNode, said *saidReader, l *chat.Loading) ([]treeNode, error) {
	parents, continued := make(map[string]chat.Ref, len(nodes)), make(map[string]bool)
	for _, n := range nodes {
		parents[n.id] = chat.Ref(n.parent)
		continued[n.parent] = true
	}
	var heads []string
	for _, b := range l.Branches {
		if b.HeadMessageID != "" && !continued[string(b.HeadMessageID)] && said.spanOf(string(b.HeadMessageID)) == "" {
			heads = append(heads, string(b.HeadMessageID))
		}
	}
	found, err := db.readMessages(ctx, heads)
	if err != nil {
		return nil, err
	}
	isReserved := func(id string) bool {
		m, ok := found[id]
		return ok && m.ChatID == l.Chat.ID && m.Name == "assistant" && hasNoParts(m.Data)
	}
	for i := range l.Branches {
		if b := &l.Branches[i]; isReserved(string(b.HeadMessageID)) {
			b.HeadMessageID = parents[string(b.HeadMessageID)]
		}
	}
	l.Checkpoints = slices.DeleteFunc(l.Checkpoints, func(k chat.Checkpoint) bool { return isReserved(k.MessageID) })
	return slices.DeleteFunc(nodes, func(n treeNode) bool { return isReserved(n.id) }), nil
}

// hasNoParts reports whether a message's JSON is an object with no members except id, role and
// metadata.
func hasNoParts(data json.RawMessage) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil || m == nil {
		return false
	}
	for key, value := range m {
		switch key {
		case "id", "role", "metadata", "createdAt":
		case "parts", "content":
			if v := string(value); v != "[]" && v != "null" && v != `""` {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// treeNode is a message with its parent.
type treeNode struct {
	link
	createdAt int64
}

func scanNode(rows *Rows) (treeNode, error) {
	var n treeNode
	var parent sql.NullString
	err := rows.Scan(&n.id, &parent, &n.createdAt)
	n.parent = parent.String
	return n, err
}

// treeOrder returns the ids of messages with each one after its parent, directly after it if it is
// the first child. cut are messages whose parents are missing; they become roots. Circular messages
// are left out.
func treeOrder(nodes []treeNode, problem func(id, detail string)) (ordered []string, cut map[string]bool) {
	slices.SortFunc(nodes, func(a, b treeNode) int {
		return cmp.Or(cmp.Compare(a.createdAt, b.createdAt), cmp.Compare(a.id, b.id))
	})
	at := make(map[string]int, len(nodes))
	for i, n := range nodes {
		at[n.id] = i
	}
	cut = make(map[string]bool)
	var roots []int
	children := make([][]int, len(nodes))
	for i, n := range nodes {
		parent, ok := at[n.parent]
		switch {
		case n.parent == "":
			roots = append(roots, i)
		case !ok:
			problem(n.id, "its parent "+n.parent+" is not in the chat; it becomes a first message")
			cut[n.id] = true
			roots = append(roots, i)
		default:
			children[parent] = append(children[parent], i)
		}
	}
	ordered = make([]string, 0, len(nodes))
	stack := roots
	slices.Reverse(stack)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		ordered = append(ordered, nodes[i].id)
		for _, child := range slices.Backward(children[i]) {
			stack = append(stack, child)
		}
	}
	if len(ordered) < len(nodes) {
		done := make(map[string]bool, len(ordered))
		for _, id := range ordered {
			done[id] = true
		}
		for _, n := range nodes {
			if !done[n.id] {
				problem(n.id, "it is its own ancestor")
			}
		}
	}
	return ordered, cut
}
