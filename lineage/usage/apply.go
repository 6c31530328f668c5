package usage

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage/prices"
	"github.com/lineage-store/lineage/structure"
)

// applier returns a function that applies the windows of an update, each in one transaction: it adds the answers in the
// commits' spans, and then the state of the changed subjects.
func applier(starts []int64) func(context.Context, *derived.Window[*sql.Tx]) error {
	return func(ctx context.Context, w *derived.Window[*sql.Tx]) error {
		return w.Finish(ctx, func(tx *sql.Tx) error {
			seen, err := derivedfile.NewWriter(ctx, w, tx)
			if err != nil {
				return err
			}
			f := &writer{
				Writer: seen, forms: form.NewReader(w.State), models: make(map[modelName]int64), reaches: make(map[int64]int64), sessions: make(map[structure.ThreadID]string),
				counters: make(map[int64][]counter), totals: make(map[totalKey]*sums), starts: starts,
			}
			seen.Reached = f.reached
			if err := f.keepStarts(ctx); err != nil {
				return err
			}
			if err := f.Add(ctx, w.Commits, f.addSpan); err != nil {
				return err
			}
			if err := f.storeCounters(ctx); err != nil {
				return err
			}
			if err := f.keep(ctx); err != nil {
				return err
			}
			if err := f.settle(ctx); err != nil {
				return err
			}
			return f.addTotals(ctx)
		})
	}
}

// writer applies a window in a transaction.
type writer struct {
	*derivedfile.Writer
	forms *form.Reader

	pending  []sighting              // sightings to store
	ofRun    map[int64][]*sighting   // the window's sightings of a run, in order
	fresh    map[answerKey]*sighting // the last ones with a key that no earlier window has
	added    []*sighting             // those at positions that are visible already
	reaches  map[int64]int64         // the last visible step of a run
	models   map[modelName]int64
	sessions map[structure.ThreadID]string
	counters map[int64][]counter // of a run, in order: those that the window adds
	totals   map[totalKey]*sums  // changes of the totals
	starts   []int64
	firstRow int64 // the number of the first row of sightings that the window adds
}

type modelName struct{ name, provider, tier string }

// keepStarts refuses data whose totals are split at other amounts of input.
func (f *writer) keepStarts(ctx context.Context) error {
	i, different := 0, false
	err := f.Each(ctx, func(scan func(...any) error) error {
		var start int64
		err := scan(&start)
		different = different || i >= len(f.starts) || f.starts[i] != start
		i++
		return err
	}, `SELECT start FROM starts ORDER BY start`)
	switch {
	case err != nil || i > 0 && !different && i == len(f.starts):
		return err
	case i > 0:
		return fmt.Errorf("prices change at other amounts of input: %w", derivedfile.ErrUseless)
	}
	for _, start := range f.starts {
		if err := f.Exec(ctx, `INSERT INTO starts VALUES (?)`, start); err != nil {
			return err
		}
	}
	return nil
}

// maxBody is the maximum size in bytes of a body that is read for usage, without its texts.
const maxBody = 1 << 20

// addSpan adds the answers that the messages of a span state.
func (f *writer) addSpan(ctx context.Context, s *structure.Span, blocks map[content.ID]*structure.Block) error {
	part := 0
	for i := 0; i < len(s.Usages); i = form.End(s.Usages, i) {
		u := &s.Usages[i]
		if u.Kind != structure.MessageUsage || !message.MayStateUsage(u.Role) || u.Opaque {
			continue
		}
		record, created, err := f.record(ctx, s, i, blocks)
		if err != nil {
			return err
		}
		if !message.MentionsUsage(record.Body) && !message.MentionsUsage(record.Metadata) {
			continue
		}
		for _, a := range message.Usage(record) {
			if err := f.sight(ctx, s, u, part, created, &a); err != nil {
				return err
			}
			part++
		}
	}
	return nil
}

// record returns a message without its texts, and its creation time.
func (f *writer) record(ctx context.Context, s *structure.Span, i int, blocks map[content.ID]*structure.Block) (r message.Record, created time.Time, err error) {
	u := &s.Usages[i]
	r = message.Record{Role: u.Role, Model: u.By.ModelID}
	if r.Body, r.Metadata, err = f.forms.Stated(ctx, s.Usages, i, blocks, maxBody); err != nil {
		return r, created, err
	}
	if created = u.CreatedAt; created.IsZero() {
		b, err := f.forms.Block(ctx, u.Content, blocks)
		if err != nil {
			return r, created, err
		}
		created = b.CreatedAt
	}
	return r, created, nil
}

