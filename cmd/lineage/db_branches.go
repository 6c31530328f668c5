package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/cmd/lineage/internal/graph"
	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

func newChatRefs(d *database) *refs.Chats { return refs.NewChats(d.chats, d.current) }

func newChatBranchRecord(b *chat.BranchInfo) *branchRecord {
	r := &branchRecord{
		Name: b.Name, Thread: b.ChatID, Context: b.ID, Active: b.IsActive, Length: uint64(b.MessageCount),
		CreatedAt: millis(b.CreatedAt),
	}
	if b.HeadMessageID != "" {
		head := string(b.HeadMessageID)
		r.Head = &head
	}
	return r
}

func (d *database) listBranches(ctx context.Context) error {
	id, err := d.needThread()
	if err != nil {
		return err
	}
	branches, err := d.chats.ListBranches(ctx, id)
	if err != nil {
		return err
	}
	table := screen.NewTable(d.out, "", "BRANCH", "MADE", "MESSAGES", "HEAD")
	for i := range branches {
		b := &branches[i]
		if d.json {
			if err := d.emit(newChatBranchRecord(b)); err != nil {
				return err
			}
			continue
		}
		mark, style := " ", screen.Plain
		if b.IsActive {
			mark, style = "*", screen.Green
		}
		table.Cells(screen.Cell{Text: mark, Style: style}, screen.Cell{Text: b.Name, Style: style},
			screen.Cell{Text: screen.Time(millis(b.CreatedAt)), Style: screen.Dim},
			screen.Cell{Text: screen.Count(int64(b.MessageCount)), Right: true}, screen.Cell{Text: string(b.HeadMessageID)})
	}
	return table.Print()
}

// printBranch tells about a branch by its name. moved says what the command did if the
// branch is the active one.
func (d *database) printBranch(ctx context.Context, name, moved string) error {
	branches, err := d.chats.ListBranches(ctx, d.current)
	if err != nil {
		return err
	}
	for i := range branches {
		b := &branches[i]
		if b.Name != name {
			continue
		}
		if d.json {
			return d.emit(newChatBranchRecord(b))
		}
		now := "branch"
		if b.IsActive {
			now = moved
		}
		d.printf("%s %s, %s\n", now, screen.Line(b.Name), screen.Plural(int64(b.MessageCount), "message"))
		return nil
	}
	return fmt.Errorf("branch %q: %w", name, lineage.ErrNotFound)
}

func (d *database) createBranch(ctx context.Context, o *branchOptions) error {
	if o.overrides != (overrideFlags{}) {
		return usagef("--model, --system and --overrides are not kept in a database")
	}
	found, err := d.position(ctx, o.from)
	if err != nil {
		return err
	}
	head := found.Message
	if o.empty {
		head = ""
	}
	return d.branchAt(ctx, o.name, head, o.switchTo)
}

func (d *database) branchAt(ctx context.Context, name, head string, active bool) error {
	b, err := d.chats.CreateBranch(ctx, chat.Branch{
		ID: uuid.NewString(), ChatID: d.current, Name: name, HeadMessageID: chat.Ref(head), IsActive: active,
	})
	if err != nil {
		return err
	}
	return d.printBranch(ctx, b.Name, "now on branch")
}

func (d *database) switchTo(ctx context.Context, name string) error {
	b, err := d.branch(ctx, name)
	if err != nil {
		return err
	}
	if err := d.chats.SetActiveBranch(ctx, d.current, b.ID); err != nil {
		return err
	}
	return d.printBranch(ctx, b.Name, "now on branch")
}

func (d *database) rewind(ctx context.Context, o *rewindOptions) error {
	found, err := d.position(ctx, o.to)
	if err != nil {
		return err
	}
	if o.inPlace {
		return usagef("--in-place: a database does not keep where branches stood, so this could not be undone")
	}
	name, err := d.nextName(ctx)
	if err != nil {
		return err
	}
	return d.branchAt(ctx, name, found.Message, true)
}

