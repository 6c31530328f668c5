package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// replayed is a commit of the log.
type replayed struct {
	row     *logRow
	s       embedded.Sequenced
	commit  *structure.Commit
	offsets []int
}

// newReplayed decodes a commit of a row.
func newReplayed(r *logRow, s embedded.Sequenced) (replayed, error) {
	c, offsets, err := embedded.DecodeOffsets(s.Payload)
	if err != nil {
		return replayed{}, err
	}
	c.Number = s.Number
	return replayed{r, s, c, offsets}, nil
}

// replayAll adds the entries of commits of the log.
func (j *judging) replayAll(ctx context.Context, all []replayed) error {
	var ks []judge.Key
	for _, r := range all {
		ks = append(ks, judge.Keys(judge.Case{Commit: r.commit, Replay: true}, backend.Options{})...)
	}
	if err := j.state.Prefetch(ctx, j.reader, ks); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(r replayed) bool { return r.s.Unknown }) { // each forgets all sessions
		if err := j.reader.Prefetch(ctx, read.Need{Ranges: []read.Range{read.Under(keys.Of(keys.TableRequests))}}); err != nil {
			return err
		}
	}
	for _, r := range all {
		if j.row == nil || j.row.first != r.row.first || r.s.Number == r.row.first {
			j.row = &logRow{first: r.row.first, id: r.row.id}
		}
		if err := j.add(ctx, r.commit, r.s, r.offsets, true); err != nil {
			return fmt.Errorf("commit %d: %w", r.s.Number, err)
		}
		j.row.count++
	}
	return nil
}
