package conversation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// From is the history that a new branch starts with.
type From struct {
	// Branch is the id of the parent. It defaults to the current branch.
	Branch string
	// MessageIndex is the number of the parent's messages that it starts with; nil means all.
	MessageIndex *int
}

// CreateBranch creates a branch without checking it out. If from is nil the branch is empty and has no
// parent. The error is ErrExists if the id is taken, and ErrInvalid if the index is out of range.
func (c *Conversation) CreateBranch(ctx context.Context, id, name string, from *From) (Branch, error) {
	if err := checkText("branch", "id", id); err != nil {
		return Branch{}, err
	}
	return c.create(ctx, id, name, from)
}

// Fork creates a branch with all messages of the current one and checks it out. Its id is derived from the
// name.
func (c *Conversation) Fork(ctx context.Context, name string) (Branch, error) {
	return c.create(ctx, "", name, &From{})
}

// ForkFromMessage is Fork with only the first messages, up to the index.
func (c *Conversation) ForkFromMessage(ctx context.Context, name string, index int) (Branch, error) {
	return c.create(ctx, "", name, &From{MessageIndex: &index})
}

// create creates a branch. Without an id it forks: the id is derived from the name, and the branch becomes
// current.
func (c *Conversation) create(ctx context.Context, id, name string, from *From) (Branch, error) {
	if err := checkText("branch", "name", name); err != nil {
		return Branch{}, err
	}
	defer c.change()()
	created := Event{Kind: BranchCreated, ID: id, Name: name}
	err := c.inTransaction(ctx, func(in *Conversation) (err error) {
		if id == "" {
			if created.ID, err = in.unusedID(ctx, name); err != nil {
				return err
			}
		}
		// The context of a branch without a parent is a child of main's context, which cannot be deleted.
		start := From{Branch: Main, MessageIndex: new(int)}
		if from != nil {
			start = *from
		}
		parent, before, err := in.findContext(ctx, start.Branch)
		if err != nil {
			return err
		}
		if from != nil {
			created.ParentID = parent.ID
		}
		index := parent.MessageCount
		if start.MessageIndex != nil {
			index = *start.MessageIndex
		}
		if index < 0 || index > parent.MessageCount {
			return branchError(parent.ID, lineage.ErrInvalid, fmt.Sprintf("message index %d is not within 0 to %d", index, parent.MessageCount))
		}
		o := lineage.BranchOptions{From: before, Empty: index == 0, Switch: id == "", Metadata: newMetadata(name, created.ParentID, index)}
		if o.At, err = in.store.At(ctx, parent.state.Tip, uint64(index)); err != nil {
			return err
		}
		_, err = in.thread.CreateBranch(ctx, created.ID, o)
		return err
	})
	if err != nil {
		return Branch{}, err
	}
	c.enqueue(created)
	if id == "" {
		c.enqueue(
			Event{Kind: BranchForked, From: created.ParentID, To: created.ID, Name: name, MessageIndex: from.MessageIndex},
			Event{Kind: BranchCheckout, From: created.ParentID, To: created.ID},
		)
	}
	return c.Branch(ctx, created.ID)
}

// maxSlug limits the part of an id that is derived from a name, in characters.
const maxSlug = 40

// unusedID derives the id of a new branch from its name: its letters and digits, and a number if that is
// taken.
func (c *Conversation) unusedID(ctx context.Context, name string) (string, error) {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slug := []rune(strings.Join(words, "-"))
	base := cmp.Or(strings.Trim(string(slug[:min(len(slug), maxSlug)]), "-"), "branch")
	numbered := func(n uint64) string {
		if n == 1 {
			return base
		}
		return fmt.Sprintf("%s-%d", base, n)
	}
	n, err := structure.FreeNumber(1, func(numbers []uint64) (int, error) {
		for i, n := range numbers {
			if _, err := c.thread.BranchContext(ctx, numbered(n)); errors.Is(err, lineage.ErrNotFound) {
				return i, nil
			} else if err != nil {
				return 0, err
			}
		}
		return len(numbers), nil
	})
	return numbered(n), err
}

// Checkout makes a branch the current one.
func (c *Conversation) Checkout(ctx context.Context, id string) (Branch, error) {
	defer c.change()()
	if err := c.checkout(ctx, id); err != nil {
		return Branch{}, err
	}
	return c.Branch(ctx, id)
}

func (c *Conversation) checkout(ctx context.Context, id string) error {
	from, err := c.CurrentBranchID(ctx)
	if err == nil {
		err = c.thread.Switch(ctx, id)
	}
	if err == nil {
		c.enqueue(Event{Kind: BranchCheckout, From: from, To: id})
	}
	return err
}

// The strategies.
const (
	Append MergeStrategy = iota
	Replace
)

