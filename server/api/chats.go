package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// A chat is a thread seen as a graph of messages, by the ids that their creators chose. Package chat has the rules.

type chatMessagesQuery struct {
	ofThread
	ID string `json:"-" query:"id" doc:"only this message, if it is there"`
	To string `json:"-" query:"to" doc:"this message and those before it, back to the first"`
	listPage
}

func (a *API) chatMessages(ctx context.Context, c *call, in *chatMessagesQuery) (*list[*chatMessage], error) {
	if (in.ID == "") == (in.To == "") || in.ID != "" && in.After != "" {
		return nil, fmt.Errorf("query: %w: it has id, or to", lineage.ErrInvalid)
	}
	out := &list[*chatMessage]{}
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, names *chatOf) error {
		if in.To != "" {
			return orElsewhere(backFrom(chats.Ancestors(ctx, names.id, cmp.Or(in.After, in.To)), in.size(), out))
		}
		m, err := chats.Message(ctx, names.id, in.ID)
		if err != nil || m == nil {
			return orElsewhere(err)
		}
		followed, err := chats.HasChildren(ctx, names.id, in.ID)
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
	return w.changeChat(ctx, o.Thread, func(names *chatOf) error {
		m := chat.Message{ID: o.ID, ChatID: names.id, ParentID: chat.Ref(o.Parent), Name: o.Role, Type: o.Kind, Data: o.Data, CreatedAt: millis(o.CreatedAt)}
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
	listPage
}

func (a *API) chatBranches(ctx context.Context, c *call, in *chatBranchesQuery) (*list[*chatBranch], error) {
	out := &list[*chatBranch]{}
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, names *chatOf) error {
		var branch *chat.Branch
		var err error
		switch {
		case in.Name != "":
			if branch, err = chats.Branch(ctx, names.id, in.Name); branch != nil && in.Active && !branch.IsActive {
				branch = nil
			}
		case in.Active:
			branch, err = chats.ActiveBranch(ctx, names.id)
		default:
			out, err = pageOfCreated(ctx, c, names, &in.listPage, names.branches(c.store))
			return err
		}
		if branch != nil {
			out.Items = append(out.Items, names.branch(branch))
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
	return w.changeChat(ctx, o.Thread, func(names *chatOf) error {
		_, err := chat.On(w.store).CreateBranch(ctx, chat.Branch{
			ID: names.source(o.ID), ChatID: names.id, Name: o.Name, HeadMessageID: chat.Ref(o.Head), IsActive: o.Active, CreatedAt: millis(o.CreatedAt),
		})
		return err
	})
}

type updateChatBranch struct {
	ofThread
	Branch string  `json:"branch,omitempty" path:"id" doc:"the id of the branch"`
	Active *bool   `json:"active,omitempty" doc:"true makes it the active branch; false is refused: make another one active"`
	Head   *string `json:"head,omitempty" doc:"the id of its last message; empty for none"`
	Along  bool    `json:"along,omitempty" doc:"with head: only forwards; tip-moved if the head does not follow the one that the branch has, which another program may have added"`
}

func (o *updateChatBranch) do(ctx context.Context, w *within) (made, error) {
	active, err := activates(o.Branch, o.Active)
	if err != nil {
		return made{}, err
	}
	return w.changeChat(ctx, o.Thread, func(names *chatOf) error {
		branch, err := names.named(ctx, w.store, o.Branch)
		switch {
		case err != nil:
			return err
		case o.Head != nil && o.Along:
			err = chat.MoveAlong(ctx, w.store, names.id, branch, chat.Ref(*o.Head))
		case o.Head != nil:
			err = chat.On(w.store).UpdateBranchHead(ctx, names.id, branch, chat.Ref(*o.Head))
		}
		if err == nil && (active || o.Head == nil) {
			if !active {
				return fmt.Errorf("branch %.100q: %w: active or head says what to change", o.Branch, lineage.ErrInvalid)
			}
			err = chat.On(w.store).SetActiveBranch(ctx, names.id, branch)
		}
		return err
	})
}

type chatCheckpointsQuery struct {
	ofThread
	Name string `json:"-" query:"name" doc:"only the one with this name"`
	listPage
}

func (a *API) chatCheckpoints(ctx context.Context, c *call, in *chatCheckpointsQuery) (*list[*chatCheckpoint], error) {
	out := &list[*chatCheckpoint]{}
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, names *chatOf) error {
		if in.Name != "" {
			checkpoint, err := chats.Checkpoint(ctx, names.id, in.Name)
			if checkpoint != nil {
				out.Items = append(out.Items, ofChatCheckpoint(checkpoint))
			}
			return err
		}
		var err error
		out, err = pageOfCreated(ctx, c, names, &in.listPage, &chatCheckpoints)
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
	return w.changeChat(ctx, o.Thread, func(names *chatOf) error {
		_, err := chat.On(w.store).CreateCheckpoint(ctx, chat.Checkpoint{
			ID: o.ID, ChatID: names.id, Name: o.Name, MessageID: o.Message, CreatedAt: millis(o.CreatedAt),
		})
		return err
	})
}
