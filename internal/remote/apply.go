package remote

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

type applyArgs struct {
	commit  *structure.Commit
	options backend.Options
}

func walkApply(w *wire, a *applyArgs) {
	options(w, &a.options)
	commit(w, &a.commit)
}

// applied is the answer to a commit: its receipt, and the new state of the contexts whose tips the commit stated. A
// client that extends the same context again need not read it first.
type applied struct {
	receipt  backend.Receipt
	contexts []backend.Context
}

func walkApplied(w *wire, a *applied) {
	receipt(w, &a.receipt)
	list(w, "contexts", &a.contexts, len(structure.ContextID{}), contextState)
}

// callApply is the method by which a guest's commit is applied in the owner.
var callApply = call1(codeApply, "Apply", walkApply, walkApplied, receiver.apply)

// maxApplied limits the contexts in the answer to a commit.
const maxApplied = 8

// apply applies a commit of a client.
func (t receiver) apply(ctx context.Context, a applyArgs) (answer applied, err error) {
	if answer.receipt, err = t.engine.Apply(ctx, a.commit, a.options); err != nil {
		return answer, err
	}
	for _, expected := range a.options.Tips[:min(len(a.options.Tips), maxApplied)] {
		if c, err := t.engine.Context(ctx, expected.Context); err == nil {
			answer.contexts = append(answer.contexts, c)
		}
	}
	return answer, nil
}