// Merge merges a branch into the current one. Append adds its messages after the common beginning, without
// those that the current branch has already. Replace replaces the current branch's messages. Messages are
// shared, not copied. Merge returns the spans that were appended, none if nothing was missing.
func (c *Conversation) Merge(ctx context.Context, source string, strategy MergeStrategy) (added []lineage.SpanRef, err error) {
	defer c.change()()
	merged := Event{Kind: BranchMerged, Source: source, Strategy: strategy}
	err = c.inTransaction(ctx, func(in *Conversation) error {
		target, into, err := in.findContext(ctx, "")
		if err != nil {
			return err
		}
		from, theirs, err := in.findContext(ctx, source)
		if err != nil {
			return err
		}
		if from.ID == target.ID {
			return branchError(from.ID, lineage.ErrInvalid, "a branch cannot be merged into itself")
		}
		merged.Target = target.ID
		switch strategy {
		case Append:
			added, err = into.Merge(ctx, theirs)
			merged.Changed = len(added) > 0
		case Replace:
			err = into.MoveTo(ctx, from.state.Tip, "replace")
			merged.Changed = from.state.Tip != target.state.Tip
		default:
			err = fmt.Errorf("merge strategy %d: %w", strategy, lineage.ErrInvalid)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.enqueue(merged)
	return added, nil
}

// DeleteBranch deletes a branch. Branches created from it are unaffected. If it was current, the main branch
// becomes current. The error is ErrProtected for the main branch.
func (c *Conversation) DeleteBranch(ctx context.Context, id string) error {
	defer c.change()()
	was, err := c.CurrentBranchID(ctx)
	if err == nil {
		err = c.thread.DeleteBranch(ctx, id)
	}
	if err != nil {
		return err
	}
	if was == id {
		c.enqueue(Event{Kind: BranchCheckout, From: id, To: Main})
	}
	c.enqueue(Event{Kind: BranchDeleted, ID: id})
	return nil
}

// RenameBranch gives a branch another name. Its id stays.
func (c *Conversation) RenameBranch(ctx context.Context, id, name string) error {
	if err := errors.Join(checkText("branch", "id", id), checkText("branch", "name", name)); err != nil {
		return err
	}
	defer c.change()()
	b, opened, err := c.findContext(ctx, id)
	if err != nil {
		return err
	}
	at := write.Kept(write.Of(c.store).Now())
	err = opened.Update(ctx, func(info *lineage.ContextInfo) (err error) {
		info.Metadata, err = renamed(info.Metadata, &b, name, at)
		return err
	})
	if err != nil {
		return err
	}
	c.enqueue(Event{Kind: BranchRenamed, ID: id, Name: name})
	return nil
}

// ensureMain creates the main branch if the thread has none. It checks the branch out if current is set or no
// branch is current.
func (c *Conversation) ensureMain(ctx context.Context, current bool) error {
	defer c.change()()
	_, err := c.thread.BranchContext(ctx, Main)
	if errors.Is(err, lineage.ErrNotFound) {
		_, err = c.thread.CreateBranch(ctx, Main, lineage.BranchOptions{Empty: true, Metadata: newMetadata(MainName, "", 0)})
		if err == nil {
			c.enqueue(Event{Kind: BranchCreated, ID: Main, Name: MainName})
		}
	}
	if err != nil && !errors.Is(err, lineage.ErrExists) { // else another process has just created it
		return err
	}
	if _, none := c.thread.Active(ctx); none == nil && !current {
		return nil
	}
	return c.checkout(ctx, Main)
}

// change locks the branches against changes by other Conversations of the store until end is called. end
// delivers the events, which are therefore in the order of the changes.
func (c *Conversation) change() (end func()) {
	changing := c.changing()
	changing.Lock()
	return func() {
		changing.Unlock()
		c.deliver()
	}
}

// renamed returns metadata with a new name. Keys of others stay.
func renamed(data []byte, b *branch, name string, at time.Time) ([]byte, error) {
	if data = bytes.TrimSpace(data); len(data) > 0 && !(rawjson.IsObject(data) && rawjson.Valid(data)) {
		return nil, branchError(b.ID, lineage.ErrInvalid, "its metadata is not a JSON object")
	}
	was := readMetadata(data)
	now := metadata{
		Name: name, ParentID: b.ParentID, ParentMessageIndex: b.ParentMessageIndex, UpdatedAt: &at, CreatedAt: was.CreatedAt,
	}
	if b.imported {
		now.RenamedFrom = cmp.Or(was.RenamedFrom, was.Name)
	}
	ours, err := json.Marshal(now)
	return rawjson.MergePatch(rawjson.RemoveFunc(data, isOurs), ours), err
}
