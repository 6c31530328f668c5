package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// From says what a new branch starts with.
type From struct {
	// Branch is the id of its parent.
	Branch string
	// MessageIndex is how many of the parent's messages it starts with; nil is all.
	MessageIndex *int
}

// CreateBranch makes a branch, and leaves the current one current. nil from makes it
// empty and without a parent. An id that is taken is ErrExists, and an index that the
// parent does not have ErrInvalid.
func (c *Conversation) CreateBranch(ctx context.Context, id, name string, from *From) (Branch, error) {
	if err := errors.Join(checkText("branch", "id", id), checkText("branch", "name", name)); err != nil {
		return Branch{}, err
	}
	defer c.change()()
	created := Event{Kind: BranchCreated, ID: id, Name: name}
	var o lineage.BranchOptions
	if from == nil {
		// Its context has one before it all the same: main's, which cannot be deleted.
		main, err := c.thread.On(ctx, Main)
		if err != nil {
			return Branch{}, err
		}
		o = lineage.BranchOptions{From: main, Empty: true, Metadata: newMetadata(name, "", 0)}
	} else {
		parent, err := c.find(ctx, from.Branch)
		if err != nil {
			return Branch{}, err
		}
		if o, err = c.branchAt(ctx, parent, name, from.MessageIndex); err != nil {
			return Branch{}, err
		}
		created.ParentID = parent.ID
	}
	if _, err := c.thread.CreateBranch(ctx, id, o); err != nil {
		return Branch{}, err
	}
	c.enqueue(created)
	return c.Branch(ctx, id)
}

// branchAt returns what makes a branch of a parent's first messages; nil is all.
func (c *Conversation) branchAt(ctx context.Context, parent *branch, name string, index *int) (lineage.BranchOptions, error) {
	if index == nil {
		index = &parent.MessageCount
	}
	at, err := c.at(ctx, parent, *index)
	if err != nil {
		return lineage.BranchOptions{}, err
	}
	handle, err := c.store.Context(ctx, parent.context)
	return lineage.BranchOptions{From: handle, At: at, Empty: at.IsZero(), Metadata: newMetadata(name, parent.ID, *index)}, err
}

// Fork makes a branch of the current one with all its messages, under an id made of
// the name, and checks it out.
func (c *Conversation) Fork(ctx context.Context, name string) (Branch, error) {
	return c.fork(ctx, name, nil)
}

// ForkFromMessage is Fork with only the first messages, up to the index.
func (c *Conversation) ForkFromMessage(ctx context.Context, name string, index int) (Branch, error) {
	return c.fork(ctx, name, &index)
}

func (c *Conversation) fork(ctx context.Context, name string, index *int) (Branch, error) {
	if err := checkText("branch", "name", name); err != nil {
		return Branch{}, err
	}
	defer c.change()()
	var parent *branch
	var id string
	err := c.inTransaction(ctx, func(in *Conversation) (err error) {
		parent, err = read(ctx, in, func(r *reading) (*branch, error) {
			if id, err = r.unusedID(ctx, name); err != nil {
				return nil, err
			}
			return r.branch(ctx, r.current)
		})
		if err != nil {
			return err
		}
		o, err := in.branchAt(ctx, parent, name, index)
		if err == nil {
			o.Switch = true
			_, err = in.thread.CreateBranch(ctx, id, o)
		}
		return err
	})
	if err != nil {
		return Branch{}, err
	}
	c.enqueue(
		Event{Kind: BranchCreated, ID: id, Name: name, ParentID: parent.ID},
		Event{Kind: BranchForked, From: parent.ID, To: id, Name: name, MessageIndex: index},
	)
	return c.Branch(ctx, id)
}

// maxSlug is the length in characters of what a name gives to an id.
const maxSlug = 40

