package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

func (d *database) threadRecord(ctx context.Context, c *chat.Chat) (*threadRecord, error) {
	r := &threadRecord{
		ID: c.ID, SourceID: c.ID, User: c.UserID, Title: c.Title, Current: c.ID == d.current, Metadata: rawJSON(c.Metadata),
		CreatedAt: millis(c.CreatedAt), UpdatedAt: millis(c.UpdatedAt),
	}
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

// inDatabase returns the options of a list of a database's threads.
func (o *threadListOptions) inDatabase() (chat.ListOptions, error) {
	list := chat.ListOptions{UserID: o.user, IDPrefix: o.source, TitlePrefix: o.title, Oldest: o.oldest, After: o.after}
	for _, bound := range []struct {
		flag, text string
		at         *int64
	}{{"since", o.since, &list.From}, {"until", o.until, &list.To}} {
		at, err := timeFlag(bound.flag, bound.text)
		if err != nil {
			return list, err
		}
		if !at.IsZero() {
			*bound.at = at.UnixMilli()
		}
	}
	for _, pair := range o.metadata {
		key, value, err := metadataPair(pair)
		if err != nil {
			return list, err
		}
		filter := chat.MetadataFilter{Key: key}
		decoder := json.NewDecoder(bytes.NewReader(value))
		decoder.UseNumber()
		if err := decoder.Decode(&filter.Value); err != nil {
			return list, err
		}
		list.Metadata = append(list.Metadata, filter)
	}
	return list, nil
}

// threadPage returns the threads to be listed, and whether there are more.
func (d *database) threadPage(ctx context.Context, o *threadListOptions) (chats []chat.ChatInfo, more bool, err error) {
	options, err := o.inDatabase()
	if err != nil {
		return nil, false, err
	}
	if o.limit > 0 {
		options.Limit = o.limit + 1
	}
	for c, err := range d.chats.ListChats(ctx, options) {
		if err != nil {
			return nil, false, err
		}
		if o.limit > 0 && len(chats) == o.limit {
			return chats, true, nil
		}
		chats = append(chats, c)
	}
	return chats, false, nil
}

func (d *database) listThreads(ctx context.Context, o *threadListOptions) error {
	chats, more, err := d.threadPage(ctx, o)
	if err != nil {
		return err
	}
	table := screen.NewTable(d.out, "", "ID", "CHANGED", "MESSAGES", "BRANCHES", "TITLE")
	for i, c := range chats {
		if d.json {
			r, err := d.threadRecord(ctx, &c.Chat)
			if err != nil {
				return err
			}
			if more && i == len(chats)-1 {
				r.Next = c.Page
			}
			if err := d.emit(r); err != nil {
				return err
			}
			continue
		}
		mark := " "
		if c.ID == d.current {
			mark = "*"
		}
		table.Cells(screen.Cell{Text: mark, Style: screen.Green}, screen.Cell{Text: c.ID, Style: screen.Yellow},
			screen.Cell{Text: screen.Time(millis(c.UpdatedAt)), Style: screen.Dim},
			screen.Cell{Text: screen.Count(int64(c.MessageCount)), Right: true},
			screen.Cell{Text: screen.Count(int64(c.BranchCount)), Right: true}, screen.Cell{Text: c.Title})
	}
	switch {
	case d.json:
		return nil
	case len(chats) == 0:
		o.noteNone(d.app)
		return nil
	}
	if err := table.Print(); err != nil || !more {
		return err
	}
	d.note("more with --after %s", chats[len(chats)-1].Page)
	return nil
}

func (d *database) createThread(ctx context.Context, o *threadCreateOptions) error {
	if o.overrides != (overrideFlags{}) {
		return usagef("--model, --system and --overrides are not kept in a database")
	}
	metadata, err := validJSON("metadata", o.metadata)
	if err != nil {
		return err
	}
	if o.id == "" {
		o.id = uuid.NewString()
	}
	c, err := d.chats.CreateChat(ctx, chat.Chat{ID: o.id, UserID: o.user, Title: o.title, Metadata: json.RawMessage(metadata)})
	if err != nil {
		return err
	}
	d.current = c.ID
	if !d.json {
		d.printf("%s\n", c.ID)
		return nil
	}
	r, err := d.threadRecord(ctx, &c)
	if err != nil {
		return err
	}
	return d.emit(r)
}

func (d *database) threadNamed(ctx context.Context, name string) (*chat.Chat, error) {
	if name != "" {
		return d.refs.Chat(ctx, name)
	}
	id, err := d.needThread()
	if err != nil {
		return nil, err
	}
	c, err := d.chats.Chat(ctx, id)
	if err == nil && c == nil {
		err = fmt.Errorf("thread %q: %w", id, lineage.ErrNotFound)
	}
	return c, err
}

func (d *database) showThread(ctx context.Context, name string) error {
	c, err := d.threadNamed(ctx, name)
	if err != nil {
		return err
	}
	r, err := d.threadRecord(ctx, c)
	if err != nil {
		return err
	}
	return d.printThread(r)
}

func (d *database) setThread(ctx context.Context, o *threadSetOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	metadata, err := validJSON("metadata", o.metadata)
	if err != nil {
		return err
	}
	c, err := d.threadNamed(ctx, o.thread)
	if err != nil {
		return err
	}
	update := chat.ChatUpdate{Metadata: metadata}
	if o.metadataGiven && metadata == nil {
		update.Metadata = json.RawMessage("null")
	}
	if o.titleGiven {
		update.Title = &o.title
	}
	if o.userGiven {
		update.UserID = &o.user
	}
	if _, err := d.chats.UpdateChat(ctx, c.ID, update); err != nil {
		return err
	}
	return d.showThread(ctx, c.ID)
}

func (d *database) chatToDelete(ctx context.Context, name string) (*destruction, error) {
	c, err := d.refs.Chat(ctx, name)
	if err != nil {
		return nil, err
	}
	graph, err := d.chats.Graph(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	return &destruction{
		what: deleteChatText(titleOf(lineage.ThreadInfo{Title: c.Title}), c.ID, int64(len(graph.Nodes)), int64(len(graph.Branches))),
		do: func(ctx context.Context) error {
			if _, err := d.chats.DeleteChat(ctx, c.ID, chat.DeleteOptions{}); err != nil {
				return err
			}
			return d.deleted("thread", c.ID, c.ID)
		},
	}, nil
}

func (d *database) nameToDelete(ctx context.Context, o *deleteOptions) (*destruction, error) {
	found, err := d.position(ctx, o.name)
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
	return &destruction{
		what: fmt.Sprintf("delete checkpoint %q of thread %q", c.Name, d.current),
		do: func(ctx context.Context) error {
			if err := d.chats.DeleteCheckpoint(ctx, d.current, c.Name); err != nil {
				return err
			}
			return d.deleted("checkpoint", c.ID, c.Name)
		},
	}, nil
}
