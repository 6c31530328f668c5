package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/problem"
)

// A chat is a thread seen as a graph of messages, by the ids that their creators chose. Package chat has the rules.

// chatOf is the chat of a thread, as a caller may see it.
type chatOf struct {
	id     string
	thread lineage.ThreadID
	scope  *access.Scope
	// space is before the ids of branches that the caller chooses: see access.Scope.
	space string
}

// source returns the source id of a branch for which the caller chose an id.
func (of *chatOf) source(id string) string {
	if id == "" {
		return ""
	}
	return of.space + id
}

// named returns the source id of the branch that the caller means by an id: one that such a caller chose, or that another one did.
func (of *chatOf) named(ctx context.Context, store *lineage.Store, id string) (string, error) {
	if of.space != "" {
		for in, err := range chat.WithBranch(ctx, store, of.space+id) {
			if err != nil || in.ID == of.id {
				return of.space + id, err
			}
		}
	}
	return id, nil
}

// chosen returns the id of a branch as the caller chose it.
func (of *chatOf) chosen(id string) string { return strings.TrimPrefix(id, of.space) }

// chatOf returns the chat of a thread. A thread without a source id has no chat if its id is the source id of another one.
func (w *within) chatOf(ctx context.Context, thread string) (*chatOf, error) {
	t, err := w.thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return nil, hidden(err, "thread", thread)
	}
	of := &chatOf{id: info.SourceID, thread: info.ID, scope: &w.caller.Scope, space: w.caller.Scope.Space(&info)}
	if of.id != "" {
		return of, nil
	}
	of.id = info.ID.String()
	if _, err = w.store.FindThread(ctx, of.id); !errors.Is(err, lineage.ErrNotFound) {
		return nil, cmp.Or(err, notFound("chat", of.id))
	}
	return of, nil
}

// inChat reads the chat of a thread. Chats are looked up by their ids: if meanwhile the thread was deleted, or another one has its id
// as source id, what was read may be of another chat, and the error is ErrNotFound.
func (c *call) inChat(ctx context.Context, thread string, read func(chats chat.Store, of *chatOf) error) error {
	of, err := c.chatOf(ctx, thread)
	if err != nil {
		return err
	}
	failed := read(chat.On(c.store), of)
	if again, err := c.chatOf(ctx, of.thread.String()); err != nil || again.id != of.id {
		return cmp.Or(err, notFound("thread", thread))
	}
	return of.problem(failed)
}

// changeChat changes the chat of a thread in the transaction.
func (w *within) changeChat(ctx context.Context, thread string, change func(of *chatOf) error) (made, error) {
	of, err := w.chatOf(ctx, thread)
	if err != nil {
		return made{}, err
	}
	return made{}, of.problem(change(of))
}

// problem returns the error for a caller that may read the chat. It names what is missing there, by the ids that the caller chose.
// What only another chat has is also missing for a caller that may not read all chats.
func (of *chatOf) problem(err error) error {
	if head := new(chat.HeadError); errors.As(err, &head) {
		told := *head
		told.BranchID = of.chosen(head.BranchID)
		p := problem.New(http.StatusPreconditionFailed, "tip moved", told.Error())
		p.Tip = (*string)(&told.Actual)
		return p
	}
	is := new(chat.Error)
	if !errors.As(err, &is) {
		return err
	}
	told := *is
	told.ChatID = of.scope.Chosen(is.ChatID)
	switch is.Subject {
	case chat.SubjectChat:
		told.ID = of.scope.Chosen(is.ID)
		return &told
	case chat.SubjectBranch:
		told.ID = of.chosen(is.ID)
	}
	if errors.Is(err, chat.ErrOtherChat) && !of.scope.All() {
		told.Err, told.Detail = chat.ErrNotFound, ""
	}
	err = &told
	switch {
	case errors.Is(err, chat.ErrNotFound):
		return problem.New(http.StatusNotFound, "not found", err.Error())
	case errors.Is(err, chat.ErrOtherChat), errors.Is(err, chat.ErrOwnParent):
		return problem.New(http.StatusBadRequest, "invalid", err.Error())
	}
	return err
}

