package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/server/problem"
)

type chatsQuery struct {
	User         string   `json:"-" query:"user" doc:"only those of this user"`
	Metadata     []string `json:"-" query:"metadata" doc:"only those with this KEY=VALUE in their metadata; dots in KEY lead into objects; VALUE is JSON, or else a string"`
	SourcePrefix string   `json:"-" query:"source_prefix" doc:"only those whose source id has this prefix"`
	Message      string   `json:"-" query:"message" doc:"only those that have a message with this id"`
	Branch       string   `json:"-" query:"branch" doc:"only the one that has a branch with this id"`
	Offset       int      `json:"-" query:"offset" doc:"leave out so many"`
	listPage
}

func (a *API) listChats(ctx context.Context, c *call, in *chatsQuery) (*list[*chatRecord], error) {
	o := chat.ListOptions{UserID: in.User}
	for _, pair := range in.Metadata {
		condition, err := metadataIs(pair)
		if err != nil {
			return nil, err
		}
		filter := chat.MetadataFilter{Key: condition.Key}
		d := json.NewDecoder(bytes.NewReader(condition.Value))
		d.UseNumber()
		if err := d.Decode(&filter.Value); err != nil {
			return nil, err
		}
		o.Metadata = append(o.Metadata, filter)
	}
	if in.Offset < 0 {
		return nil, fmt.Errorf("offset %d: %w", in.Offset, lineage.ErrInvalid)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	switch {
	case in.Message != "" && in.Branch != "":
		return nil, fmt.Errorf("branch: %w: it goes without message", lineage.ErrInvalid)
	case in.Message != "":
		return a.chatsWithMessage(ctx, c, &o, in)
	case in.Branch != "":
		return a.chatsWithBranch(ctx, c, &o, in)
	}
	return a.pageOfChats(ctx, c, &o, in)
}

// passes reports whether a chat is for the caller and asked for.
func (c *call) passes(o *chat.ListOptions, in *chatsQuery, found *chat.Chat) bool {
	scope := &c.caller.Scope
	return scope.Allows(&lineage.ThreadInfo{UserID: found.UserID, Metadata: found.Metadata}) &&
		strings.HasPrefix(scope.Chosen(found.ID), in.SourcePrefix) && o.Passes(*found)
}

// chatRecord returns the record of a chat.
func (c *call) chatRecord(found *chat.Chat) *chatRecord {
	r := ofChatRecord(found)
	r.ID = c.caller.Scope.Chosen(found.ID)
	return r
}

// chatsWithMessage lists the chats that have a message with an id. A page ends after maxLooked of them. The next one begins after a chat
// that the caller may read.
func (a *API) chatsWithMessage(ctx context.Context, c *call, o *chat.ListOptions, in *chatsQuery) (*list[*chatRecord], error) {
	out, looked, next := &list[*chatRecord]{}, 0, ""
	for found, err := range chat.WithMessage(ctx, a.o.Store, in.Message, in.After) {
		if err != nil {
			return nil, err
		}
		if len(out.Items) == in.size() || looked == c.a.o.looked {
			if next == "" {
				return nil, problem.New(http.StatusConflict, "ambiguous", "too many chats have a message with this id: look it up in one")
			}
			out.Next = next
			break
		}
		looked++
		passes := c.passes(o, in, &found.Chat)
		if passes {
			out.Items = append(out.Items, c.chatRecord(&found.Chat))
		}
		if passes || c.caller.Scope.All() {
			next = found.Page
		}
	}
	return out, nil
}

// chatsWithBranch lists the chat that has a branch with an id. Callers of several parts of the store can have chosen it in several.
func (a *API) chatsWithBranch(ctx context.Context, c *call, o *chat.ListOptions, in *chatsQuery) (*list[*chatRecord], error) {
	out := &list[*chatRecord]{}
	for _, id := range c.caller.Scope.Names(in.Branch) {
		for found, err := range chat.WithBranch(ctx, a.o.Store, id) {
			if err != nil {
				return nil, err
			}
			if c.passes(o, in, &found) {
				out.Items = append(out.Items, c.chatRecord(&found))
			}
		}
	}
	return out, nil
}

// skipMark is between the token of a page and the number of chats to leave out on it.
const skipMark = "."

func (a *API) pageOfChats(ctx context.Context, c *call, o *chat.ListOptions, in *chatsQuery) (*list[*chatRecord], error) {
	after, left, _ := strings.Cut(in.After, skipMark)
	skip := in.Offset
	if in.After != "" {
		skip = 0
	}
	if left != "" {
		n, err := strconv.Atoi(left)
		if err != nil || n < 0 {
			return nil, errPage
		}
		skip = n
	}
	q, err := o.ThreadQuery()
	if err != nil {
		return nil, err
	}
	if users := c.caller.Scope.Users; q.User == nil && len(users) == 1 {
		q.User = &users[0]
	}
	found, next, err := c.pageOfThreads(ctx, q, after, in.size(), in.SourcePrefix, func(thread *lineage.ThreadInfo) (bool, error) {
		if !o.Passes(chat.OfThread(thread)) {
			return false, nil
		}
		if listed, err := chat.IsChat(ctx, a.o.Store, thread); err != nil || !listed {
			return false, err
		}
		if skip > 0 {
			skip--
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	out := &list[*chatRecord]{Next: next}
	if next != "" && skip > 0 {
		out.Next += skipMark + strconv.Itoa(skip)
	}
	for _, t := range found {
		info, err := chat.InfoOf(ctx, a.o.Store, &t.Was)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		r := c.chatRecord(&info.Chat)
		r.Messages, r.Branches = &info.MessageCount, &info.BranchCount
		out.Items = append(out.Items, r)
	}
	return out, nil
}
