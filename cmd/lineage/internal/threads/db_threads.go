package threads

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
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

// ListThreads implements Keeper.
func (d *database) ListThreads(ctx context.Context, o *ThreadListOptions, each func(*records.Thread) error) error {
	options, err := o.inDatabase()
	if err != nil {
		return err
	}
	if o.Limit > 0 {
		options.Limit = o.Limit + 1
	}
	return list(d.chats.ListChats(ctx, options), o.Limit, func(c chat.ChatInfo) string { return c.Page }, func(page []chat.ChatInfo) ([]*records.Thread, error) {
		list := make([]*records.Thread, len(page))
		for i := range page {
			r := d.newThreadRecord(&page[i].Chat)
			r.Branches, r.Messages = page[i].BranchCount, uint64(page[i].MessageCount) // messages of all branches
			if d.JSON {
				if r, err = d.threadRecord(ctx, &page[i].Chat); err != nil {
					return nil, err
				}
			}
			if r.ShownTitle, err = d.shownTitle(ctx, &page[i].Chat); err != nil {
				return nil, err
			}
			list[i] = r
		}
		return list, nil
	}, each)
}

// CreateThread implements Keeper.
func (d *database) CreateThread(ctx context.Context, o *ThreadCreateOptions) (*records.Thread, error) {
	if err := o.Overrides.None(); err != nil {
		return nil, err
	}
	c, err := d.chats.CreateChat(ctx, chat.Chat{
		ID: cmp.Or(o.ID, uuid.NewString()), UserID: o.User, Title: o.Title, Metadata: json.RawMessage(o.Metadata),
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

// FindThread implements Keeper.
func (d *database) FindThread(ctx context.Context, name string) (*records.Thread, error) {
	c, err := d.threadNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	return d.threadRecord(ctx, c)
}

// SetThread implements Keeper.
func (d *database) SetThread(ctx context.Context, o *ThreadSetOptions) (*records.Thread, error) {
	c, err := d.threadNamed(ctx, o.Thread)
	if err != nil {
		return nil, err
	}
	update := chat.ChatUpdate{Metadata: json.RawMessage(o.Metadata)}
	if o.Given("metadata") && o.Metadata == nil {
		update.Metadata = json.RawMessage("null")
	}
	if o.Given("title") {
		update.Title = &o.Title
	}
	if o.Given("user") {
		update.UserID = &o.User
	}
	changed, err := d.chats.UpdateChat(ctx, c.ID, update)
	if err != nil {
		return nil, err
	}
	return d.threadRecord(ctx, &changed)
}

// ThreadToDelete implements Keeper.
func (d *database) ThreadToDelete(ctx context.Context, name string) (*app.Destruction, error) {
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
	return d.Deletion(deleteChatText(title, c.ID, int64(len(graph.Nodes)), int64(len(graph.Branches))),
		&records.Deleted{What: "thread", ID: c.ID, Name: c.ID}, func(ctx context.Context) error {
			_, err := d.chats.DeleteChat(ctx, c.ID, chat.DeleteOptions{})
			return err
		}), nil
}

// NameToDelete implements Keeper.
func (d *database) NameToDelete(ctx context.Context, o *DeleteOptions) (*app.Destruction, error) {
	found, err := d.refs.Find(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	if found.Checkpoint == "" {
		return nil, app.Hint(app.Usagef("%q is no checkpoint", o.Name), "of a database only threads and checkpoints can be deleted")
	}
	c, err := d.chats.Checkpoint(ctx, d.current, found.Checkpoint)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errors.New("the checkpoint was deleted meanwhile")
	}
	return d.Deletion(fmt.Sprintf("delete checkpoint %q of thread %q", c.Name, d.current),
		&records.Deleted{What: "checkpoint", ID: c.ID, Name: c.Name},
		func(ctx context.Context) error { return d.chats.DeleteCheckpoint(ctx, d.current, c.Name) }), nil
}
