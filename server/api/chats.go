package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/problem"
)

// A chat is a thread seen as a graph of messages, by the ids that their creators chose. Package chat has the rules.

// inChat reads the chat of a thread. It is ErrNotFound if the thread was deleted meanwhile: another user's may have its source id.
func (c *call) inChat(ctx context.Context, thread string, read func(chats chat.Store, id string) error) error {
	t, err := c.thread(ctx, thread)
	if err != nil {
		return err
	}
	id, err := chatID(ctx, t)
	if err == nil {
		err = read(chat.On(c.store), id)
	}
	if _, gone := c.thread(ctx, t.ID().String()); gone != nil {
		return gone
	}
	return c.ofChat(err)
}

// changeChat changes the chat of a thread in the transaction.
func (w *within) changeChat(ctx context.Context, thread string, change func(id string) error) (made, error) {
	t, err := w.thread(ctx, thread)
	if err != nil {
		return made{}, err
	}
	id, err := chatID(ctx, t)
	if err == nil {
		err = change(id)
	}
	return made{}, w.ofChat(err)
}

func chatID(ctx context.Context, t *lineage.Thread) (string, error) {
	info, err := t.Info(ctx)
	return cmp.Or(info.SourceID, info.ID.String()), err
}

// ofChat returns the error for a caller that may read the chat. It names what is missing there. What only another chat has is also missing
// for a caller that may not read all chats.
func (w *within) ofChat(err error) error {
	if errors.Is(err, chat.ErrHeadMoved) {
		p := problem.New(http.StatusPreconditionFailed, "tip moved", err.Error())
		if head := new(chat.HeadError); errors.As(err, &head) {
			p.Tip = (*string)(&head.Actual)
		}
		return p
	}
	is := new(chat.Error)
	if !errors.As(err, &is) || is.Subject == chat.SubjectChat {
		return err
	}
	if errors.Is(err, chat.ErrOtherChat) && !w.caller.Scope.All() {
		err = &chat.Error{Subject: is.Subject, ID: is.ID, ChatID: is.ChatID, Err: chat.ErrNotFound}
	}
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

func ofChatBranch(b *chat.Branch) *chatBranch {
	return &chatBranch{ID: b.ID, Name: b.Name, Head: orNull(b.HeadMessageID), Active: b.IsActive, CreatedAt: at(b.CreatedAt)}
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

type chatsQuery struct {
	User         string   `json:"-" query:"user" doc:"only those of this user"`
	Metadata     []string `json:"-" query:"metadata" doc:"only those with this KEY=VALUE in their metadata; dots in KEY lead into objects; VALUE is JSON, or else a string"`
	SourcePrefix string   `json:"-" query:"source_prefix" doc:"only those whose source id has this prefix"`
	Message      string   `json:"-" query:"message" doc:"only those that have a message with this id"`
	Branch       string   `json:"-" query:"branch" doc:"only the one that has a branch with this id"`
	Offset       int      `json:"-" query:"offset" doc:"leave out so many, on the first page"`
	page
}

func (a *API) listChats(ctx context.Context, c *call, in *chatsQuery) (*list[*chatRecord], error) {
	o := chat.ListOptions{UserID: in.User, IDPrefix: in.SourcePrefix, After: in.After}
	for _, pair := range in.Metadata {
		is, err := metadataIs(pair)
		if err != nil {
			return nil, err
		}
		filter := chat.MetadataFilter{Key: is.Key}
		d := json.NewDecoder(bytes.NewReader(is.Value))
		d.UseNumber()
		if err := d.Decode(&filter.Value); err != nil {
			return nil, err
		}
		o.Metadata = append(o.Metadata, filter)
	}
	if in.Offset < 0 {
		return nil, fmt.Errorf("offset %d: %w", in.Offset, lineage.ErrInvalid)
	}
	var all iter.Seq2[chat.Chat, error]
	switch {
	case in.Message != "" && in.Branch != "":
		return nil, fmt.Errorf("branch: %w: it goes without message", lineage.ErrInvalid)
	case in.Message != "":
		all = chat.WithMessage(ctx, a.o.Store, in.Message)
	case in.Branch != "":
		all = chat.WithBranch(ctx, a.o.Store, in.Branch)
	default:
		return a.pageOfChats(ctx, c, o, in)
	}
	out := &list[*chatRecord]{}
	for is, err := range all {
		if err != nil {
			return nil, err
		}
		if !o.Passes(is) || !c.mayRead(&is) {
			continue
		}
		if out.Items = append(out.Items, ofChatRecord(&is)); len(out.Items) == in.size() {
			break
		}
	}
	return out, nil
}

// mayRead reports whether a chat is for the caller.
func (w *within) mayRead(c *chat.Chat) bool {
	return w.caller.Scope.Allows(&lineage.ThreadInfo{UserID: c.UserID, Metadata: c.Metadata})
}

func (a *API) pageOfChats(ctx context.Context, c *call, o chat.ListOptions, in *chatsQuery) (*list[*chatRecord], error) {
	if users := c.caller.Scope.Users; o.UserID == "" && len(users) == 1 {
		o.UserID = users[0]
	}
	out, skip, looked, last := &list[*chatRecord]{}, 0, 0, ""
	if in.After == "" {
		skip = in.Offset
	}
	if c.caller.Scope.All() { // what is left out need not be looked at
		o.Offset, skip = skip, 0
	}
	for is, err := range chat.On(a.o.Store).ListChats(ctx, o) {
		if err != nil {
			return nil, err
		}
		if len(out.Items) == in.size() || looked == maxLooked && skip == 0 {
			out.Next = last
			break
		}
		looked, last = looked+1, is.Page
		if !c.mayRead(&is.Chat) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		r := ofChatRecord(&is.Chat)
		r.Messages, r.Branches = &is.MessageCount, &is.BranchCount
		out.Items = append(out.Items, r)
	}
	return out, nil
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
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, id string) error {
		if in.To != "" {
			return orElsewhere(backFrom(chats.Ancestors(ctx, id, cmp.Or(in.After, in.To)), in.size(), out))
		}
		m, err := chats.Message(ctx, id, in.ID)
		if err != nil || m == nil {
			return orElsewhere(err)
		}
		followed, err := chats.HasChildren(ctx, id, in.ID)
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
	return w.changeChat(ctx, o.Thread, func(id string) error {
		m := chat.Message{ID: o.ID, ChatID: id, ParentID: chat.Ref(o.Parent), Name: o.Role, Type: o.Kind, Data: o.Data, CreatedAt: millis(o.CreatedAt)}
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
}

func (a *API) chatBranches(ctx context.Context, c *call, in *chatBranchesQuery) (*list[*chatBranch], error) {
	out := &list[*chatBranch]{}
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, id string) error {
		var one *chat.Branch
		var err error
		switch {
		case in.Name != "":
			if one, err = chats.Branch(ctx, id, in.Name); one != nil && in.Active && !one.IsActive {
				one = nil
			}
		case in.Active:
			one, err = chats.ActiveBranch(ctx, id)
		default:
			all, err := chats.ListBranches(ctx, id)
			for i := range all {
				r := ofChatBranch(&all[i].Branch)
				r.Length = &all[i].MessageCount
				out.Items = append(out.Items, r)
			}
			return err
		}
		if one != nil {
			out.Items = append(out.Items, ofChatBranch(one))
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
	return w.changeChat(ctx, o.Thread, func(id string) error {
		_, err := chat.On(w.store).CreateBranch(ctx, chat.Branch{
			ID: o.ID, ChatID: id, Name: o.Name, HeadMessageID: chat.Ref(o.Head), IsActive: o.Active, CreatedAt: millis(o.CreatedAt),
		})
		return err
	})
}

type updateChatBranch struct {
	ofThread
	Branch string  `json:"branch,omitempty" path:"id" doc:"the id of the branch"`
	Active bool    `json:"active,omitempty" doc:"true makes it the active branch"`
	Head   *string `json:"head,omitempty" doc:"the id of its last message; empty for none"`
	Along  bool    `json:"along,omitempty" doc:"with head: only forwards or back; a head that does not follow the one that the branch has, which another program added, is tip-moved"`
}

func (o *updateChatBranch) do(ctx context.Context, w *within) (made, error) {
	return w.changeChat(ctx, o.Thread, func(id string) error {
		var err error
		switch {
		case o.Head != nil && o.Along:
			err = chat.MoveAlong(ctx, w.store, id, o.Branch, chat.Ref(*o.Head))
		case o.Head != nil:
			err = chat.On(w.store).UpdateBranchHead(ctx, id, o.Branch, chat.Ref(*o.Head))
		}
		if err == nil && (o.Active || o.Head == nil) {
			if !o.Active {
				return fmt.Errorf("branch %.100q: %w: active or head says what to change", o.Branch, lineage.ErrInvalid)
			}
			err = chat.On(w.store).SetActiveBranch(ctx, id, o.Branch)
		}
		return err
	})
}

type chatCheckpointsQuery struct {
	ofThread
	Name string `json:"-" query:"name" doc:"only the one with this name"`
}

func (a *API) chatCheckpoints(ctx context.Context, c *call, in *chatCheckpointsQuery) (*list[*chatCheckpoint], error) {
	out := &list[*chatCheckpoint]{}
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, id string) error {
		if in.Name != "" {
			one, err := chats.Checkpoint(ctx, id, in.Name)
			if one != nil {
				out.Items = append(out.Items, ofChatCheckpoint(one))
			}
			return err
		}
		all, err := chats.ListCheckpoints(ctx, id)
		for i := range all {
			out.Items = append(out.Items, ofChatCheckpoint(&all[i]))
		}
		return err
	})
	return out, err
}

type setChatCheckpoint struct {
	ofThread
	ID        string    `json:"id,omitempty" doc:"an id of your choice, unique in the store; a checkpoint that is moved keeps the one that it has"`
	Name      string    `json:"name" doc:"its name; a checkpoint of that name is moved"`
	Message   string    `json:"message" doc:"the id of the message that it names"`
	CreatedAt time.Time `json:"created_at,omitzero" doc:"default now"`
}

func (o *setChatCheckpoint) do(ctx context.Context, w *within) (made, error) {
	return w.changeChat(ctx, o.Thread, func(id string) error {
		_, err := chat.On(w.store).CreateCheckpoint(ctx, chat.Checkpoint{
			ID: o.ID, ChatID: id, Name: o.Name, MessageID: o.Message, CreatedAt: millis(o.CreatedAt),
		})
		return err
	})
}
