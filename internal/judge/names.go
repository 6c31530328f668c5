package judge

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// MostName is how long a name may be, in bytes: engines keep things under their names, and
// keys are bounded.
const MostName = 4 << 10

// requireName refuses a name that is none, or of a thread that is not there.
func (j *Judge) requireName(of structure.Kind, n Name) error {
	if n.Name == "" || len(n.Name) > MostName {
		return &backend.SubjectError{
			Subject: of.String(), ID: fmt.Sprintf("%.80q", n.Name), Err: backend.ErrInvalid, Detail: fmt.Sprintf("a name has 1 to %d bytes", MostName),
		}
	}
	return j.requireThread(n.Thread)
}

func nameRefusal(of structure.Kind, n Name, why error) error {
	return &backend.SubjectError{Subject: of.String(), ID: fmt.Sprintf("%q", n.Name), Err: why}
}

func (j *Judge) branch(r *structure.Branch) error {
	name := Name{r.Thread, r.Name}
	if err := j.requireContext(r.Context); err != nil {
		return err
	}
	if err := j.requireName(structure.KindBranch, name); err != nil {
		return err
	}
	change, err := j.branchChange(name)
	if err != nil {
		return err
	}
	switch {
	case change.Now == nil:
		j.effects.Counts.Branches++
	case change.Now.Context == r.Context:
	case !j.Replay:
		return nameRefusal(structure.KindBranch, name, backend.ErrExists)
	}
	if err := takeSource(j, &j.effects.BranchSources, j.View.BranchFrom, name, sourceOfBranch(change.Now), r.SourceID); err != nil {
		return err
	}
	change.Now = r
	j.effects.Branches.set(name, change)
	j.branches.add(r.Thread, name)
	j.named.add(membership{r.Thread, r.Context}, r.Name)
	return nil
}

func (k *keys) branch(r *structure.Branch) {
	k.context(r.Context)
	k.add(Key{Kind: KeyThread, ID: r.Thread})
	k.add(Key{Kind: KeyBranch, ID: r.Thread, Name: r.Name})
	if r.SourceID != "" {
		k.add(Key{Kind: KeyBranchFrom, ID: r.Thread, Name: r.SourceID})
	}
}

func (j *Judge) branchChange(n Name) (Change[*structure.Branch], error) {
	if change, ok := j.effects.Branches.Get(n); ok {
		return change, nil
	}
	was, err := j.View.Branch(n)
	return Change[*structure.Branch]{was, was}, err
}

func (j *Judge) deleteBranch(d *structure.Deletion) error {
	name := Name{d.Thread, d.Name}
	change, err := j.branchChange(name)
	if err == nil && change.Now == nil && !j.Replay { // in replay a collection may have taken it
		err = nameRefusal(structure.KindBranch, name, backend.ErrNotFound)
	}
	j.dropBranch(name, change)
	return err
}

func (j *Judge) dropBranch(n Name, change Change[*structure.Branch]) {
	if change.Now != nil {
		j.effects.Counts.Branches--
		freeSource(&j.effects.BranchSources, n, change.Now.SourceID)
		change.Now = nil
		j.effects.Branches.set(n, change)
	}
}

func (k *keys) deleteBranch(d *structure.Deletion) {
	k.add(Key{Kind: KeyBranch, ID: d.Thread, Name: d.Name})
}

func (j *Judge) checkpoint(r *structure.Checkpoint) error {
	name := Name{r.Thread, r.Name}
	if r.Span.IsZero() || r.ID.IsZero() {
		return refusal("checkpoint", r.ID, backend.ErrInvalid, "no span or id")
	}
	if err := j.requireSpan(r.Span); err != nil {
		return err
	}
	if err := j.requireName(structure.KindCheckpoint, name); err != nil {
		return err
	}
	change, err := j.checkpointChange(name)
	if err != nil {
		return err
	}
	switch {
	case change.Now == nil:
		j.effects.Counts.Checkpoints++
	case change.Now.ID == r.ID:
	case !j.Replay:
		return nameRefusal(structure.KindCheckpoint, name, backend.ErrExists)
	}
	if err := takeSource(j, &j.effects.CheckpointSources, j.View.CheckpointFrom, name, sourceOfCheckpoint(change.Now), r.SourceID); err != nil {
		return err
	}
	change.Now = r
	j.effects.Checkpoints.set(name, change)
	j.checkpoints.add(r.Thread, name)
	return nil
}

func (k *keys) checkpoint(r *structure.Checkpoint) {
	k.span(r.Span)
	k.add(Key{Kind: KeyThread, ID: r.Thread})
	k.add(Key{Kind: KeyCheckpoint, ID: r.Thread, Name: r.Name})
	if r.SourceID != "" {
		k.add(Key{Kind: KeyCheckpointFrom, ID: r.Thread, Name: r.SourceID})
	}
}

func (j *Judge) checkpointChange(n Name) (Change[*structure.Checkpoint], error) {
	if change, ok := j.effects.Checkpoints.Get(n); ok {
		return change, nil
	}
	was, err := j.View.Checkpoint(n)
	return Change[*structure.Checkpoint]{was, was}, err
}

func (j *Judge) deleteCheckpoint(d *structure.Deletion) error {
	name := Name{d.Thread, d.Name}
	change, err := j.checkpointChange(name)
	if err == nil && change.Now == nil && !j.Replay { // in replay a collection may have taken it
		err = nameRefusal(structure.KindCheckpoint, name, backend.ErrNotFound)
	}
	j.dropCheckpoint(name, change)
	return err
}

func (j *Judge) dropCheckpoint(n Name, change Change[*structure.Checkpoint]) {
	if change.Now != nil {
		j.effects.Counts.Checkpoints--
		freeSource(&j.effects.CheckpointSources, n, change.Now.SourceID)
		change.Now = nil
		j.effects.Checkpoints.set(n, change)
	}
}

func (k *keys) deleteCheckpoint(d *structure.Deletion) {
	k.add(Key{Kind: KeyCheckpoint, ID: d.Thread, Name: d.Name})
}

// dropNames takes out the branches and checkpoints of a thread.
func (j *Judge) dropNames(id structure.ThreadID) error {
	branches, err := j.View.Branches(id)
	if err != nil {
		return err
	}
	for _, b := range branches {
		name := Name{id, b.Name}
		if _, mine := j.effects.Branches.Get(name); !mine {
			j.dropBranch(name, Change[*structure.Branch]{b, b})
		}
	}
	for _, name := range j.branches.get(id) {
		change, _ := j.effects.Branches.Get(name)
		j.dropBranch(name, change)
	}
	checkpoints, err := j.View.Checkpoints(id)
	if err != nil {
		return err
	}
	for _, c := range checkpoints {
		name := Name{id, c.Name}
		if _, mine := j.effects.Checkpoints.Get(name); !mine {
			j.dropCheckpoint(name, Change[*structure.Checkpoint]{c, c})
		}
	}
	for _, name := range j.checkpoints.get(id) {
		change, _ := j.effects.Checkpoints.Get(name)
		j.dropCheckpoint(name, change)
	}
	return nil
}
