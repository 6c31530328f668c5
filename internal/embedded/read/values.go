package read

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// LatestValue returns the commit that last set or deleted a value, and its record, or 0 if
// there is none.
func LatestValue(state Scanner, key structure.ValueKey) (commit uint64, record []byte, err error) {
	prefix := keys.History(key)
	for e, err := range state.Scan(prefix, keys.PrefixEnd(prefix)) {
		if err != nil {
			return 0, nil, err
		}
		return keys.ValueCommit(e.Key), e.Value, nil
	}
	return 0, nil, nil
}

// ReadValue returns the value of an entry of keys.TableValue.
func ReadValue(e index.Entry) (backend.Value, error) {
	v, err := keys.Record[*structure.Value](structure.KindValue, e.Value, "")
	if err != nil {
		return backend.Value{}, err
	}
	return backend.Value{Value: *v, Commit: keys.ValueCommit(e.Key)}, nil
}

// Value implements backend.Reader.
func (v *View) Value(_ context.Context, key structure.ValueKey) (backend.Value, error) {
	var commit uint64
	var record []byte
	var err error
	if key.Owner.Valid() {
		commit, record, err = LatestValue(v.Index, key)
	}
	if err == nil && commit == 0 {
		err = &backend.SubjectError{Subject: structure.KindValue.String(), ID: key.Name(), Err: backend.ErrNotFound}
	}
	if err != nil {
		return backend.Value{}, err
	}
	return ReadValue(index.Entry{Key: keys.Value(key, commit), Value: record})
}

// Values implements backend.Reader.
func (v *View) Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[backend.Value, error] {
	return func(yield func(backend.Value, error) bool) {
		if !owner.Valid() || strings.IndexByte(prefix, 0) >= 0 {
			return // no key starts like that
		}
		from := append(keys.Owner(owner), prefix...)
		to := keys.PrefixEnd(from)
		if after, _, _ = strings.Cut(after, "\x00"); after != "" {
			behind := keys.PrefixEnd(keys.History(structure.ValueKey{Owner: owner, Key: after}))
			from = slices.MaxFunc([][]byte{from, behind}, bytes.Compare)
		}
		v.skipping(ctx, from, to, func(e index.Entry) ([]byte, bool) {
			value, err := ReadValue(e)
			return keys.PrefixEnd(e.Key[:len(e.Key)-8]), yield(value, err) && err == nil
		}, func(err error) { yield(backend.Value{}, err) })
	}
}

// skipping calls take with the first entry of a range, and then repeatedly with the first entry after the key that
// take returned. It stops when take returns false.
func (v *View) skipping(ctx context.Context, from, to []byte, take func(index.Entry) ([]byte, bool), fail func(error)) {
	for more := true; more; {
		more = false
		for e, err := range v.Index.Scan(from, to) {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				fail(err)
				return
			}
			from, more = take(e)
			break
		}
	}
}

// ValueHistory implements backend.Reader.
func (v *View) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return func(yield func(backend.Value, error) bool) {
		if !key.Owner.Valid() {
			return
		}
		for e, err := range v.Entries(ctx, keys.History(key)) {
			var was backend.Value
			if err == nil {
				was, err = ReadValue(e)
			}
			if !yield(was, err) || err != nil {
				return
			}
		}
	}
}

// ValueOwners implements backend.Reader.
func (v *View) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if scope != structure.ApplicationScope && scope != structure.UserScope {
			return
		}
		from := []byte{keys.TableValue, byte(scope)}
		to := keys.PrefixEnd(from)
		if after, _, _ = strings.Cut(after, "\x00"); after != "" {
			from = keys.PrefixEnd(keys.Owner(structure.Owner{Scope: scope, Name: after}))
		}
		v.skipping(ctx, from, to, func(e index.Entry) ([]byte, bool) {
			name := string(e.Key[2 : 2+bytes.IndexByte(e.Key[2:], 0)])
			return keys.PrefixEnd(keys.Owner(structure.Owner{Scope: scope, Name: name})), yield(name, nil)
		}, func(err error) { yield("", err) })
	}
}