// nextName returns a name for a branch made from the active one.
func (d *database) nextName(ctx context.Context) (string, error) {
	active, err := d.chats.ActiveBranch(ctx, d.current)
	if err != nil {
		return "", err
	}
	current := chat.MainBranch
	if active != nil {
		current = active.Name
	}
	return chat.NextBranchName(ctx, d.chats, d.current, current, nil)
}

func (d *database) listCheckpoints(ctx context.Context) error {
	id, err := d.needThread()
	if err != nil {
		return err
	}
	checkpoints, err := d.chats.ListCheckpoints(ctx, id)
	if err != nil {
		return err
	}
	table := screen.NewTable(d.out, "CHECKPOINT", "SET", "MESSAGE")
	for i := range checkpoints {
		if d.json {
			if err := d.emitCheckpoint(ctx, &checkpoints[i]); err != nil {
				return err
			}
			continue
		}
		c := &checkpoints[i]
		table.Cells(screen.Cell{Text: c.Name, Style: screen.Yellow}, screen.Cell{Text: screen.Time(millis(c.CreatedAt)), Style: screen.Dim},
			screen.Cell{Text: c.MessageID})
	}
	return table.Print()
}

func (d *database) emitCheckpoint(ctx context.Context, c *chat.Checkpoint) error {
	r := checkpointRecord{ID: c.ID, Name: c.Name, Thread: c.ChatID, Message: c.MessageID, CreatedAt: millis(c.CreatedAt)}
	for _, err := range d.chats.MessageChain(ctx, c.MessageID) {
		if err != nil {
			return err
		}
		r.Position++
	}
	return d.emit(&r)
}

func (d *database) putCheckpoint(ctx context.Context, o *checkpointOptions) error {
	found, err := d.position(ctx, o.at)
	if err != nil {
		return err
	}
	if found.Message == "" {
		return usagef("no message to put a checkpoint at")
	}
	c, err := d.chats.CreateCheckpoint(ctx, chat.Checkpoint{ChatID: d.current, Name: o.name, MessageID: found.Message})
	if err != nil {
		return err
	}
	if d.json {
		return d.emitCheckpoint(ctx, &c)
	}
	d.printf("checkpoint %s at %s\n", screen.Line(c.Name), screen.Line(c.MessageID))
	return nil
}

func (d *database) restoreCheckpoint(ctx context.Context, name string) error {
	id, err := d.needThread()
	if err != nil {
		return err
	}
	c, err := d.chats.Checkpoint(ctx, id, name)
	if err != nil {
		return err
	}
	if c == nil {
		checkpoints, err := d.chats.ListCheckpoints(ctx, id)
		if err != nil {
			return err
		}
		var names []string
		for _, c := range checkpoints {
			names = append(names, c.Name)
		}
		return refs.Unknown("checkpoint", name, names)
	}
	next, err := d.nextName(ctx)
	if err != nil {
		return err
	}
	return d.branchAt(ctx, next, c.MessageID, true)
}

func (d *database) tree(ctx context.Context, o *treeOptions) error {
	c, err := d.threadNamed(ctx, o.thread)
	if err != nil {
		return err
	}
	g, err := d.chats.Graph(ctx, c.ID)
	if err != nil {
		return err
	}
	if d.json {
		return d.emitGraph(ctx, c, &g)
	}
	d.printf("%s  %s\n", d.out.Paint(screen.Bold, titleOf(lineage.ThreadInfo{Title: c.Title, SourceID: c.ID})), d.out.Paint(screen.Dim, "thread "+screen.Line(c.ID)))
	for i, root := range d.nodes(&g) {
		if i > 0 {
			d.printf("\n")
		}
		limits := graph.Limits{Depth: maxDepth, Forks: maxForks}
		if o.full {
			limits = graph.Limits{}
		}
		if err := graph.Draw(d.out, root, limits); err != nil {
			return err
		}
	}
	return nil
}

