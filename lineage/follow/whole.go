package follow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// maxWhole is the size in bytes of the largest file that is recorded as a whole.
const maxWhole = 256 << 20

// recordWhole records a session file that was imported as a whole, so that it can be restored byte for byte. A file
// that has changed since is imported again. again is set if another process recorded it meanwhile.
func (r *run) recordWhole(ctx context.Context, f *file, t *taking) (again bool, err error) {
	ending := filepath.Ext(f.path)
	if f.folder.agent.Name == "" || len(t.ids) != 1 || len(t.stored) != 1 || ending != ".json" && ending != ".jsonl" || f.now.size > maxWhole {
		return false, nil
	}
	raw, err := vfs.ReadFile(f.path, maxWhole)
	if err != nil || int64(len(raw)) != f.now.size {
		return false, err
	}
	found, sum, err := r.recorded(ctx, f, bytes.NewReader(raw), f.now)
	if err != nil || sum != nil && found.Recorded.Bytes == f.now.size {
		return false, err
	}
	known, rest := found, raw
	if sum != nil && ending == ".jsonl" && raw[found.Recorded.Bytes-1] == '\n' {
		rest = raw[found.Recorded.Bytes:]
	} else {
		known, sum = nil, sha256.New()
	}
	recorder := record(r.store, r.options.Machine, r.sourceOf(f), known, sum)
	if known == nil && found != nil {
		switch again, err := recordAgain(ctx, r.store, r.options.Machine, r.sourceOf(f), found); {
		case err == nil:
			recorder = again
		case errors.Is(err, lineage.ErrErased):
			return false, nil
		case errors.Is(err, lineage.ErrCorrupt), errors.Is(err, lineage.ErrNotFound):
			recorder.was = found.tip // it starts afresh
		default:
			return false, err
		}
	}
	recorder.seen, recorder.whole = true, true
	for part := range parts(rest, ending == ".jsonl") {
		recorder.add(ctx, t.ids[0], t.branchOf(t.ids[0]), []importer.Line{{RawLine: archive.RawLine{Raw: part}}})
	}
	if err = recorder.flush(ctx); isOvertaken(err) {
		return true, nil
	}
	return false, err
}

// isOvertaken reports whether an error means that another process recorded the file.
func isOvertaken(err error) bool {
	return errors.Is(err, lineage.ErrConflict) || errors.Is(err, lineage.ErrExists) || errors.Is(err, lineage.ErrNotFound)
}

// How a file that is not read by lines is split. A value larger than partSize bytes is split into its members or
// elements if their average size is at least leastPart, down to a depth of partLevels.
const (
	partSize   = 16 << 10
	leastPart  = 64
	partLevels = 8
)

// parts splits a file: into JSON values, whose texts are stored once with those of messages, and the bytes between
// them. A file that is not JSON is split into lines.
func parts(raw []byte, lines bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !lines && rawjson.Valid(raw) {
			at := rawjson.SkipSpace(raw, 0)
			divide(raw, at, rawjson.ValueEnd(raw, at), yield)
			return
		}
		for line := range bytes.Lines(raw) {
			if value := bytes.TrimSpace(line); len(value) <= partSize || !rawjson.Valid(value) {
				if !yield(line) {
					return
				}
			} else if at := bytes.IndexByte(line, value[0]); !divide(line, at, at+len(value), yield) {
				return
			}
		}
	}
}

// divide yields raw in parts. Large members of the value from from to to, at any depth, are parts of their own.
func divide(raw []byte, from, to int, yield func([]byte) bool) bool {
	done := 0
	var visit func(from, to, level int) bool
	visit = func(from, to, level int) bool {
		v := raw[from:to]
		var inner [][2]int
		switch {
		case len(v) <= partSize || level == partLevels:
		case v[0] == '{':
			for m := range rawjson.Members(v) {
				inner = append(inner, [2]int{from + m.At, from + m.At + len(m.Value)})
			}
		case v[0] == '[':
			for at, e := range rawjson.ElementsAt(v) {
				inner = append(inner, [2]int{from + at, from + at + len(e)})
			}
		}
		if len(inner) > 0 && len(v)/len(inner) >= leastPart {
			for _, of := range inner {
				if !visit(of[0], of[1], level+1) {
					return false
				}
			}
			return true
		}
		if from > done && !yield(raw[done:from]) {
			return false
		}
		done = to
		return yield(v)
	}
	return visit(from, to, 0) && (done == len(raw) || yield(raw[done:]))
}

// ForgetDeleted deletes the recorded session files of deleted threads, so that a collection can remove them. It
// returns their number.
func ForgetDeleted(ctx context.Context, store *lineage.Store) (n int, err error) {
	var gone []*Source
	for s, err := range Sources(ctx, store) {
		if err != nil && !errors.Is(err, lineage.ErrCorrupt) {
			return 0, err
		}
		if s == nil {
			continue // damaged sources stay
		}
		switch err := s.Recorded.lookUp(ctx, store); {
		case errors.Is(err, lineage.ErrNotFound):
			gone = append(gone, s)
		case err != nil:
			return 0, err
		}
	}
	for _, s := range gone {
		deleted := false
		err := store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
			deleted = false
			// Another process may have stored the session and its file again.
			if err := s.Recorded.lookUp(ctx, tx.Store); !errors.Is(err, lineage.ErrNotFound) {
				return err
			}
			c, err := tx.Context(ctx, s.Context)
			if err != nil {
				return err
			}
			if tip, err := c.Tip(ctx); err != nil || tip != s.tip {
				return err
			}
			deleted = true
			return c.Delete(ctx)
		})
		switch {
		case err == nil && deleted:
			n++
		case err != nil && !errors.Is(err, lineage.ErrNotFound):
			return n, err
		}
	}
	return n, nil
}
