package threads

import (
	"cmp"
	"context"
	"slices"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
)

// branchRecord returns the record of a branch with a number of messages.
func (d *database) branchRecord(b *chat.Branch, messages int) *records.Branch {
	return &records.Branch{
		Name: b.Name, Thread: b.ChatID, Context: b.ID, Head: refID(b.HeadMessageID), Active: b.IsActive, Length: uint64(messages),
		CreatedAt: millis(b.CreatedAt),
	}
}

// ListBranches implements Keeper.
func (d *database) ListBranches(ctx context.Context, thread string) (list []*records.Branch, err error) {
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

// CreateBranch implements Keeper.
func (d *database) CreateBranch(ctx context.Context, o *BranchOptions) (*records.Branch, error) {
	if err := o.Overrides.None(); err != nil {
		return nil, err
	}
	found, err := d.refs.Find(ctx, o.From)
	if err != nil {
		return nil, err
	}
	head := found.Message
	if o.Empty {
		head = ""
	}
	return d.branchAt(ctx, o.Name, head, o.SwitchTo)
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

// SwitchTo implements Keeper.
func (d *database) SwitchTo(ctx context.Context, name string) (*records.Branch, error) {
	b, err := d.refs.Branch(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := d.chats.SetActiveBranch(ctx, d.current, b.ID); err != nil {
		return nil, err
	}
	return d.branchNamed(ctx, b.Name)
}

// Rewind implements Keeper. The branch has an automatic name.
func (d *database) Rewind(ctx context.Context, to string) (*records.Branch, error) {
	found, err := d.refs.Find(ctx, to)
	if err != nil {
		return nil, err
	}
	current, err := d.chats.ActiveBranch(ctx, d.current)
	if err != nil {
		return nil, err
	}
	name := chat.MainBranch
	if current != nil {
		name = current.Name
	}
	if name, err = chat.NextBranchName(ctx, d.chats, d.current, name, nil); err != nil {
		return nil, err
	}
	const active = true
	return d.branchAt(ctx, name, found.Message, active)
}

// RewindInPlace implements Keeper.
func (d *database) RewindInPlace(ctx context.Context, to string) error {
	if _, err := d.refs.Find(ctx, to); err != nil {
		return err
	}
	return app.Usagef("--in-place: a database does not keep moves of branches, so this could not be undone")
}

// ListCheckpoints implements Keeper.
func (d *database) ListCheckpoints(ctx context.Context, thread string) (list []*records.Checkpoint, err error) {
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

// SetCheckpoint implements Keeper.
func (d *database) SetCheckpoint(ctx context.Context, o *CheckpointOptions) (*records.Checkpoint, error) {
	found, err := d.refs.Find(ctx, o.At)
	if err != nil {
		return nil, err
	}
	if found.Message == "" {
		return nil, app.Usagef("there is no message for the checkpoint")
	}
	c, err := d.chats.CreateCheckpoint(ctx, chat.Checkpoint{ChatID: d.current, Name: o.Name, MessageID: found.Message})
	if err != nil {
		return nil, err
	}
	return d.checkpointRecord(ctx, &c)
}

// Tree implements Keeper.
func (d *database) Tree(ctx context.Context, o *TreeOptions) error {
	c, err := d.threadNamed(ctx, o.Thread)
	if err != nil {
		return err
	}
	g, err := d.chats.Graph(ctx, c.ID)
	if err != nil {
		return err
	}
	f := &show.Forest{App: d.App, Graph: graph.New(), Full: o.Full}
	nodes := plantGraph(f.Graph, &g)
	if d.JSON {
		return d.emitGraph(ctx, c, f, nodes)
	}
	f.Point = func(_ context.Context, at graph.Place) (*show.TreePoint, error) {
		n := nodes[at.Line][at.At-1]
		return &show.TreePoint{Speaker: n.Role, Role: n.Role, Text: n.Content}, nil
	}
	title, err := d.shownTitle(ctx, c)
	if err != nil {
		return err
	}
	return f.Draw(ctx, title, show.ShortID(c.ID))
}

// plantGraph converts a chat's graph to a graph of lines. It returns the messages of each line.
func plantGraph(to *graph.Graph, g *chat.Graph) map[*graph.Line][]*chat.GraphNode {
	nodes := make(map[*graph.Line][]*chat.GraphNode)
	places := map[string]graph.Place{"": {}}
	var lines []*graph.Line
	for i := range g.Nodes { // parents come before their children
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
func (d *database) emitGraph(ctx context.Context, c *chat.Chat, f *show.Forest, nodes map[*graph.Line][]*chat.GraphNode) error {
	thread, err := d.threadRecord(ctx, c)
	if err != nil {
		return err
	}
	branches, err := d.ListBranches(ctx, c.ID)
	if err != nil {
		return err
	}
	checkpoints, err := d.ListCheckpoints(ctx, c.ID)
	if err != nil {
		return err
	}
	list := d.List()
	list.Add(thread)
	for _, b := range branches {
		list.Add(b)
	}
	for _, c := range checkpoints {
		list.Add(c)
	}
	for l := range f.Lines() {
		for i, n := range nodes[l] {
			list.Add(&records.Node{
				ID: n.ID, Parent: refID(n.ParentID), Position: l.Before + uint64(i) + 1, Role: n.Role, Preview: n.Content, CreatedAt: millis(n.CreatedAt),
			})
		}
	}
	return list.End("")
}
