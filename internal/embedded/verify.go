package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Verify implements backend.Engine. The fast check reads every frame of the
// journal. The deep one makes the index anew beside the store from what it read,
// which computes every id, key and digest, and compares it entry by entry with
// the one in use; then it reads every body that was cut into chunks.
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

// errStopped ends a verification whose caller wants no more findings.
var errStopped = errors.New("stopped")

type verifier struct {
	engine *Engine
	ctx    context.Context
	opt    backend.VerifyOptions
	yield  func(backend.Finding, error) bool

	done, total int64
	damaged     bool // the journal is: nothing can be compared with it
	pruned      *barrier
	last        backend.CorruptError
}

func (v *verifier) found(f backend.Finding) error {
	if !v.yield(f, nil) {
		return errStopped
	}
	return nil
}

func (v *verifier) progress(n int64) error {
	v.done += n
	if v.opt.Progress != nil {
		v.opt.Progress(v.done, max(v.done, v.total))
	}
	if v.ctx.Err() != nil {
		return context.Cause(v.ctx)
	}
	return nil
}

func (v *verifier) run() error {
	// A snapshot fixes what is compared; commits that come later are not looked at.
	snapshot := v.pin()
	defer snapshot.Close()
	v.total = v.engine.journal.Size()
	if damage := v.engine.journal.Damage(); damage != nil {
		if err := v.journalDamage(damage); err != nil {
			return err
		}
	}
	if err := v.indexFile(); err != nil {
		return err
	}
	var again *Engine
	if v.opt.Deep {
		dir, err := os.MkdirTemp(v.engine.scratchDir(), scratchPattern)
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		defer os.RemoveAll(dir)
		if again, err = v.engine.shadow(dir); err != nil {
			return err
		}
		defer again.index.Close()
		again.barrier.Store(v.pruned)
	}
	if err := v.journal(snapshot.State(), again); err != nil {
		return err
	}
	if again == nil || v.damaged {
		return nil
	}
	fresh := again.index.Snapshot()
	defer fresh.Close()
	if err := v.compare(snapshot, fresh); err != nil {
		return err
	}
	return v.trees(view{engine: v.engine, index: fresh})
}

// pin returns the state to compare with the journal. While a collection has taken
// from the index what is still in the journal, that is looked at without it.
func (v *verifier) pin() *index.Snapshot {
	collecting := &v.engine.collecting
	collecting.pruned.RLock()
	defer collecting.pruned.RUnlock()
	if barrier := v.engine.barrier.Load(); barrier != nil && collecting.done {
		v.pruned = barrier
	}
	return v.engine.index.Snapshot()
}

// indexFile compares the index file with the checksums made when it was closed.
func (v *verifier) indexFile() error {
	if !v.opt.Deep {
		return nil
	}
	for damage, err := range v.engine.index.CheckSums() {
		if err != nil {
			return err
		}
		if err := v.found(backend.Finding{
			Subject: "index", File: v.engine.indexPath(), Offset: damage.Offset,
			Problem: fmt.Sprintf("%d bytes are not what was written", damage.Length), Repair: backend.RebuildIndex,
		}); err != nil {
			return err
		}
	}
	return nil
}

// scratchPattern names the directories of indexes made for a comparison.
const scratchPattern = "verify-*"

// scratchDir is where there is room for another index: beside the one in use,
// or among temporary files when nothing may be written there.
func (e *Engine) scratchDir() string {
	if e.opt.ReadOnly {
		return os.TempDir()
	}
	return e.dir
}

