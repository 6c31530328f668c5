// Package judgetest checks that a judge looks at nothing but what judge.Keys names.
package judgetest

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Named is a view that answers only what keys name. It calls Fail for every other question.
type Named struct {
	View  judge.View
	Keys  []judge.Key
	Fail  func(judge.Key)
	named map[judge.Key]bool
}

var (
	_ judge.View   = (*Named)(nil)
	_ judge.Stored = (*Named)(nil)
)

func (n *Named) need(k judge.Key) {
	if n.named == nil {
		n.named = make(map[judge.Key]bool)
		for _, k := range n.Keys {
			n.named[k] = true
		}
	}
	if !n.named[k] {
		n.Fail(k)
	}
}

// needID is need for a key that is an id.
func (n *Named) needID(kind judge.KeyKind, id [16]byte) { n.need(judge.Key{Kind: kind, ID: id}) }

// Thread implements judge.View.
func (n *Named) Thread(id structure.ThreadID) (*structure.Thread, error) {
	n.needID(judge.KeyThread, id)
	return n.View.Thread(id)
}

// Context implements judge.View.
func (n *Named) Context(id structure.ContextID) (*backend.Context, error) {
	n.needID(judge.KeyContext, id)
	return n.View.Context(id)
}

// Remnant implements judge.View.
func (n *Named) Remnant(id structure.ContextID) (*structure.Remnant, error) {
	if !n.lines() {
		n.needID(judge.KeyRemnant, id)
	}
	return n.View.Remnant(id)
}

// NextChild implements judge.View.
func (n *Named) NextChild(parent, after structure.ContextID) (structure.ContextID, bool, error) {
	if !n.lines() {
		n.needID(judge.KeyLine, parent)
	}
	return n.View.NextChild(parent, after)
}

// lines reports whether lines of contexts are named. What is above a context is known only after
// reading it.
func (n *Named) lines() bool {
	for _, k := range n.Keys {
		if k.Kind == judge.KeyLine || k.Kind == judge.KeyOfThread {
			return true
		}
	}
	return false
}

// Unused implements judge.View. It may always be false.
func (n *Named) Unused(id structure.ContextID) bool { return n.View.Unused(id) }

// Value implements judge.View.
func (n *Named) Value(key structure.ValueKey) (uint64, error) {
	n.need(judge.Key{Kind: judge.KeyValue, Value: key})
	return n.View.Value(key)
}

// Block implements judge.View.
func (n *Named) Block(id content.ID) (int64, bool, error) {
	n.need(judge.Key{Kind: judge.KeyBlock, Hash: id})
	return n.View.Block(id)
}

// Erased implements judge.View.
func (n *Named) Erased(id content.ID) (bool, error) {
	n.need(judge.Key{Kind: judge.KeyErased, Hash: id})
	return n.View.Erased(id)
}

// HasBlock implements judge.Stored.
func (n *Named) HasBlock(id content.ID) (bool, error) {
	_, known, err := n.Block(id)
	if err != nil || !known {
		return false, err
	}
	erased, err := n.Erased(id)
	return !erased, err
}

// HasChunk implements judge.View and judge.Stored.
func (n *Named) HasChunk(k content.Key) (bool, error) {
	if !n.trees() {
		n.need(judge.Key{Kind: judge.KeyChunk, Hash: k})
	}
	return n.View.HasChunk(k)
}

// Chunks implements judge.View.
func (n *Named) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	for _, k := range keys {
		if !n.trees() {
			n.need(judge.Key{Kind: judge.KeyTree, Hash: k})
		}
	}
	return n.View.Chunks(ctx, keys)
}

// trees reports whether whole trees are named. Their content is known only after reading
// them.
func (n *Named) trees() bool {
	for _, k := range n.Keys {
		if k.Kind == judge.KeyTree {
			return true
		}
	}
	return false
}

// Run implements judge.View.
func (n *Named) Run(id structure.RunID) (structure.RunInfo, bool, error) {
	n.needID(judge.KeyRun, id)
	return n.View.Run(id)
}

