package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
)

// newThreadRecord returns the record of a thread, without the fields about its branches.
func (d *database) newThreadRecord(c *chat.Chat) *records.Thread {
	return &records.Thread{
		ID: c.ID, SourceID: c.ID, User: c.UserID, Title: c.Title, Current: c.ID == d.current, Metadata: records.JSON(c.Metadata),
		CreatedAt: millis(c.CreatedAt), UpdatedAt: millis(c.UpdatedAt),
	}
}

func (d *database) threadRecord(ctx context.Context, c *chat.Chat) (*records.Thread, error) {
	r := d.newThreadRecord(c)
	branches, err := d.chats.ListBranches(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	r.Branches = len(branches)
	for _, b := range branches {
		if b.IsActive {
			r.Branch, r.Messages = b.Name, uint64(b.MessageCount)
		}
	}
	return r, nil
}

// titleOf implements threads.
func (d *database) titleOf(ctx context.Context, r *records.Thread) (string, error) {
	return d.shownTitle(ctx, &chat.Chat{ID: r.ID, Title: r.Title})
}

// inDatabase returns the options of a list of a database's threads.
func (o *threadListOptions) inDatabase() (chat.ListOptions, error) {
	if o.gone {
		return chat.ListOptions{}, usagef("--gone is about the session files that a store follows, not about a database")
	}
	list := chat.ListOptions{UserID: o.user, IDPrefix: o.source, TitlePrefix: o.title, Oldest: o.oldest, After: o.after}
	if !o.since.IsZero() {
		list.From = o.since.UnixMilli()
	}
	if !o.until.IsZero() {
		list.To = o.until.UnixMilli()
	}
	for _, is := range o.metadata {
		filter := chat.MetadataFilter{Key: is.Key}
		decoder := json.NewDecoder(bytes.NewReader(is.Value))
		decoder.UseNumber()
		if err := decoder.Decode(&filter.Value); err != nil {
			return list, err
		}
		list.Metadata = append(list.Metadata, filter)
	}
	return list, nil
}

// listThreads implements threads.
func (d *database) listThreads(ctx context.Context, o *threadListOptions) (list []*records.Thread, err error) {
	options, err := o.inDatabase()
	if err != nil {
		return nil, err
	}
	if o.limit > 0 {
		options.Limit = o.limit + 1
	}
	page, more, err := pageOf(d.chats.ListChats(ctx, options), o.limit)
	if err != nil {
		return nil, err
	}
	for i := range page {
		r := d.newThreadRecord(&page[i].Chat)
		r.Branches, r.Messages = page[i].BranchCount, uint64(page[i].MessageCount) // messages of all branches
		if d.json {
			if r, err = d.threadRecord(ctx, &page[i].Chat); err != nil {
				return nil, err
			}
		}
		if more && i == len(page)-1 {
			r.Next = page[i].Page
		}
		list = append(list, r)
	}
	return list, nil
}

// createThread implements threads.
func (d *database) createThread(ctx context.Context, o *threadCreateOptions) (*records.Thread, error) {
	if err := o.overrides.none(); err != nil {
		return nil, err
	}
	c, err := d.chats.CreateChat(ctx, chat.Chat{
		ID: cmp.Or(o.id, uuid.NewString()), UserID: o.user, Title: o.title, Metadata: json.RawMessage(o.metadata),
	})
	if err != nil {
		return nil, err
	}
	d.current = c.ID
	d.refs = refs.NewChats(d.chats, c.ID)
	return d.threadRecord(ctx, &c)
}

func (d *database) threadNamed(ctx context.Context, name string) (*chat.Chat, error) {
	if name != "" {
		return d.refs.Chat(ctx, name)
	}
	if d.current == "" {
		return nil, &refs.NoThreadError{Where: "database"}
	}
	c, err := d.chats.Chat(ctx, d.current)
	if err == nil && c == nil {
		err = fmt.Errorf("thread %q: %w", d.current, lineage.ErrNotFound)
	}
	return c, err
}

// findThread implements threads.
func (d *database) findThread(ctx context.Context, name string) (*records.Thread, error) {
	c, err := d.threadNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	return d.threadRecord(ctx, c)
}

// setThread implements threads.
func (d *database) setThread(ctx context.Context, o *threadSetOptions) (*records.Thread, error) {
	c, err := d.threadNamed(ctx, o.thread)
	if err != nil {
		return nil, err
	}
	update := chat.ChatUpdate{Metadata: json.RawMessage(o.metadata)}
	if o.given("metadata") && o.metadata == nil {
		update.Metadata = json.RawMessage("null")
	}
	if o.given("title") {
		update.Title = &o.title
	}
	if o.given("user") {
		update.UserID = &o.user
	}
	changed, err := d.chats.UpdateChat(ctx, c.ID, update)
	if err != nil {
		return nil, err
	}
	return d.threadRecord(ctx, &changed)
}

// threadToDelete implements threads.
func (d *database) threadToDelete(ctx context.Context, name string) (*destruction, error) {
	c, err := d.refs.Chat(ctx, name)
	if err != nil {
		return nil, err
	}
	graph, err := d.chats.Graph(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	title, err := d.shownTitle(ctx, c)
	if err != nil {
		return nil, err
	}
	return d.deletion(deleteChatText(title, c.ID, int64(len(graph.Nodes)), int64(len(graph.Branches))),
		&records.Deleted{What: "thread", ID: c.ID, Name: c.ID}, func(ctx context.Context) error {
			_, err := d.chats.DeleteChat(ctx, c.ID, chat.DeleteOptions{})
			return err
		}), nil
}

// nameToDelete implements threads.
func (d *database) nameToDelete(ctx context.Context, o *deleteOptions) (*destruction, error) {
	found, err := d.refs.Find(ctx, o.name)
	if err != nil {
		return nil, err
	}
	if found.Checkpoint == "" {
		return nil, hint(usagef("%q is no checkpoint", o.name), "of a database only threads and checkpoints can be deleted")
	}
	c, err := d.chats.Checkpoint(ctx, d.current, found.Checkpoint)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errors.New("the checkpoint was deleted meanwhile")
	}
	return d.deletion(fmt.Sprintf("delete checkpoint %q of thread %q", c.Name, d.current),
		&records.Deleted{What: "checkpoint", ID: c.ID, Name: c.Name},
		func(ctx context.Context) error { return d.chats.DeleteCheckpoint(ctx, d.current, c.Name) }), nil
}
