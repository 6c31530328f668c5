package embedded

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Verify implements backend.Engine. The fast check reads every frame of the journal. The deep check also rebuilds the
// index in a temporary directory, which computes every id, key and digest, and compares it entry by entry with the
// current one. Then it reads every chunked body.
func (e *Engine) Verify(ctx context.Context, o backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return func(yield func(backend.Finding, error) bool) {
		if err := e.begin(); err != nil {
			yield(backend.Finding{}, err)
			return
		}
		defer e.end()
		v := verifier{engine: e, ctx: ctx, opt: o, yield: yield}
		if err := v.run(); err != nil && !errors.Is(err, errStopped) {
			yield(backend.Finding{}, err)
		}
	}
}

func (v *verifier) run() error {
	// A snapshot fixes the state to compare; later commits are ignored.
	snapshot := v.pin()
	defer snapshot.Close()
	v.layer, v.files = snapshot.packs, snapshot.files
	v.total = v.engine.journal.Size()
	if damage := v.engine.damage; damage != nil {
		if err := v.journalDamage(damage); err != nil {
			return err
		}
	}
	if err := v.indexFile(); err != nil {
		return err
	}
	if err := v.packs(); err != nil {
		return err
	}
	var shadow *Engine
	if v.opt.Deep && !v.lost {
		var discard func()
		var err error
		if shadow, discard, err = v.engine.shadow(); err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		defer discard()
		shadow.pinned = v.files
		shadow.collecting.Barrier.Store(v.barrier)
		shadow.hide(v.pruned)
		shadow.beginWith(v.layer.last)
	}
	if err := v.journal(snapshot.State(), shadow); err != nil {
		return err
	}
	if shadow == nil || v.damaged {
		return nil
	}
	fresh := shadow.latest()
	defer fresh.Close()
	if err := v.compare(snapshot.Snapshot, fresh.Snapshot); err != nil {
		return err
	}
	if err := v.order(snapshot.Snapshot); err != nil {
		return err
	}
	return v.trees(fresh.viewed())
}

// pin returns the state to compare with the journal. If a collection has pruned the index but not
// the journal, the journal is read through its filter.
func (v *verifier) pin() *catalog {
	collecting := &v.engine.collecting
	collecting.Agree.RLock()
	defer collecting.Agree.RUnlock()
	if v.barrier = v.engine.collecting.Barrier.Load(); collecting.Pruned {
		v.pruned = v.barrier
	}
	return v.engine.now().at
}

// firstFinding returns the first finding of a verification as an error.
func firstFinding(findings iter.Seq2[backend.Finding, error]) error {
	for finding, err := range findings {
		if err != nil {
			return err
		}
		return &backend.CorruptError{File: finding.File, Offset: finding.Offset, What: finding.String()}
	}
	return nil
}
