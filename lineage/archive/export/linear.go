package export

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/lineage"
)

type history = iter.Seq2[*lineage.Entry, error]

// histories visits the histories of a conversation that say all of it: those
// that no other goes on from, and those that a branch ends, each once.
func (x *exporter) histories(ctx context.Context, conv *conversation, visit func(history) error) error {
	t, err := newTree(ctx, x.store, conv.tips)
	if err != nil {
		return err
	}
	seen := make(map[lineage.SpanRef]bool)
	for _, tip := range conv.tips {
		if tip.ref.IsZero() || seen[tip.ref] || tip.branch == "" && !t.leaf(tip.ref) {
			continue
		}
		seen[tip.ref] = true
		if err := visit(x.store.History(ctx, tip.ref, lineage.Window{})); err != nil {
			return err
		}
	}
	return nil
}