// nodes returns the drawings of a graph's trees: parents are before their children.
func (d *database) nodes(g *chat.Graph) []*graph.Node {
	labels := make(map[string]string)
	label := func(id, text string) {
		if labels[id] != "" {
			text = ", " + text
		}
		labels[id] += text
	}
	active, parents := "", make(map[string]string)
	for _, b := range g.Branches {
		text := screen.Line(b.Name)
		if b.IsActive {
			text, active = text+" *", string(b.HeadMessageID)
		}
		label(string(b.HeadMessageID), d.out.Paint(screen.Green, text))
	}
	for _, c := range g.Checkpoints {
		label(c.MessageID, d.out.Paint(screen.Yellow, "◆ "+screen.Line(c.Name)))
	}
	for _, n := range g.Nodes {
		parents[n.ID] = string(n.ParentID)
	}
	main := make(map[string]bool)
	for id := active; id != "" && !main[id]; id = parents[id] {
		main[id] = true
	}
	nodes, depth := make(map[string]*graph.Node), make(map[string]int)
	var roots []*graph.Node
	var mainRoot *graph.Node
	for _, n := range g.Nodes {
		depth[n.ID] = depth[string(n.ParentID)] + 1
		who := screen.Pad(screen.Cut(screen.Line(n.Role), 20), 9)
		number := fmt.Sprintf("%2d", depth[n.ID])
		node := &graph.Node{
			Head:      d.out.Paint(screen.Dim, number) + "  " + d.out.Paint(screen.OfRole(n.Role), who),
			HeadWidth: len(number) + 2 + screen.Width(who), Text: screen.Cut(screen.Line(n.Content), 120),
			Labels: labels[n.ID], Current: n.ID == active && active != "",
		}
		nodes[n.ID] = node
	}
	// The child on the line of the active branch, or else the first, goes straight on.
	straight := make(map[string]string)
	for _, n := range g.Nodes {
		if parent := string(n.ParentID); straight[parent] == "" || main[n.ID] {
			straight[parent] = n.ID
		}
	}
	for _, n := range g.Nodes {
		parent := nodes[string(n.ParentID)]
		switch {
		case parent == nil && main[n.ID]:
			mainRoot = nodes[n.ID]
		case parent == nil:
			roots = append(roots, nodes[n.ID])
		case straight[string(n.ParentID)] != n.ID:
			parent.Children = append(parent.Children, nodes[n.ID])
		}
	}
	for parent, child := range straight {
		if p := nodes[parent]; p != nil {
			p.Children = append(p.Children, nodes[child])
		}
	}
	if mainRoot != nil {
		roots = append(roots, mainRoot)
	}
	return roots
}

func (d *database) emitGraph(ctx context.Context, c *chat.Chat, g *chat.Graph) error {
	r, err := d.threadRecord(ctx, c)
	if err != nil {
		return err
	}
	if err := d.emit(r); err != nil {
		return err
	}
	branches, err := d.chats.ListBranches(ctx, c.ID)
	if err != nil {
		return err
	}
	for i := range branches {
		if err := d.emit(newChatBranchRecord(&branches[i])); err != nil {
			return err
		}
	}
	checkpoints, err := d.chats.ListCheckpoints(ctx, c.ID)
	if err != nil {
		return err
	}
	for i := range checkpoints {
		if err := d.emitCheckpoint(ctx, &checkpoints[i]); err != nil {
			return err
		}
	}
	depth := make(map[string]uint64)
	for _, n := range g.Nodes {
		depth[n.ID] = depth[string(n.ParentID)] + 1
		r := nodeRecord{ID: n.ID, Position: depth[n.ID], Role: n.Role, Preview: n.Content, CreatedAt: millis(n.CreatedAt)}
		if n.ParentID != "" {
			parent := string(n.ParentID)
			r.Parent = &parent
		}
		if err := d.emit(&r); err != nil {
			return err
		}
	}
	return nil
}