// chatRecord is a chat in a list.
type chatRecord struct {
	// ID is the id that its creator chose, else that of the thread.
	ID       string          `json:"id"`
	User     string          `json:"user,omitempty"`
	Title    string          `json:"title,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Messages and Branches are numbers, of the messages on all branches. They are absent in a list by message or branch.
	Messages  *int      `json:"messages,omitempty"`
	Branches  *int      `json:"branches,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// RecordType implements records.Record.
func (*chatRecord) RecordType() string { return "chat" }

func at(millis int64) time.Time { return time.UnixMilli(millis).UTC() }

func ofChatRecord(c *chat.Chat) *chatRecord {
	return &chatRecord{
		ID: c.ID, User: c.UserID, Title: c.Title, Metadata: records.JSON(c.Metadata), CreatedAt: at(c.CreatedAt), UpdatedAt: at(c.UpdatedAt),
	}
}

// chatMessage is a message of a chat.
type chatMessage struct {
	ID     string  `json:"id"`
	Parent *string `json:"parent"`
	Role   string  `json:"role"`
	Kind   string  `json:"kind,omitempty"`
	// Data is any JSON, and null for a message that was erased.
	Data json.RawMessage `json:"data"`
	// Followed is set if it is the parent of another message. Only a message that is asked for by its id has it.
	Followed *bool `json:"followed,omitempty"`
	// Rank orders what a search found: the higher, the better. Snippet is where it matches, the words between <mark> and </mark>.
	Rank      *float64  `json:"rank,omitempty"`
	Snippet   string    `json:"snippet,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// RecordType implements records.Record.
func (*chatMessage) RecordType() string { return "chat_message" }

func ofChatMessage(m *chat.Message) *chatMessage {
	return &chatMessage{ID: m.ID, Parent: orNull(m.ParentID), Role: m.Name, Kind: m.Type, Data: m.Data, CreatedAt: at(m.CreatedAt)}
}

func orNull(r chat.Ref) *string {
	if r == "" {
		return nil
	}
	return (*string)(&r)
}

// chatBranch is a branch of a chat.
type chatBranch struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Head is its last message.
	Head   *string `json:"head"`
	Active bool    `json:"active"`
	// Length is how many messages lead to the head. Only the list of all has it.
	Length    *int      `json:"length,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// RecordType implements records.Record.
func (*chatBranch) RecordType() string { return "chat_branch" }

func (of *chatOf) branch(b *chat.Branch) *chatBranch {
	return &chatBranch{ID: of.chosen(b.ID), Name: b.Name, Head: orNull(b.HeadMessageID), Active: b.IsActive, CreatedAt: at(b.CreatedAt)}
}

// chatCheckpoint is a checkpoint of a chat.
type chatCheckpoint struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Message   string    `json:"message"`
	CreatedAt time.Time `json:"created_at"`
}

// RecordType implements records.Record.
func (*chatCheckpoint) RecordType() string { return "chat_checkpoint" }

func ofChatCheckpoint(k *chat.Checkpoint) *chatCheckpoint {
	return &chatCheckpoint{ID: k.ID, Name: k.Name, Message: k.MessageID, CreatedAt: at(k.CreatedAt)}
}

type chatMessagesQuery struct {
	ofThread
	ID string `json:"-" query:"id" doc:"only this message, if it is there"`
	To string `json:"-" query:"to" doc:"this message and those before it, back to the first"`
	page
}

func (a *API) chatMessages(ctx context.Context, c *call, in *chatMessagesQuery) (*list[*chatMessage], error) {
	if (in.ID == "") == (in.To == "") || in.ID != "" && in.After != "" {
		return nil, fmt.Errorf("query: %w: it has id, or to", lineage.ErrInvalid)
	}
	out := &list[*chatMessage]{}
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, of *chatOf) error {
		if in.To != "" {
			return orElsewhere(backFrom(chats.Ancestors(ctx, of.id, cmp.Or(in.After, in.To)), in.size(), out))
		}
		m, err := chats.Message(ctx, of.id, in.ID)
		if err != nil || m == nil {
			return orElsewhere(err)
		}
		followed, err := chats.HasChildren(ctx, of.id, in.ID)
		r := ofChatMessage(m)
		r.Followed = &followed
		out.Items = append(out.Items, r)
		return err
	})
	return out, err
}

// orElsewhere returns the error of a lookup. What only another chat has is no error.
func orElsewhere(err error) error {
	if errors.Is(err, chat.ErrOtherChat) {
		return nil
	}
	return err
}

// backFrom fills a page. Its Next is the id that the next page begins with.
func backFrom(all iter.Seq2[chat.Message, error], size int, out *list[*chatMessage]) error {
	texts := 0
	for m, err := range all {
		if err != nil {
			return err
		}
		if len(out.Items) == size || len(out.Items) > 0 && texts+len(m.Data) > maxTexts {
			out.Next = m.ID
			return nil
		}
		texts += len(m.Data)
		out.Items = append(out.Items, ofChatMessage(&m))
	}
	return nil
}

type addChatMessage struct {
	ofThread
	ID        string          `json:"id" doc:"an id of your choice, unique in the chat"`
	Parent    string          `json:"parent,omitempty" doc:"the id of the message that it follows; none for the first of a history"`
	Role      string          `json:"role" doc:"the role"`
	Kind      string          `json:"kind,omitempty" doc:"message, or what else it is"`
	Data      json.RawMessage `json:"data" doc:"any JSON"`
	CreatedAt time.Time       `json:"created_at,omitzero" doc:"default now"`
	Replace   bool            `json:"replace,omitempty" doc:"a message with the id, after the same parent and with nothing after it, gives the id to this one, as a reply that grows"`
}

