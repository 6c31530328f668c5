package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
)

// branchRecord returns the record of a branch with so many messages.
func (d *database) branchRecord(b *chat.Branch, messages int) *records.Branch {
	return &records.Branch{
		Name: b.Name, Thread: b.ChatID, Context: b.ID, Head: refID(b.HeadMessageID), Active: b.IsActive, Length: uint64(messages),
		CreatedAt: millis(b.CreatedAt),
	}
}

// listBranches implements threads.
func (d *database) listBranches(ctx context.Context, thread string) (list []*records.Branch, err error) {
	c, err := d.threadNamed(ctx, thread)
	if err != nil {
		return nil, err
	}
	branches, err := d.chats.ListBranches(ctx, c.ID)
	for i := range branches {
		list = append(list, d.branchRecord(&branches[i].Branch, branches[i].MessageCount))
	}
	return list, err
}

// branchNamed returns the record of a branch of the current thread.
func (d *database) branchNamed(ctx context.Context, name string) (*records.Branch, error) {
	b, err := d.refs.Branch(ctx, name)
	if err != nil {
		return nil, err
	}
	messages, err := d.chats.CountMessages(ctx, b.ChatID, string(b.HeadMessageID))
	return d.branchRecord(b, messages), err
}

// createBranch implements threads.
func (d *database) createBranch(ctx context.Context, o *branchOptions) (*records.Branch, error) {
	if err := o.overrides.none(); err != nil {
		return nil, err
	}
	found, err := d.refs.Find(ctx, o.from)
	if err != nil {
		return nil, err
	}
	head := found.Message
	if o.empty {
		head = ""
	}
	return d.branchAt(ctx, o.name, head, o.switchTo)
}

func (d *database) branchAt(ctx context.Context, name, head string, active bool) (*records.Branch, error) {
	b, err := d.chats.CreateBranch(ctx, chat.Branch{
		ID: chat.NewID(), ChatID: d.current, Name: name, HeadMessageID: chat.Ref(head), IsActive: active,
	})
	if err != nil {
		return nil, err
	}
	return d.branchNamed(ctx, b.Name)
}