// removeScratch removes what verifications left that did not come to their end.
func (e *Engine) removeScratch() error {
	left, err := filepath.Glob(filepath.Join(e.dir, scratchPattern))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// shadow is an engine over the same journal with an empty index in dir.
func (e *Engine) shadow(dir string) (*Engine, error) {
	s := newEngine(dir)
	s.opt, s.journal = e.opt, e.journal
	var err error
	s.index, err = index.Open(filepath.Join(dir, indexFile), index.Options{OverlayBytes: e.opt.OverlayBytes, Log: e.opt.Log})
	return s, err
}

// journal reads every frame up to the state and replays it into the shadow.
func (v *verifier) journal(until index.State, again *Engine) error {
	number := uint64(0)
	first := true
	var offsets []int
	for f, err := range v.engine.journal.Frames(journal.Position{}) {
		if err != nil {
			return v.journalDamage(err)
		}
		if f.Number > until.Number || f.Number == until.Number && f.Mark {
			break
		}
		if err := v.progress(f.End - f.Position.Offset); err != nil {
			return err
		}
		if f.Mark {
			continue
		}
		if !first && f.Number != number+1 || first && f.Number != 1 {
			v.damaged = true
			if err := v.found(v.frameFinding(f, fmt.Sprintf("commit %d follows commit %d", f.Number, number))); err != nil {
				return err
			}
		}
		first, number = false, f.Number
		if again == nil || v.damaged {
			if _, err := structure.DecodeCommit(f.Payload); err != nil {
				v.damaged = true
				if err := v.found(v.frameFinding(f, err.Error())); err != nil {
					return err
				}
			}
			continue
		}
		if offsets, err = v.replay(again, f, offsets[:0]); err != nil {
			v.damaged = true
			if err := v.found(v.frameFinding(f, err.Error())); err != nil {
				return err
			}
			continue
		}
		if err := again.index.Throttle(); err != nil {
			return err
		}
	}
	if number < until.Number && !v.damaged {
		v.damaged = true
		return v.found(backend.Finding{Subject: "journal", Problem: fmt.Sprintf("ends with commit %d, but the index holds commit %d", number, until.Number)})
	}
	return nil
}

func (v *verifier) replay(again *Engine, f journal.Frame, offsets []int) ([]int, error) {
	if v.pruned == nil {
		return again.replayFrame(f, offsets)
	}
	c, err := v.engine.decodeFrame(f)
	if err == nil {
		v.pruned.live.filter(c.Commit, new(collected))
		err = again.replayCommit(c)
	}
	return offsets, err
}

// journalDamage reports the damage that reading the journal ran into, after which
// nothing can be read.
func (v *verifier) journalDamage(err error) error {
	var damage *backend.CorruptError
	if !errors.As(err, &damage) {
		return err
	}
	v.damaged = true
	if *damage == v.last {
		return nil // it kept the journal from being opened for writing, too
	}
	v.last = *damage
	return v.found(backend.Finding{
		Subject: "journal", File: damage.File, Offset: damage.Offset, Problem: damage.What,
		Repair: "restore from a backup; until then the store opens read-only",
	})
}

func (v *verifier) frameFinding(f journal.Frame, problem string) backend.Finding {
	return backend.Finding{
		Subject: "journal", File: v.engine.journal.SegmentName(f.Position.Segment), Offset: f.Position.Offset,
		ID: fmt.Sprint(f.Number), Problem: problem,
	}
}

// compare walks the index in use and the one made anew side by side.
func (v *verifier) compare(used, fresh *index.Snapshot) error {
	if used.State().Counts != fresh.State().Counts {
		if err := v.found(v.indexFinding(nil, "its counts differ from what the journal says")); err != nil {
			return err
		}
	}
	nextUsed, stopUsed := iter.Pull2(used.Scan(nil, nil))
	defer stopUsed()
	nextFresh, stopFresh := iter.Pull2(fresh.Scan(nil, nil))
	defer stopFresh()
	u, uErr, uOK := nextUsed()
	f, fErr, fOK := nextFresh()
	for uOK || fOK {
		if fErr != nil {
			return fErr
		}
		if uErr != nil {
			return v.found(v.indexFinding(nil, uErr.Error()))
		}
		if err := v.progress(0); err != nil {
			return err
		}
		order := bytes.Compare(u.Key, f.Key)
		switch {
		case !uOK:
			order = 1
		case !fOK:
			order = -1
		}
		var problem string
		switch {
		case order < 0:
			problem = "entry that the journal does not account for"
		case order > 0:
			problem = "entry is missing"
		case !bytes.Equal(u.Value, f.Value):
			problem = "entry differs from what the journal says"
		}
		if problem != "" {
			k := u.Key
			if order > 0 {
				k = f.Key
			}
			if err := v.found(v.indexFinding(k, problem)); err != nil {
				return err
			}
		}
		if order <= 0 {
			u, uErr, uOK = nextUsed()
		}
		if order >= 0 {
			f, fErr, fOK = nextFresh()
		}
	}
	return nil
}

func (v *verifier) indexFinding(k []byte, problem string) backend.Finding {
	f := backend.Finding{Subject: "index", File: v.engine.indexPath(), Problem: problem, Repair: backend.RebuildIndex}
	if len(k) > 0 {
		f.ID = fmt.Sprintf("%c:%x", k[0], k[1:])
	}
	return f
}

// trees reads every body that was cut into chunks and compares it with its id.
func (v *verifier) trees(state view) error {
	for e, err := range state.index.Scan(key(tableBlock), prefixEnd(key(tableBlock))) {
		if err != nil {
			return err
		}
		p, err := readPlace(e.Value)
		if err != nil {
			return err
		}
		if p.size <= content.InlineLimit {
			continue
		}
		object, _, err := readObject(state.newReader(), e.Value)
		b, ok := object.(*structure.Block)
		if err == nil && ok && b.Tree.Size > 0 {
			err = v.tree(state, b)
		}
		if err := v.progress(0); err != nil {
			return err
		}
		if err != nil {
			if err := v.found(backend.Finding{
				Subject: "block", ID: fmt.Sprintf("%x…", e.Key[1:]), File: v.engine.journal.SegmentName(p.frame.Segment), Offset: p.record, Problem: err.Error(),
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) tree(state view, b *structure.Block) error {
	if ok, err := state.notErased(b.ID); err != nil || !ok {
		return err
	}
	h := content.NewHasher()
	if _, err := content.OpenTree(v.ctx, b.Tree, state.Chunk).WriteTo(h); err != nil {
		return err
	}
	if h.ID() != b.ID {
		return errors.New("body does not match its id")
	}
	return nil
}