// sight adds an answer stated by a span.
func (f *writer) sight(ctx context.Context, s *structure.Span, u *structure.Usage, part int, created time.Time, a *message.Answer) error {
	run, err := f.RunNumber(ctx, s.Ref.Run)
	if err != nil {
		return err
	}
	key, keyed := answerKey{}, true
	if a.Total != nil {
		differs, err := f.count(ctx, run, s.Ref.Seq, a)
		if err != nil || !differs {
			return err
		}
	}
	switch {
	case a.ID != "":
		key = keyOf("answer", a.ID)
	case a.Total != nil:
		session, err := f.session(ctx, s.Ref.Run)
		if err != nil {
			return err
		}
		key = keyOf("counter", session, string(encode(nil, a.Total)))
	case u.SourceID != "":
		home, err := f.Home(ctx, s.Ref.Run)
		if err != nil {
			return err
		}
		if keyed = home != (structure.Home{}); keyed {
			key = keyOf("message", home.Thread.String(), fmt.Sprint(home.Incarnation, part), u.SourceID)
		}
	default:
		keyed = false
	}
	model, err := f.model(ctx, modelName{clean(a.Model), clean(a.Provider), clean(a.Tier)})
	if err != nil {
		return err
	}
	cost, costs := int64(0), 0
	if stated, ok := stated(a.Cost); ok {
		cost, costs = stated, 1
	}
	at := int64(-1)
	if !created.IsZero() {
		at = max(created.UnixMilli(), 0)
	}
	f.pending = append(f.pending, sighting{
		key: key, keyed: keyed, run: run, seq: int64(s.Ref.Seq), part: int64(part), time: at,
		figures: figures{model, a.Tokens.Known(), sums{1, a.Requests, a.Covers, a.Tokens.Array(), cost, int64(costs)}},
	})
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

// counter is the counter of a session at a step of a run.
type counter struct {
	seq   int64
	total *message.Tokens
}

// lastBefore returns the last of some counters before a step, or nil.
func lastBefore(all []counter, seq int64) *message.Tokens {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].seq < seq {
			return all[i].total
		}
	}
	return nil
}

// counter returns the last counter before a position, or nil. Of several in one span, the last one is before the next.
func (f *writer) counter(ctx context.Context, run int64, seq uint64) (*message.Tokens, error) {
	if of := f.counters[run]; len(of) > 0 {
		return of[len(of)-1].total, nil
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
		for some := range slices.Chunk(all, perRow) {
			if err := f.Exec(ctx, `INSERT OR IGNORE INTO counters VALUES (?, ?, ?)`, run, some[0].seq, appendCounters(nil, some)); err != nil {
				return err
			}
		}
	}
	return nil
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

// encode appends tokens.
func encode(b []byte, t *message.Tokens) []byte {
	b = append(b, t.Known())
	for _, n := range t.Array() {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// decodeCounters returns the counters of a row, given the step of the first one.
func decodeCounters(first int64, b []byte) (all []counter, err error) {
	r := varint.Reader{Rest: b}
	for seq := first; len(r.Rest) > 0; {
		seq += int64(r.Next())
		var of [message.TokenKinds]int64
		known := r.Take(1)
		for k := range of {
			of[k] = int64(r.Next())
		}
		if r.Bad {
			return nil, fmt.Errorf("counters from %d on: %w", first, derivedfile.ErrUseless)
		}
		t := message.MakeTokens(of, known[0])
		all = append(all, counter{seq, &t})
	}
	return all, nil
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

// keyOf returns the key of an answer.
func keyOf(parts ...string) answerKey {
	b := make([]byte, 0, 192)
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(p))), p...)
	}
	sum := sha256.Sum256(b)
	return answerKey(sum[:len(answerKey{})])
}

// maxName is the maximum length of a model's name in bytes.
const maxName = 256

// clean returns a name for reports.
func clean(name string) string {
	name = string(bytes.ToValidUTF8([]byte(name), []byte("\ufffd")))
	if len(name) > maxName {
		name = string(bytes.ToValidUTF8([]byte(name[:maxName]), nil))
	}
	return name
}

// maxStated is the largest plausible cost of an answer, in 10^-12 dollars.
const maxStated = 1_000_000_000_000_000

// stated parses a cost and returns it in 10^-12 dollars.
func stated(decimal string) (int64, bool) {
	if decimal == "" {
		return 0, false
	}
	m, err := prices.ParseMoney(decimal)
	if err != nil {
		return 0, false
	}
	n, ok := m.Pico()
	return n, ok && n <= maxStated
}

// model returns the number of a model, adding it if necessary.
func (f *writer) model(ctx context.Context, m modelName) (n int64, err error) {
	if n, known := f.models[m]; known {
		return n, nil
	}
	args := []any{m.name, m.provider, m.tier}
	if err := f.Exec(ctx, `INSERT OR IGNORE INTO models (name, provider, tier) VALUES (?, ?, ?)`, args...); err != nil {
		return 0, err
	}
	if _, err := f.Get(ctx, `SELECT number FROM models WHERE name = ? AND provider = ? AND tier = ?`, args, &n); err != nil {
		return 0, err
	}
	f.models[m] = n
	return n, nil
}
