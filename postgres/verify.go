package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Verify implements backend.Engine. It reads the log from the start and checks the order of the rows
// and their checksums. Deep makes the entries again from the log, in a temporary directory, and compares them with those
// of the server; then it reads every chunked body.
func (e *Engine) Verify(ctx context.Context, o backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return func(yield func(backend.Finding, error) bool) {
		var err error
		for range mostRetries {
			v := verifier{engine: e, o: o, yield: yield}
			if err = v.run(ctx); errors.Is(err, errStopped) || err == nil {
				return
			}
			if v.found || !errors.Is(err, errDiverged) && !errors.Is(err, backend.ErrExpired) { // else it begins again
				break
			}
		}
		yield(backend.Finding{}, e.ended(err))
	}
}

// errStopped ends a verification whose caller stopped iterating.
var errStopped = errors.New("stopped")

type verifier struct {
	engine *Engine
	o      backend.VerifyOptions
	yield  func(backend.Finding, error) bool
	found  bool

	damaged map[string]string // what is damaged in lineage_entry, by key
	waiting []string          // keys of that which were not reported
}

func (v *verifier) report(f backend.Finding) error {
	v.found = true
	if !v.yield(f, nil) {
		return errStopped
	}
	return nil
}

func (v *verifier) run(ctx context.Context) error {
	t, err := v.engine.latest(ctx, need{})
	if err != nil {
		return err
	}
	pending, err := v.engine.log.collected(ctx)
	if err != nil {
		return err
	}
	var damage *backend.CorruptError
	if err = v.log(ctx, pending, t.state.Number); err == nil && v.o.Deep {
		err = v.rebuildEntries(ctx, pending, t)
	}
	if errors.As(err, &damage) { // what follows cannot be judged
		return v.report(backend.Finding{Subject: "journal", File: damage.File, Problem: damage.What})
	}
	return err
}

// log checks the rows of the log up to a commit.
func (v *verifier) log(ctx context.Context, pending collected, last uint64) error {
	at := head{epoch: pending.epoch}
	for more := true; more; {
		var rows []logRow
		var err error
		rows, more, err = v.engine.log.longTail(ctx, at)
		for i := 0; err == nil && i < len(rows); i++ {
			if err = checkRow(&rows[i], pending.live); err == nil {
				at = at.after(&rows[i])
			}
		}
		if err != nil {
			return err
		}
		if v.o.Progress != nil {
			v.o.Progress(int64(at.Number), int64(max(last, at.Number)))
		}
	}
	if at.Number < last {
		return &backend.CorruptError{File: "the log", What: fmt.Sprintf("it ends with commit %d, but the entries account for commit %d", at.Number, last)}
	}
	return nil
}

func checkRow(r *logRow, filter *live.Set) error {
	commits, _, err := r.remaining(filter, nil)
	for i := 0; err == nil && i < len(commits); i++ {
		_, err = decode(&commits[i])
	}
	return err
}

// rebuildEntries makes the entries of a state from the log, in a temporary index, and compares them with those of the server.
func (v *verifier) rebuildEntries(ctx context.Context, pending collected, t *stateReader) error {
	dir, err := scratch.New()
	if err != nil {
		return err
	}
	defer dir.Remove() //nolint:errcheck // another process will
	db, err := index.Open(filepath.Join(dir.Path, "index.bolt"), index.Options{})
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it is removed
	rebuilt := &temporary{engine: v.engine, db: db, epoch: pending.epoch}
	f := newFilling(v.engine.log, pending.epoch, pending.epoch, pending.live, rebuilt)
	err = v.checkLatest(ctx, t, []byte{0}, func(t *stateReader, from []byte) ([]byte, error) {
		if err := v.fill(ctx, f, t.state); err != nil {
			return from, err
		}
		if rebuilt.state.counts != t.state.counts {
			if err := v.report(backend.Finding{Subject: "index", File: "lineage_head", Problem: "its counts differ from the log"}); err != nil {
				return from, err
			}
		}
		return v.compare(t, db, from)
	})
	if err != nil {
		return err
	}
	return v.checkLatest(ctx, t, keys.Of(keys.TableBlock), func(t *stateReader, from []byte) ([]byte, error) { return v.trees(ctx, t, from) })
}

// fill makes the entries of a state from the log.
func (v *verifier) fill(ctx context.Context, f *filling, st state) error {
	err := f.fillTo(ctx, st.Number, nil)
	if err == nil && f.at.Number != st.Number {
		err = fmt.Errorf("the entries account for commit %d, which does not end a row: %w", st.Number, backend.ErrCorrupt)
	}
	return err
}

// checkLatest calls check, which checks the entries of a state from a key on and returns how far it came. When the state
// expires, the check continues in the latest one.
func (v *verifier) checkLatest(ctx context.Context, t *stateReader, from []byte, check func(t *stateReader, from []byte) ([]byte, error)) error {
	for {
		next, err := check(t, from)
		if !errors.Is(err, backend.ErrExpired) {
			return err
		}
		later, failed := v.engine.latest(ctx, need{})
		if failed != nil {
			return failed
		}
		if later.state.epoch != t.state.epoch || later.state.head == t.state.head { // verification begins again
			return err
		}
		t, from = later, next
	}
}

