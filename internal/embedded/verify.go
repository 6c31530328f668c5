package embedded

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
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

// errStopped ends a verification whose caller stopped iterating.
var errStopped = errors.New("stopped")

type verifier struct {
	engine *Engine
	ctx    context.Context
	opt    backend.VerifyOptions
	yield  func(backend.Finding, error) bool

	done, total int64
	damaged     bool // the journal is damaged, so it cannot be compared
	lost        bool // lookup tables of packs are damaged
	wrong       bool // index entries are wrong
	layer       *packLayer
	lookup      *journal.Check // of the pack being read
	barrier     *barrier       // of a pending collection
	pruned      *barrier       // the same, once the index has no dead records
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
	// A snapshot fixes the state to compare; later commits are ignored.
	snapshot := v.pin()
	defer snapshot.Close()
	v.layer = snapshot.packs
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
	var again *Engine
	if v.opt.Deep && !v.lost {
		var discard func()
		var err error
		if again, discard, err = v.engine.shadow(); err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		defer discard()
		again.barrier.Store(v.barrier)
		again.hide(v.pruned)
		again.beginWith(v.layer.last)
	}
	if err := v.journal(snapshot.State(), again); err != nil {
		return err
	}
	if again == nil || v.damaged {
		return nil
	}
	fresh := again.latest()
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
	collecting.pruned.RLock()
	defer collecting.pruned.RUnlock()
	if v.barrier = v.engine.barrier.Load(); collecting.done {
		v.pruned = v.barrier
	}
	return v.engine.latest()
}

// packs checks the lookup tables of packs. If they are damaged, the index cannot be compared with
// the journal.
func (v *verifier) packs() error {
	files := v.engine.journal.View()
	defer files.Release()
	for _, err := range files.PackDamage() {
		var damage *backend.CorruptError
		if !errors.As(err, &damage) {
			return err
		}
		if err := v.found(backend.Finding{
			Subject: "journal", File: damage.File, Offset: damage.Offset, Problem: damage.What, Repair: "'lineage pack'",
		}); err != nil {
			return err
		}
	}
	for err := range files.CheckSums(v.layer.last) {
		v.lost = true
		if err := v.lookupFault(err); err != nil {
			return err
		}
	}
	return nil
}

// lookupFault reports damage in the lookup tables of a pack. Damage in its commits is found by
// reading the journal.
func (v *verifier) lookupFault(err error) error {
	var damage *backend.CorruptError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &damage):
		return err
	case !errors.Is(err, journal.ErrLookup):
		return nil
	}
	return v.found(backend.Finding{
		Subject: "index", File: damage.File, Offset: damage.Offset, Problem: damage.What, Repair: backend.RebuildIndex,
	})
}

// checkLookup passes a commit to the check of its pack.
func (v *verifier) checkLookup(files *journal.View, segment uint32, c *structure.Commit) error {
	if v.lookup != nil && segment > v.lookup.Last() {
		if err := v.endLookup(); err != nil {
			return err
		}
	}
	if v.lookup == nil && segment <= v.layer.last {
		var err error
		if v.lookup, err = files.NewCheck(segment); err != nil {
			return err
		}
	}
	if v.lookup == nil {
		return nil
	}
	return v.lookup.Add(c.Number, c.Records)
}

// endLookup ends the check of a pack.
func (v *verifier) endLookup() error {
	check := v.lookup
	if v.lookup = nil; check == nil {
		return nil
	}
	return v.lookupFault(check.Done())
}

// indexFile compares the index file with the checksums written when it was closed.
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
			Problem: fmt.Sprintf("%d bytes differ from what was written", damage.Length), Repair: backend.RebuildIndex,
		}); err != nil {
			return err
		}
	}
	return nil
}

// scratchPattern names the directories of temporary indexes in the directory of a store.
const scratchPattern = "verify-*"

// scratchDir creates a directory for a temporary index: on the volume of the store or, if that is read-only, among the
// temporary files of the machine.
func (e *Engine) scratchDir() (dir string, remove func(), err error) {
	if e.opt.ReadOnly {
		d, err := scratch.New()
		if err != nil {
			return "", nil, err
		}
		return d.Path, func() { _ = d.Remove() }, nil // the next process that needs one tries again
	}
	dir, err = os.MkdirTemp(e.dir, scratchPattern)
	return dir, func() { _ = os.RemoveAll(dir) }, err // opening the store tries again
}

// removeScratch removes temporary indexes of interrupted verifications.
func (e *Engine) removeScratch() error {
	entries, err := os.ReadDir(e.dir)
	for _, entry := range entries {
		if ok, _ := filepath.Match(scratchPattern, entry.Name()); ok {
			err = errors.Join(err, os.RemoveAll(filepath.Join(e.dir, entry.Name())))
		}
	}
	return err
}

// shadow returns an engine with the same journal and an empty index, and a function that closes
// and removes that index.
func (e *Engine) shadow() (s *Engine, discard func(), err error) {
	dir, remove := "", func() {}
	if !e.opt.InMemory {
		if dir, remove, err = e.scratchDir(); err != nil {
			return nil, nil, err
		}
	}
	s = newEngine(dir)
	s.opt, s.journal, s.builder.Digests = e.opt, e.journal, e.builder.Digests
	s.index, err = index.Open(s.indexPath(), index.Options{OverlayBytes: e.opt.OverlayBytes, InMemory: e.opt.InMemory, Logger: e.opt.Logger})
	discard = func() {
		if s.index != nil {
			_ = s.index.Close() // it is deleted
		}
		remove()
	}
	if err != nil {
		discard()
		return nil, nil, err
	}
	return s, discard, nil
}