// switchTo implements threads.
func (d *database) switchTo(ctx context.Context, name string) (*records.Branch, error) {
	b, err := d.refs.Branch(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := d.chats.SetActiveBranch(ctx, d.current, b.ID); err != nil {
		return nil, err
	}
	return d.branchNamed(ctx, b.Name)
}

// rewind implements threads. The branch has an automatic name.
func (d *database) rewind(ctx context.Context, to string) (*records.Branch, error) {
	found, err := d.refs.Find(ctx, to)
	if err != nil {
		return nil, err
	}
	active, err := d.chats.ActiveBranch(ctx, d.current)
	if err != nil {
		return nil, err
	}
	name := chat.MainBranch
	if active != nil {
		name = active.Name
	}
	if name, err = chat.NextBranchName(ctx, d.chats, d.current, name, nil); err != nil {
		return nil, err
	}
	return d.branchAt(ctx, name, found.Message, true)
}

// rewindInPlace implements threads.
func (d *database) rewindInPlace(ctx context.Context, to string) error {
	if _, err := d.refs.Find(ctx, to); err != nil {
		return err
	}
	return usagef("--in-place: a database does not keep moves of branches, so this could not be undone")
}

// listCheckpoints implements threads.
func (d *database) listCheckpoints(ctx context.Context, thread string) (list []*records.Checkpoint, err error) {
	c, err := d.threadNamed(ctx, thread)
	if err != nil {
		return nil, err
	}
	checkpoints, err := d.chats.ListCheckpoints(ctx, c.ID)
	for i := range checkpoints {
		r, err := d.checkpointRecord(ctx, &checkpoints[i])
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, err
}

func (d *database) checkpointRecord(ctx context.Context, c *chat.Checkpoint) (*records.Checkpoint, error) {
	position, err := d.chats.CountMessages(ctx, c.ChatID, c.MessageID)
	return &records.Checkpoint{
		ID: c.ID, Name: c.Name, Thread: c.ChatID, Message: c.MessageID, Position: uint64(position), CreatedAt: millis(c.CreatedAt),
	}, err
}

// setCheckpoint implements threads.
func (d *database) setCheckpoint(ctx context.Context, o *checkpointOptions) (*records.Checkpoint, error) {
	found, err := d.refs.Find(ctx, o.at)
	if err != nil {
		return nil, err
	}
	if found.Message == "" {
		return nil, usagef("there is no message for the checkpoint")
	}
	c, err := d.chats.CreateCheckpoint(ctx, chat.Checkpoint{ChatID: d.current, Name: o.name, MessageID: found.Message})
	if err != nil {
		return nil, err
	}
	return d.checkpointRecord(ctx, &c)
}

// tree implements threads.
func (d *database) tree(ctx context.Context, o *treeOptions) error {
	c, err := d.threadNamed(ctx, o.thread)
	if err != nil {
		return err
	}
	g, err := d.chats.Graph(ctx, c.ID)
	if err != nil {
		return err
	}
	f := &forest{app: d.app, Graph: graph.New(), full: o.full}
	nodes := plantGraph(f.Graph, &g)
	if d.json {
		return d.emitGraph(ctx, c, f, nodes)
	}
	f.point = func(_ context.Context, at graph.Place) (*treePoint, error) {
		n := nodes[at.Line][at.At-1]
		return &treePoint{n.Role, n.Role, n.Content}, nil
	}
	title, err := d.shownTitle(ctx, c)
	if err != nil {
		return err
	}
	return f.draw(ctx, title, shortID(c.ID))
}

// plantGraph adds the messages of a graph to a graph of lines, and returns those of each line.
func plantGraph(to *graph.Graph, g *chat.Graph) map[*graph.Line][]*chat.GraphNode {
	nodes := make(map[*graph.Line][]*chat.GraphNode)
	places := map[string]graph.Place{"": {}}
	var lines []*graph.Line
	for i := range g.Nodes { // parents are before their children
		n := &g.Nodes[i]
		at := places[string(n.ParentID)]
		if at.Line == nil || at.At < at.Line.Last {
			l := &graph.Line{After: at}
			if at.Line != nil {
				l.Before = at.Line.Before + at.At
			}
			lines, at.Line = append(lines, l), l
		}
		at.Line.Last++
		places[n.ID] = at.Line.At(at.Line.Last)
		nodes[at.Line] = append(nodes[at.Line], n)
	}
	slices.SortStableFunc(lines, func(a, b *graph.Line) int { return cmp.Compare(a.After.At, b.After.At) })
	for _, l := range lines {
		to.Add(l)
	}
	for _, b := range g.Branches {
		at := places[string(b.HeadMessageID)]
		to.Label(at, graph.Label{Kind: graph.KindBranch, Name: b.Name, Active: b.IsActive})
		if b.IsActive {
			to.SetCurrent(at)
		}
	}
	for _, c := range g.Checkpoints {
		at := places[c.MessageID]
		to.Label(at, graph.Label{Kind: graph.KindCheckpoint, Name: c.Name})
	}
	return nodes
}

// emitGraph prints the records of a thread, its branches, checkpoints and messages.
func (d *database) emitGraph(ctx context.Context, c *chat.Chat, f *forest, nodes map[*graph.Line][]*chat.GraphNode) error {
	thread, err := d.threadRecord(ctx, c)
	if err != nil {
		return err
	}
	branches, err := d.listBranches(ctx, c.ID)
	if err != nil {
		return err
	}
	checkpoints, err := d.listCheckpoints(ctx, c.ID)
	if err != nil {
		return err
	}
	list := d.list()
	list.add(thread)
	for _, b := range branches {
		list.add(b)
	}
	for _, c := range checkpoints {
		list.add(c)
	}
	for l := range f.Lines() {
		for i, n := range nodes[l] {
			list.add(&records.Node{
				ID: n.ID, Parent: refID(n.ParentID), Position: l.Before + uint64(i) + 1, Role: n.Role, Preview: n.Content, CreatedAt: millis(n.CreatedAt),
			})
		}
	}
	return list.end("")
}