// End implements judge.View.
func (n *Named) End(id structure.RunID) (judge.End, bool, error) {
	n.needID(judge.KeyEnd, id)
	return n.View.End(id)
}

// HasSpan implements judge.View.
func (n *Named) HasSpan(r structure.SpanRef) (bool, error) {
	n.need(judge.Key{Kind: judge.KeySpan, ID: r.Run, Seq: r.Seq})
	return n.View.HasSpan(r)
}

// Digest implements judge.View.
func (n *Named) Digest(r structure.SpanRef) (structure.Digest, error) {
	n.need(judge.Key{Kind: judge.KeyDigest, ID: r.Run, Seq: r.Seq})
	return n.View.Digest(r)
}

// HasSet implements judge.View.
func (n *Named) HasSet(id structure.SpanSetID) (bool, error) {
	n.needID(judge.KeySet, id)
	return n.View.HasSet(id)
}

// HasLookup implements judge.View. The home may be named by a run of it.
func (n *Named) HasLookup(l judge.Lookup) (bool, error) {
	for _, k := range n.Keys {
		if k.Kind == judge.KeyLookupsOfRun && k.Name == l.SourceID {
			if run, ok, err := n.View.Run(k.ID); err == nil && ok && run.Home == l.Home {
				return n.View.HasLookup(l)
			}
		}
	}
	n.need(judge.Key{Kind: judge.KeyLookups, ID: l.Home.Thread, Seq: l.Home.Incarnation, Name: l.SourceID})
	return n.View.HasLookup(l)
}

// Find implements judge.View.
func (n *Named) Find(sourceID string, thread structure.ThreadID) iter.Seq2[backend.Found, error] {
	n.need(judge.Key{Kind: judge.KeyFind, ID: thread, Name: sourceID})
	return n.View.Find(sourceID, thread)
}

// BranchFrom implements judge.View.
func (n *Named) BranchFrom(from judge.SourceID) (string, error) {
	n.need(judge.Key{Kind: judge.KeyBranchFrom, ID: from.Thread, Name: from.ID})
	return n.View.BranchFrom(from)
}

// CheckpointFrom implements judge.View.
func (n *Named) CheckpointFrom(from judge.SourceID) (string, error) {
	n.need(judge.Key{Kind: judge.KeyCheckpointFrom, ID: from.Thread, Name: from.ID})
	return n.View.CheckpointFrom(from)
}

// Branch implements judge.View.
func (n *Named) Branch(name judge.Name) (*structure.Branch, error) {
	n.need(judge.Key{Kind: judge.KeyBranch, ID: name.Thread, Name: name.Name})
	return n.View.Branch(name)
}

// Checkpoint implements judge.View.
func (n *Named) Checkpoint(name judge.Name) (*structure.Checkpoint, error) {
	n.need(judge.Key{Kind: judge.KeyCheckpoint, ID: name.Thread, Name: name.Name})
	return n.View.Checkpoint(name)
}

// Members implements judge.View.
func (n *Named) Members(id structure.ThreadID) ([]*backend.Context, error) {
	n.needID(judge.KeyOfThread, id)
	return n.View.Members(id)
}

// Branches implements judge.View.
func (n *Named) Branches(id structure.ThreadID) ([]*structure.Branch, error) {
	n.needID(judge.KeyOfThread, id)
	return n.View.Branches(id)
}

// Checkpoints implements judge.View.
func (n *Named) Checkpoints(id structure.ThreadID) ([]*structure.Checkpoint, error) {
	n.needID(judge.KeyOfThread, id)
	return n.View.Checkpoints(id)
}

// NamesOf implements judge.View.
func (n *Named) NamesOf(thread structure.ThreadID, id structure.ContextID) ([]string, error) {
	n.needID(judge.KeyNamesOf, id)
	return n.View.NamesOf(thread, id)
}

// Summaries implements judge.View.
func (n *Named) Summaries(id structure.ContextID) ([]judge.SummaryAt, error) {
	n.needID(judge.KeySummaries, id)
	return n.View.Summaries(id)
}
