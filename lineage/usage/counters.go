package usage

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/structure"
)

// lastBefore returns the last of some counters before a step, or nil.
func lastBefore(all []counter, seq int64) *message.Tokens {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].seq < seq {
			return all[i].total
		}
	}
	return nil
}

// count computes the tokens of an answer from its counter and the one before it in the history. It returns false if
// they are equal.
func (f *writer) count(ctx context.Context, run int64, seq uint64, a *message.Answer) (differs bool, err error) {
	before, err := f.counter(ctx, run, seq)
	if err != nil {
		return false, err
	}
	f.counters[run] = append(f.counters[run], counter{int64(seq), a.Total})
	switch {
	case before == nil && !a.LastStated:
		a.Tokens = *a.Total
	case before != nil:
		since, ok := a.Total.Since(before)
		if ok && since.Array() == [message.TokenKinds]int64{} {
			return false, nil
		}
		if ok || !a.LastStated {
			if a.Tokens = since; !ok {
				a.Tokens = *a.Total
			}
		}
	}
	return a.Tokens.Array() != [message.TokenKinds]int64{}, nil
}

// counter returns the last counter before a position, or nil. Of several in one span, the last one is before the next.
func (f *writer) counter(ctx context.Context, run int64, seq uint64) (*message.Tokens, error) {
	if all := f.counters[run]; len(all) > 0 {
		return all[len(all)-1].total, nil
	}
	for at := int64(seq); run > 0; {
		if total := lastBefore(f.counters[run], at); total != nil {
			return total, nil
		}
		var first int64
		var b []byte
		found, err := f.Get(ctx, `SELECT first, totals FROM counters WHERE run = ? AND first < ? ORDER BY first DESC LIMIT 1`, []any{run, at}, &first, &b)
		if err != nil {
			return nil, err
		}
		if found {
			all, err := decodeCounters(first, b)
			return lastBefore(all, at), err
		}
		if found, err = f.Get(ctx, `SELECT parent, after + 1 FROM runs WHERE number = ?`, []any{run}, &run, &at); err != nil || !found {
			return nil, err
		}
	}
	return nil, nil
}

// storeCounters stores the window's counters.
func (f *writer) storeCounters(ctx context.Context) error {
	for run, all := range f.counters {
		for batch := range slices.Chunk(all, perRow) {
			if err := f.Exec(ctx, `INSERT OR IGNORE INTO counters VALUES (?, ?, ?)`, run, batch[0].seq, appendCounters(nil, batch)); err != nil {
				return err
			}
		}
	}
	return nil
}

// session returns the id under which counters are compared: that of the first session of those that were copied from one another,
// whose counters they repeat, or else its own.
func (f *writer) session(ctx context.Context, run structure.RunID) (string, error) {
	home, err := f.Home(ctx, run)
	if err != nil {
		return "", err
	}
	if id, known := f.sessions[home.Thread]; known {
		return id, nil
	}
	id := home.Thread.String()
	t, err := f.Thread(ctx, home.Thread)
	switch {
	case err == nil:
		if t.SourceID != "" {
			id = t.UserID + "\x00" + t.SourceID
		}
		if rawjson.Valid(t.Metadata) {
			from := rawjson.Str(rawjson.Get(t.Metadata, archive.KeyCopiedFrom))
			if from = cmp.Or(from, rawjson.Str(rawjson.Get(t.Metadata, "forked_from_id"))); from != "" {
				id = t.UserID + "\x00" + from
			}
		}
	case !derivedfile.IsGone(err):
		return "", err
	}
	f.sessions[home.Thread] = id
	return id, nil
}

// appendCounters appends counters of a run, in order.
func appendCounters(b []byte, all []counter) []byte {
	before := all[0].seq
	for _, c := range all {
		b = binary.AppendUvarint(b, uint64(c.seq-before))
		b = encode(b, c.total)
		before = c.seq
	}
	return b
}

// decodeCounters returns the counters of a row, given the step of the first one.
func decodeCounters(first int64, b []byte) (all []counter, err error) {
	r := varint.Reader{Rest: b}
	for seq := first; len(r.Rest) > 0; {
		seq += int64(r.Next())
		var counts [message.TokenKinds]int64
		known := r.Take(1)
		for k := range counts {
			counts[k] = int64(r.Next())
		}
		if r.Bad {
			return nil, fmt.Errorf("counters from %d on: %w", first, derivedfile.ErrUseless)
		}
		t := message.MakeTokens(counts, known[0])
		all = append(all, counter{seq, &t})
	}
	return all, nil
}

// encode appends tokens.
func encode(b []byte, t *message.Tokens) []byte {
	b = append(b, t.Known())
	for _, n := range t.Array() {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}
