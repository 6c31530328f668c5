package importer

import (
	"context"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Import imports an archive into a store.
//
// A conversation becomes a thread under its source id. Branches become branches; subagents and logs become contexts
// without a name. Messages in the store are not stored again: importing an archive twice adds nothing, and importing
// a newer export adds what is new. Damaged items are skipped and reported.
//
// An import makes many commits. All are durable when it returns. After a failure, earlier commits remain, and
// importing again continues. Other programs may change threads during their import, and several imports of one
// archive may run at once: a message that they all have is stored once. A thread that is deleted during its import is
// left out and reported.
func Import(ctx context.Context, store *lineage.Store, src archive.Source, o Options) (Report, error) {
	b, err := Begin(ctx, src, o)
	if err != nil {
		return Report{}, err
	}
	defer b.Close()
	return b.Into(store)
}