// compare compares the entries of the server with those in a temporary index, from a key on. It returns how far it came.
func (v *verifier) compare(t *stateReader, db *index.DB, from []byte) ([]byte, error) {
	s := db.Snapshot()
	defer s.Close()
	changed := make(map[structure.ThreadID]bool)
	for _, id := range read.ChangedThreads(t.Changed) {
		changed[id] = true
	}
	served := func(yield func(index.Entry, error) bool) {
		for e, err := range t.all(from) {
			if !yield(e, err) {
				return
			}
			from = append(bytes.Clone(e.Key), 0) // compared, when the next is asked for
		}
	}
	t.damaged = v.damage
	for d, err := range index.Differences(served, s.Scan(from, nil)) {
		if err := v.reportDamage(d.Key); err != nil {
			return from, err
		}
		if err != nil {
			return from, err
		}
		if problem := v.problem(d, changed); problem != "" {
			if err := v.reportEntry(d.Key, problem); err != nil {
				return from, err
			}
		}
	}
	return from, v.reportDamage(nil)
}

// problem returns what is wrong with an entry that differs, or nothing if it may differ or was reported. changed has the threads
// whose listing changes with the next fold.
func (v *verifier) problem(d index.Difference, changed map[structure.ThreadID]bool) string {
	switch {
	case d.Key[0] == keys.TableRequests: // sessions are forgotten by another rule
		return ""
	case d.Key[0] == keys.TableThreadByTime && len(d.Key) == keys.OrderKeySize && changed[keys.OrderPosition(d.Key).Thread]:
		return ""
	case d.New && v.damaged[string(storedKey(d.Key))] != "":
		return ""
	case d.Gone:
		return "entry that the log does not account for"
	case d.New:
		return "entry is missing"
	}
	return "entry differs from the log"
}

func (v *verifier) reportEntry(key []byte, problem string) error {
	return v.report(backend.Finding{Subject: "index", File: "lineage_entry", ID: fmt.Sprintf("%c:%x", key[0], key[1:]), Problem: problem})
}

// damage takes what is damaged in lineage_entry.
func (v *verifier) damage(key []byte, what string) {
	if v.damaged == nil {
		v.damaged = make(map[string]string)
	}
	if v.damaged[string(key)] == "" {
		v.damaged[string(key)], v.waiting = what, append(v.waiting, string(key))
	}
}

// reportDamage reports damage up to a key; nil for all.
func (v *verifier) reportDamage(upTo []byte) error {
	slices.Sort(v.waiting)
	for len(v.waiting) > 0 && (upTo == nil || v.waiting[0] <= string(upTo)) {
		key := v.waiting[0]
		v.waiting = v.waiting[1:]
		if err := v.reportEntry([]byte(key), v.damaged[key]+" is damaged"); err != nil {
			return err
		}
	}
	return nil
}

// all yields all entries from a key on.
func (t *stateReader) all(from []byte) iter.Seq2[index.Entry, error] {
	stored := func(yield func(index.Entry, error) bool) {
		for from := from; from != nil; {
			entries, next, err := t.page(from, nil, 4*fullPage)
			if err != nil {
				yield(index.Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			from = next
		}
	}
	return merged(stored, func() sorted { return &list{t.state.unfolded.between(from, nil)} }, nil)
}

// trees reads every chunked body from a block on and compares it with its id. It returns how far it came.
func (v *verifier) trees(ctx context.Context, t *stateReader, from []byte) ([]byte, error) {
	view := t.view()
	for e, err := range t.stored(from, keys.PrefixEnd(keys.Of(keys.TableBlock))) {
		if err != nil {
			return from, err
		}
		p, err := keys.ReadLocation(e.Value)
		if err != nil {
			return from, err
		}
		if p.Size > content.InlineLimit {
			err := checkBody(ctx, t, view, p, e.Key)
			if ctx.Err() != nil {
				return from, context.Cause(ctx) // also if the body was right: others were not checked
			}
			if errors.Is(err, backend.ErrExpired) {
				return from, err
			}
			if err != nil {
				if err := v.report(backend.Finding{Subject: "block", ID: fmt.Sprintf("%x…", e.Key[1:]), File: t.FileOf(p.Frame), Problem: err.Error()}); err != nil {
					return from, err
				}
			}
		}
		from = append(bytes.Clone(e.Key), 0)
	}
	return from, nil
}

// checkBody reads the body of the block with a key, if it is chunked.
func checkBody(ctx context.Context, t *stateReader, view *read.View, p keys.Location, key []byte) error {
	record, err := (&commitReader{t: t}).object(p.Frame, key)
	if err != nil {
		return err
	}
	if b, ok := record.(*structure.Block); ok && b.Tree.Size > 0 {
		return checkTree(ctx, view, b)
	}
	return nil
}

func checkTree(ctx context.Context, view *read.View, b *structure.Block) error {
	if ok, err := view.NotErased(b.ID); err != nil || !ok {
		return err
	}
	h := content.NewHasher()
	if _, err := content.OpenTree(ctx, b.Tree, view.Chunks).WriteTo(h); err != nil {
		return err
	}
	if h.ID() != b.ID {
		return errors.New("body does not match its id")
	}
	return nil
}
