package judge

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// MaxName is the largest length of a name in bytes: names are parts of keys, whose size
// is limited.
const MaxName = 4 << 10

// names is the branches or the checkpoints of all threads, in the state and with the
// changes of the commit.
type names[R any] struct {
	*judging
	kind     structure.Kind
	changes  *OrderedMap[Name, Change[*R]]
	given    *groups[structure.ThreadID, Name]
	sources  *OrderedMap[SourceID, string]
	count    *int64
	stored   func(Name) (*R, error)
	ofThread func(structure.ThreadID) ([]*R, error)
	from     func(SourceID) (string, error)
	name     func(*R) Name
	sourceID func(*R) string
}

func (j *judging) branchNames() *names[structure.Branch] {
	return &names[structure.Branch]{
		judging: j, kind: structure.KindBranch,
		changes: &j.effects.Branches, given: &j.branches, sources: &j.effects.BranchSources, count: &j.effects.Counts.Branches,
		stored: j.View.Branch, ofThread: j.View.Branches, from: j.View.BranchFrom,
		name:     func(b *structure.Branch) Name { return Name{b.Thread, b.Name} },
		sourceID: func(b *structure.Branch) string { return b.SourceID },
	}
}

func (j *judging) checkpointNames() *names[structure.Checkpoint] {
	return &names[structure.Checkpoint]{
		judging: j, kind: structure.KindCheckpoint,
		changes: &j.effects.Checkpoints, given: &j.checkpoints, sources: &j.effects.CheckpointSources, count: &j.effects.Counts.Checkpoints,
		stored: j.View.Checkpoint, ofThread: j.View.Checkpoints, from: j.View.CheckpointFrom,
		name:     func(c *structure.Checkpoint) Name { return Name{c.Thread, c.Name} },
		sourceID: func(c *structure.Checkpoint) string { return c.SourceID },
	}
}

// give gives a record its name. An existing record with that name must be the same.
func (n *names[R]) give(r *R, same func(was *R) bool) error {
	name := n.name(r)
	if name.Name == "" || len(name.Name) > MaxName {
		return &backend.SubjectError{
			Subject: n.kind.String(), ID: fmt.Sprintf("%.80q", name.Name), Err: backend.ErrInvalid, Detail: fmt.Sprintf("a name has 1 to %d bytes", MaxName),
		}
	}
	if err := n.requireThread(name.Thread); err != nil {
		return err
	}
	change, err := n.change(name)
	if err != nil {
		return err
	}
	source := ""
	switch {
	case change.Now == nil:
		*n.count++
	case same(change.Now) || n.Replay:
		source = n.sourceID(change.Now)
	default:
		return n.refusal(name, backend.ErrExists)
	}
	if err := claimSource(&n.state, n.sources, n.from, name, source, n.sourceID(r)); err != nil {
		return err
	}
	change.Now = r
	n.changes.set(name, change)
	n.given.add(name.Thread, name)
	return nil
}

func (n *names[R]) refusal(name Name, why error) error {
	return &backend.SubjectError{Subject: n.kind.String(), ID: fmt.Sprintf("%q", name.Name), Err: why}
}

func (n *names[R]) change(name Name) (Change[*R], error) {
	if change, ok := n.changes.Get(name); ok {
		return change, nil
	}
	was, err := n.stored(name)
	return Change[*R]{was, was}, err
}

func (n *names[R]) delete(d *structure.Deletion) error {
	name := Name{d.Thread, d.Name}
	change, err := n.change(name)
	if err == nil && change.Now == nil && !n.Replay { // in replay a collection may have deleted it
		err = n.refusal(name, backend.ErrNotFound)
	}
	n.drop(name, change)
	return err
}

func (n *names[R]) drop(name Name, change Change[*R]) {
	if change.Now != nil {
		*n.count--
		freeSource(n.sources, name, n.sourceID(change.Now))
		change.Now = nil
		n.changes.set(name, change)
	}
}

// dropAll deletes the names of a thread.
func (n *names[R]) dropAll(id structure.ThreadID) error {
	stored, err := n.ofThread(id)
	if err != nil {
		return err
	}
	for _, r := range stored {
		name := n.name(r)
		if _, changed := n.changes.Get(name); !changed {
			n.drop(name, Change[*R]{r, r})
		}
	}
	for _, name := range n.given.get(id) {
		change, _ := n.changes.Get(name)
		n.drop(name, change)
	}
	return nil
}

func (k *keys) name(kind, from KeyKind, n Name, sourceID string) {
	k.add(Key{Kind: KeyThread, ID: n.Thread})
	k.add(Key{Kind: kind, ID: n.Thread, Name: n.Name})
	if sourceID != "" {
		k.add(Key{Kind: from, ID: n.Thread, Name: sourceID})
	}
}

func (j *judging) branch(r *structure.Branch) error {
	if err := j.requireContext(r.Context); err != nil {
		return err
	}
	err := j.branchNames().give(r, func(was *structure.Branch) bool { return was.Context == r.Context })
	if err == nil {
		j.named.add(membership{r.Thread, r.Context}, r.Name)
	}
	return err
}

// requireUnnamed refuses a context that is a branch of its thread.
func (j *judging) requireUnnamed(m membership) error {
	refuse := func(name string) error {
		return refusal("context", m.context, backend.ErrConflict, fmt.Sprintf("it is branch %q", name))
	}
	stored, err := j.View.NamesOf(m.thread, m.context)
	if err != nil {
		return err
	}
	for _, name := range stored {
		if change, ok := j.effects.Branches.Get(Name{m.thread, name}); !ok || change.Now != nil && change.Now.Context == m.context {
			return refuse(name)
		}
	}
	for _, name := range j.named.get(m) {
		if change, _ := j.effects.Branches.Get(Name{m.thread, name}); change.Now != nil && change.Now.Context == m.context {
			return refuse(name)
		}
	}
	return nil
}

func (k *keys) branch(r *structure.Branch) {
	k.context(r.Context)
	k.name(KeyBranch, KeyBranchFrom, Name{r.Thread, r.Name}, r.SourceID)
}

func (k *keys) deleteBranch(d *structure.Deletion) {
	k.add(Key{Kind: KeyBranch, ID: d.Thread, Name: d.Name})
}

func (j *judging) checkpoint(r *structure.Checkpoint) error {
	if r.Span.IsZero() || r.ID.IsZero() {
		return refusal("checkpoint", r.ID, backend.ErrInvalid, "no span or id")
	}
	if err := j.requireSpan(r.Span); err != nil {
		return err
	}
	return j.checkpointNames().give(r, func(was *structure.Checkpoint) bool { return was.ID == r.ID })
}

func (k *keys) checkpoint(r *structure.Checkpoint) {
	k.span(r.Span)
	k.name(KeyCheckpoint, KeyCheckpointFrom, Name{r.Thread, r.Name}, r.SourceID)
}

func (k *keys) deleteCheckpoint(d *structure.Deletion) {
	k.add(Key{Kind: KeyCheckpoint, ID: d.Thread, Name: d.Name})
}