// journal reads every frame up to a state and replays it into the temporary index.
func (v *verifier) journal(until index.State, again *Engine) error {
	number := uint64(0)
	first := true
	files := v.engine.journal.View()
	defer files.Release()
	for f, err := range files.Frames(journal.Position{}) {
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
		if err := v.replay(again, files, f); errors.Is(err, errStopped) {
			return err
		} else if err != nil {
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
	if !v.damaged {
		if err := v.endLookup(); err != nil {
			return err
		}
	}
	if number < until.Number && !v.damaged {
		v.damaged = true
		return v.found(backend.Finding{Subject: "journal", Problem: fmt.Sprintf("ends with commit %d, but the index holds commit %d", number, until.Number)})
	}
	return nil
}

func (v *verifier) replay(again *Engine, files *journal.View, f journal.Frame) error {
	c, err := v.engine.decodeFrame(f)
	if err != nil {
		return err
	}
	if err := v.checkLookup(files, f.Position.Segment, c.Commit); err != nil {
		return err
	}
	v.pruned.filter(c.Commit)
	return again.replayCommit(c)
}

// journalDamage reports damage that ends the reading of the journal.
func (v *verifier) journalDamage(err error) error {
	var damage *backend.CorruptError
	if !errors.As(err, &damage) {
		return err
	}
	v.damaged = true
	if *damage == v.last {
		return nil // already reported when the journal was opened
	}
	v.last = *damage
	return v.found(backend.Finding{
		Subject: "journal", File: damage.File, Offset: damage.Offset, Problem: damage.What,
		Repair: "restore from a backup; without one, 'lineage salvage' creates a new store from everything that can be read",
	})
}

func (v *verifier) frameFinding(f journal.Frame, problem string) backend.Finding {
	return backend.Finding{
		Subject: "journal", File: v.engine.journal.SegmentName(f.Position.Segment), Offset: f.Position.Offset,
		ID: fmt.Sprint(f.Number), Problem: problem,
	}
}

// compare compares the current index with the rebuilt one.
func (v *verifier) compare(used, fresh *index.Snapshot) error {
	if used.State().Counts != fresh.State().Counts {
		if err := v.found(v.indexFinding(nil, "its counts differ from the journal")); err != nil {
			return err
		}
	}
	var damage error // of the current index
	ours := func(yield func(index.Entry, error) bool) {
		for e, err := range used.Scan(nil, nil) {
			if err != nil {
				damage = err
			} else {
				err = v.progress(0)
			}
			if !yield(e, err) {
				return
			}
		}
	}
	for d, err := range index.Differences(ours, fresh.Scan(nil, nil)) {
		switch {
		case damage != nil:
			return v.found(v.indexFinding(nil, damage.Error()))
		case err != nil:
			return err
		}
		problem, err := v.problem(d)
		if err != nil {
			return err
		}
		if problem != "" {
			v.wrong = true
			if err := v.found(v.indexFinding(d.Key, problem)); err != nil {
				return err
			}
		}
	}
	return nil
}

// problem returns what is wrong with an entry that differs from the rebuilt one, or nothing.
func (v *verifier) problem(d index.Difference) (string, error) {
	switch d.Key[0] {
	case keys.TableRequests, // packs do not store requests
		keys.TableThreadByTime,      // see verifier.order
		keys.TablePendingCollection, // the journal does not contain the pending collection
		keys.TablePackedUpTo:        // entries may be dropped right now
		return "", nil
	}
	switch {
	case d.Gone:
		packed, err := v.engine.matchesPacks(v.layer, d.Key, d.Was)
		if packed || err != nil { // not dropped from the index yet
			return "", err
		}
		return "entry that the journal does not account for", nil
	case d.New:
		return "entry is missing", nil
	case keys.SameSealed(d.Key, d.Was, d.Is):
		return "", nil
	}
	return "entry differs from the journal", nil
}

func (v *verifier) indexFinding(k []byte, problem string) backend.Finding {
	f := backend.Finding{Subject: "index", File: v.engine.indexPath(), Problem: problem, Repair: backend.RebuildIndex}
	if len(k) > 0 {
		f.ID = fmt.Sprintf("%c:%x", k[0], k[1:])
	}
	return f
}

// trees reads every chunked body and compares it with its id.
func (v *verifier) trees(state view) error {
	for e, err := range state.Index.Scan(keys.Of(keys.TableBlock), keys.PrefixEnd(keys.Of(keys.TableBlock))) {
		if err != nil {
			return err
		}
		p, err := keys.ReadPlace(e.Value)
		if err != nil {
			return err
		}
		if p.Size <= content.InlineLimit {
			continue
		}
		object, _, err := read.ReadObject(state.Commits.NewReader(), e.Value)
		b, ok := object.(*structure.Block)
		if err == nil && ok && b.Tree.Size > 0 {
			err = v.tree(state, b)
		}
		if err := v.progress(0); err != nil {
			return err
		}
		if err != nil {
			if err := v.found(backend.Finding{
				Subject: "block", ID: fmt.Sprintf("%x…", e.Key[1:]), File: v.engine.journal.SegmentName(p.Frame.Segment), Offset: p.Record, Problem: err.Error(),
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) tree(state view, b *structure.Block) error {
	if ok, err := state.NotErased(b.ID); err != nil || !ok {
		return err
	}
	h := content.NewHasher()
	if _, err := content.OpenTree(v.ctx, b.Tree, state.Chunks).WriteTo(h); err != nil {
		return err
	}
	if h.ID() != b.ID {
		return errors.New("body does not match its id")
	}
	return nil
}
