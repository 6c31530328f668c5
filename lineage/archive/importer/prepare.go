package importer

import (
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// prepare creates the usages of nodes, finds their parents, and appends the nodes to st.nodes without placing them.
// apart is the result of leavePath for these nodes.
func (l *loader) prepare(st *loading, nodes []archive.Node, apart []bool) ([]prepared, error) {
	// A few large allocations are cheaper than many small ones.
	out := make([]prepared, len(nodes))
	most := len(nodes)
	for i := range nodes {
		most += len(nodes[i].Attachments)
	}
	usages, contents, origins := make([]structure.Usage, most), make([]place.Content, most), make([]content.BlockOrigin, most)
	st.nodes.grow(len(nodes))
	for i := range nodes {
		n, p := &nodes[i], &out[i]
		p.Node = n
		parts := 1 + len(n.Attachments)
		p.Usages, usages = usages[:parts:parts], usages[parts:]
		p.Contents, contents = contents[:0:parts], contents[parts:]
		for k := range p.Usages {
			p.Usages[k].Origin = &origins[k]
		}
		origins = origins[parts:]
		aside := st.aside(n.Aside)
		var err error
		if p.parent, err = l.parentOf(st, n, aside); err != nil {
			return nil, err
		}
		p.index, p.Apart = int32(st.nodes.len()), i < len(apart) && apart[i]
		p.Message.Body, p.Record = n.Body, n.Aside == lineage.AsideLog
		if n.Role == "" {
			n.Role = "unknown"
		}
		if err := l.usages(st.thread, p); err != nil {
			return nil, err
		}
		mark := uint32(0)
		if n.ID == "" && p.parent >= 0 {
			mark = st.nodes.at(p.parent).mark
		}
		mark = l.hash.mark(mark, p.Usages)
		if p.parent >= 0 {
			if parent := st.nodes.at(p.parent); parent.aside == aside && !parent.kids {
				st.nodes.change(p.parent).kids = true
				st.leaves.grew(p.parent)
			}
		}
		if n.ID != "" {
			if st.identify(n.ID, p.index, len(nodes)) {
				p.Message.ID = n.ID
			}
		}
		if n.Branch != "" {
			st.named = append(st.named, namedHead{p.index, n.Branch, n.BranchOf, n.BranchMetadata})
		}
		st.nodes.add(loaded{parent: p.parent, aside: aside, mark: mark, created: n.Created.UnixMilli()})
		st.last[aside] = p.index
		st.leaves.add(p.index)
	}
	return out, nil
}

// parentOf returns the parent of a node, -1 for none.
func (l *loader) parentOf(st *loading, n *archive.Node, aside int32) (int32, error) {
	switch {
	case !n.Follows.IsZero():
		return st.adopted(n.Follows), nil
	case n.Root:
		return -1, nil
	case n.Parent != "":
		if parent, ok := st.node(n.Parent); ok {
			return parent, nil
		}
		if n.Parent != n.ID {
			if parent, err := l.adopt(st, n.Parent); err != nil || parent >= 0 {
				return parent, err
			}
		}
		reason := "it begins a history"
		if st.last[aside] >= 0 {
			reason = "it is put after the message before it"
		}
		l.report.repair(archive.Damaged(n.At.In("message "+n.ID), archive.Malformed("its parent %q is missing; %s", n.Parent, reason)))
	}
	return st.last[aside], nil
}

// adopt adds a node for an existing message of the thread. It returns -1 if the thread has no message with the id.
func (l *loader) adopt(st *loading, id string) (int32, error) {
	if st.thread == nil || st.thread.stage != inStore {
		return -1, nil
	}
	state, err := l.state()
	if err != nil {
		return -1, err
	}
	found, err := backend.FindFirst(l.ctx, state, id, st.thread.record.ID)
	if errors.Is(err, lineage.ErrNotFound) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	index := st.adopted(found.Span)
	st.identify(id, index, 0)
	return index, nil
}

// adopted adds a node for a message of the store.
func (st *loading) adopted(at structure.SpanRef) int32 {
	node := st.nodes.add(loaded{parent: -1, kids: true, adopted: true})
	st.setRef(node, at)
	return node
}

// usages creates the usages of a node. Each usage states its type and origin, because a block may have been stored
// before and states only a kind of origin.
func (l *loader) usages(t *threadState, p *prepared) error {
	n := p.Node
	if n.Type == "" {
		n.Type = content.TypeText
	}
	created := n.Created
	if created.IsZero() {
		created = t.record.CreatedAt
	}
	origin := content.Origin{Kind: content.OriginOfRole(n.Role), UserID: n.UserID, ModelID: n.Model}
	own := p.Usages
	head := structure.Usage{
		Kind: structure.MessageUsage, Role: n.Role, Type: n.Type, By: origin.Attribution(), Origin: own[0].Origin,
		SourceID: n.ID, Metadata: n.Metadata, CreatedAt: created,
	}
	*head.Origin = origin.OfBlock()
	if n.Name != n.Role {
		head.Name = n.Name
	}
	usages, err := write.Message(own[:0:1], head, n.Type, n.Body, p.Store)
	if err != nil {
		return err
	}
	origin.ModelID = ""
	for i := range n.Attachments {
		a, u := &n.Attachments[i], &own[i+1]
		if a.Type == "" {
			a.Type = content.TypeBinary
		}
		if a.Filename == "" {
			a.Filename = "attachment"
		}
		*u = structure.Usage{Kind: structure.AssetUsage, Filename: a.Filename, Type: a.Type, By: origin.Attribution(), Origin: u.Origin, CreatedAt: created}
		*u.Origin = origin.OfBlock()
		if u.Content, err = p.Store(a.Type, origin.Kind, a.Body); err != nil {
			return err
		}
	}
	if usages[0].Opaque {
		l.report.Opaque++
	}
	if n.Converted {
		l.report.Converted++
	}
	if len(usages) > 1 {
		p.Usages = append(usages, own[1:]...)
	}
	return nil
}
