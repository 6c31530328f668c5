package judge

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Keys returns everything that judging a commit may read from a view. It depends only on the
// commit and its options, so that an engine can read all of it at once. The view of the case
// is not used.
func Keys(c Case, o backend.Options) []Key {
	k := keys{seen: make(map[Key]struct{}), homes: make(map[structure.RunID]structure.Home), replay: c.Replay, wholeTrees: c.WholeTrees}
	k.options(o)
	for _, r := range c.Commit.Records {
		k.record(r)
	}
	return k.all
}

func (k *keys) record(r structure.Record) {
	switch r := r.(type) {
	case *structure.Block:
		k.block(r)
	case *structure.Chunk:
		k.chunk(r)
	case *structure.Thread:
		k.thread(r)
	case *structure.Context:
		k.contextRecord(r)
	case *structure.Tip:
		k.tip(r)
	case *structure.Run:
		k.run(r)
	case *structure.Span:
		k.newSpan(r)
	case *structure.SpanSet:
		k.spanSet(r)
	case *structure.Branch:
		k.branch(r)
	case *structure.Checkpoint:
		k.checkpoint(r)
	case *structure.Summary:
		k.summary(r)
	case *structure.Reflog:
		k.reflogEntry(r)
	case *structure.Deletion:
		k.deletion(r)
	case *structure.Value:
		k.value(r)
	case *structure.Remnant:
		k.remnant(r)
	}
}

func (k *keys) deletion(d *structure.Deletion) {
	switch d.Subject {
	case structure.KindThread:
		k.deleteThread(d.Thread)
	case structure.KindContext:
		k.deleteContext(d.Context)
	case structure.KindBranch:
		k.deleteBranch(d)
	case structure.KindCheckpoint:
		k.deleteCheckpoint(d)
	case structure.KindSummary:
		k.deleteSummary(d)
	case structure.KindBlock:
		k.erase(d.Content)
	}
}