// unusedID returns the id of a new branch with a name: its letters and digits, and a
// number if other branches were named alike.
func (r *reading) unusedID(ctx context.Context, name string) (string, error) {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slug := []rune(strings.Join(words, "-"))
	base := strings.Trim(string(slug[:min(len(slug), maxSlug)]), "-")
	if base == "" {
		base = "branch"
	}
	taken := func(id string) (bool, error) {
		_, err := r.Branch(ctx, r.thread, id)
		if errors.Is(err, lineage.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}
	if is, err := taken(base); err != nil || !is {
		return base, err
	}
	numbered := func(n uint64) string { return fmt.Sprintf("%s-%d", base, n) }
	n, err := structure.FreeNumber(2, func(n uint64) (bool, error) { return taken(numbered(n)) })
	return numbered(n), err
}

// Checkout makes a branch the current one.
func (c *Conversation) Checkout(ctx context.Context, id string) (Branch, error) {
	defer c.change()()
	var from string
	b, err := read(ctx, c, func(r *reading) (*branch, error) {
		from = r.current.Name
		return r.find(ctx, id)
	})
	if err != nil {
		return Branch{}, err
	}
	if err := c.thread.Switch(ctx, id); err != nil {
		return Branch{}, err
	}
	c.enqueue(Event{Kind: BranchCheckout, From: from, To: id})
	b.Current = true
	return b.Branch, nil
}

// MergeStrategy says what a merge does: see Conversation.Merge.
type MergeStrategy int

// The strategies.
const (
	Append MergeStrategy = iota
	Replace
)

// Merge brings the messages of a branch into the current one. Append adds those after
// the point where the two parted, and none twice; Replace takes all of them instead of
// its own. The messages are shared, not copied. It returns the spans that were appended: none if
// the current branch has all of the messages.
func (c *Conversation) Merge(ctx context.Context, source string, strategy MergeStrategy) (added []lineage.SpanRef, err error) {
	defer c.change()()
	merged := Event{Kind: BranchMerged, Source: source, Strategy: strategy}
	err = c.inTransaction(ctx, func(in *Conversation) error {
		target, err := read(ctx, in, func(r *reading) (*structure.Branch, error) { return r.current, nil })
		if err != nil {
			return err
		}
		if merged.Target = target.Name; target.Name == source {
			return branchError(source, lineage.ErrInvalid, "a branch cannot be merged into itself")
		}
		into, err := in.store.Context(ctx, target.Context)
		if err != nil {
			return err
		}
		from, err := in.thread.On(ctx, source)
		if err != nil {
			return err
		}
		switch strategy {
		case Append:
			added, err = into.Merge(ctx, from)
			merged.Changed = len(added) > 0
		case Replace:
			merged.Changed, err = replaceBy(ctx, into, from)
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

// replaceBy moves a context to where another one is, and reports whether it was elsewhere.
func replaceBy(ctx context.Context, target, source *lineage.Context) (bool, error) {
	tip, err := source.Tip(ctx)
	if err != nil {
		return false, err
	}
	was, err := target.Tip(ctx)
	if err != nil {
		return false, err
	}
	return was != tip, target.MoveTo(ctx, tip, "replace")
}

// DeleteBranch deletes a branch. Branches that were made from it stay as they are. If
// it was current, the main branch becomes so. The main branch is ErrProtected.
func (c *Conversation) DeleteBranch(ctx context.Context, id string) error {
	defer c.change()()
	if err := c.thread.DeleteBranch(ctx, id); err != nil {
		return err
	}
	c.enqueue(Event{Kind: BranchDeleted, ID: id})
	return nil
}

// RenameBranch gives a branch another name. Its id stays.
func (c *Conversation) RenameBranch(ctx context.Context, id, name string) error {
	if err := checkText("branch", "name", name); err != nil {
		return err
	}
	defer c.change()()
	b, err := c.find(ctx, id)
	if err != nil {
		return err
	}
	handle, err := c.store.Context(ctx, b.context)
	if err != nil {
		return err
	}
	at := write.Of(c.store).Now().UTC().Truncate(time.Millisecond)
	err = handle.Update(ctx, func(is *lineage.ContextInfo) (err error) {
		is.Metadata, err = renamed(is.Metadata, b, name, at)
		return err
	})
	if err != nil {
		return err
	}
	c.enqueue(Event{Kind: BranchRenamed, ID: id, Name: name})
	return nil
}