func (o *addChatMessage) do(ctx context.Context, w *within) (made, error) {
	return w.changeChat(ctx, o.Thread, func(of *chatOf) error {
		m := chat.Message{ID: o.ID, ChatID: of.id, ParentID: chat.Ref(o.Parent), Name: o.Role, Type: o.Kind, Data: o.Data, CreatedAt: millis(o.CreatedAt)}
		if o.Replace {
			return chat.Replace(ctx, w.store, m)
		}
		return chat.On(w.store).AddMessage(ctx, m)
	})
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

type chatBranchesQuery struct {
	ofThread
	Name   string `json:"-" query:"name" doc:"only the one with this name"`
	Active bool   `json:"-" query:"active" doc:"only the active one"`
	page
}

func (a *API) chatBranches(ctx context.Context, c *call, in *chatBranchesQuery) (*list[*chatBranch], error) {
	out := &list[*chatBranch]{}
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, of *chatOf) error {
		var one *chat.Branch
		var err error
		switch {
		case in.Name != "":
			if one, err = chats.Branch(ctx, of.id, in.Name); one != nil && in.Active && !one.IsActive {
				one = nil
			}
		case in.Active:
			one, err = chats.ActiveBranch(ctx, of.id)
		default:
			out, err = c.pageOfBranches(ctx, of, &in.page)
			return err
		}
		if one != nil {
			out.Items = append(out.Items, of.branch(one))
		}
		return err
	})
	return out, err
}

type createChatBranch struct {
	ofThread
	ID        string    `json:"id,omitempty" doc:"an id of your choice, unique in the store"`
	Name      string    `json:"name" doc:"its name"`
	Head      string    `json:"head,omitempty" doc:"the id of its last message; none while it is empty"`
	Active    bool      `json:"active,omitempty" doc:"make it the active branch"`
	CreatedAt time.Time `json:"created_at,omitzero" doc:"default now"`
}

func (o *createChatBranch) do(ctx context.Context, w *within) (made, error) {
	return w.changeChat(ctx, o.Thread, func(of *chatOf) error {
		_, err := chat.On(w.store).CreateBranch(ctx, chat.Branch{
			ID: of.source(o.ID), ChatID: of.id, Name: o.Name, HeadMessageID: chat.Ref(o.Head), IsActive: o.Active, CreatedAt: millis(o.CreatedAt),
		})
		return err
	})
}

type updateChatBranch struct {
	ofThread
	Branch string  `json:"branch,omitempty" path:"id" doc:"the id of the branch"`
	Active bool    `json:"active,omitempty" doc:"true makes it the active branch"`
	Head   *string `json:"head,omitempty" doc:"the id of its last message; empty for none"`
	Along  bool    `json:"along,omitempty" doc:"with head: only forwards; tip-moved if the head does not follow the one that the branch has, which another program may have added"`
}

func (o *updateChatBranch) do(ctx context.Context, w *within) (made, error) {
	return w.changeChat(ctx, o.Thread, func(of *chatOf) error {
		branch, err := of.named(ctx, w.store, o.Branch)
		switch {
		case err != nil:
			return err
		case o.Head != nil && o.Along:
			err = chat.MoveAlong(ctx, w.store, of.id, branch, chat.Ref(*o.Head))
		case o.Head != nil:
			err = chat.On(w.store).UpdateBranchHead(ctx, of.id, branch, chat.Ref(*o.Head))
		}
		if err == nil && (o.Active || o.Head == nil) {
			if !o.Active {
				return fmt.Errorf("branch %.100q: %w: active or head says what to change", o.Branch, lineage.ErrInvalid)
			}
			err = chat.On(w.store).SetActiveBranch(ctx, of.id, branch)
		}
		return err
	})
}

type chatCheckpointsQuery struct {
	ofThread
	Name string `json:"-" query:"name" doc:"only the one with this name"`
	page
}

func (a *API) chatCheckpoints(ctx context.Context, c *call, in *chatCheckpointsQuery) (*list[*chatCheckpoint], error) {
	out := &list[*chatCheckpoint]{}
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, of *chatOf) error {
		if in.Name != "" {
			one, err := chats.Checkpoint(ctx, of.id, in.Name)
			if one != nil {
				out.Items = append(out.Items, ofChatCheckpoint(one))
			}
			return err
		}
		var err error
		out, err = c.pageOfCheckpoints(ctx, of, &in.page)
		return err
	})
	return out, err
}

type setChatCheckpoint struct {
	ofThread
	ID        string    `json:"id,omitempty" doc:"an id of your choice, unique in the chat; a checkpoint that is moved keeps the one that it has"`
	Name      string    `json:"name" doc:"its name; a checkpoint of that name is moved"`
	Message   string    `json:"message" doc:"the id of the message that it names"`
	CreatedAt time.Time `json:"created_at,omitzero" doc:"default now"`
}

func (o *setChatCheckpoint) do(ctx context.Context, w *within) (made, error) {
	return w.changeChat(ctx, o.Thread, func(of *chatOf) error {
		_, err := chat.On(w.store).CreateCheckpoint(ctx, chat.Checkpoint{
			ID: o.ID, ChatID: of.id, Name: o.Name, MessageID: o.Message, CreatedAt: millis(o.CreatedAt),
		})
		return err
	})
}
