package embedded

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// submission is a commit on its way through Apply. Submissions are pooled.
type submission struct {
	ctx        context.Context
	p          judge.Preparation
	o          backend.Options
	durability backend.Durability

	// seen is the commit as of which known content was left out, and raised the number of barriers that had been raised then.
	seen, raised uint64

	encoder structure.Encoder
	payload []byte
	offsets []int

	at       backend.Cursor
	repeated bool // the request was applied by an earlier attempt
	err      error
	panicked *panicked
}

// panicked is the value and stack of a panic in a commit. It is raised again in the
// goroutine that called Apply; another one may have written the commit.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// errPanicked refuses all commits after one that panicked: the state in memory may be
// incomplete.
var errPanicked = fmt.Errorf("store: a commit ended in a panic; open the store again: %w", backend.ErrReadOnly)

func (t *submission) encode() (err error) {
	if t.payload, t.offsets, err = t.encoder.Encode(&t.p.Commit); err != nil {
		err = fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	return err
}
