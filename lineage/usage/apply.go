package usage

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage/prices"
	"github.com/lineage-store/lineage/structure"
)

// applier returns a function that applies the windows of an update, each in one transaction: it adds the answers in the
// commits' spans, and then the state of the changed subjects.
func applier(starts []int64) func(context.Context, *derived.Window[*sql.Tx]) error {
	var known knownKeys
	return func(ctx context.Context, w *derived.Window[*sql.Tx]) error {
		known.begin(w.Fresh, w.From.Number == 0)
		return w.Finish(ctx, func(tx *sql.Tx) error {
			seen, err := derivedfile.NewWriter(ctx, w, tx)
			if err != nil {
				return err
			}
			f := &writer{
				Writer: seen, forms: form.NewReader(w.State), models: make(map[modelName]int64), reaches: make(map[int64]int64), sessions: make(map[structure.ThreadID]string),
				counters: make(map[int64]*message.Tokens), totals: make(map[totalKey]*sums), starts: starts, known: &known,
			}
			seen.Reached, f.first = f.reached, w.From.Number == 0
			if err := f.keepStarts(ctx); err != nil {
				return err
			}
			if err := f.Add(ctx, w.Commits, f.addSpan); err != nil {
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

	first    bool                    // no window was applied before this one
	pending  []sighting              // sightings to store
	ofRun    map[int64][]*sighting   // the window's sightings, in order
	fresh    map[answerKey]*sighting // the last ones with a key that no earlier window has
	added    []*sighting             // those at positions that are visible already
	reaches  map[int64]int64         // the last visible step of a run
	models   map[modelName]int64
	sessions map[structure.ThreadID]string
	counters map[int64]*message.Tokens // the last counter of a run
	totals   map[totalKey]*sums        // changes of the totals
	starts   []int64
	known    *knownKeys
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
		is, err := f.count(ctx, run, s.Ref.Seq, a)
		if err != nil || !is {
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
		key = keyOf("counter", session, string(encode(a.Total)))
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
func (f *writer) count(ctx context.Context, run int64, seq uint64, a *message.Answer) (is bool, err error) {
	before, err := f.counter(ctx, run, seq)
	if err != nil {
		return false, err
	}
	f.counters[run] = a.Total
	if err := f.Exec(ctx, `INSERT OR IGNORE INTO counters VALUES (?, ?, ?)`, run, int64(seq), encode(a.Total)); err != nil {
		return false, err
	}
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

// counter returns the last counter before a position, or nil.
func (f *writer) counter(ctx context.Context, run int64, seq uint64) (*message.Tokens, error) {
	if t, known := f.counters[run]; known {
		return t, nil
	}
	for at := int64(seq); run > 0; {
		var b []byte
		is, err := f.Get(ctx, `SELECT total FROM counters WHERE run = ? AND seq < ? ORDER BY seq DESC LIMIT 1`, []any{run, at}, &b)
		if err != nil {
			return nil, err
		}
		if is {
			return decode(b)
		}
		if is, err = f.Get(ctx, `SELECT parent, after + 1 FROM runs WHERE number = ?`, []any{run}, &run, &at); err != nil || !is {
			return nil, err
		}
	}
	return nil, nil
}

func encode(t *message.Tokens) []byte {
	b := []byte{t.Known()}
	for _, n := range t.Array() {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

func decode(b []byte) (*message.Tokens, error) {
	var of [message.TokenKinds]int64
	if len(b) == 0 {
		return nil, fmt.Errorf("a counter: %w", derivedfile.ErrUseless)
	}
	rest := b[1:]
	for k := range of {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return nil, fmt.Errorf("a counter: %w", derivedfile.ErrUseless)
		}
		of[k], rest = int64(n), rest[size:]
	}
	t := message.MakeTokens(of, b[0])
	return &t, nil
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
	t, err := f.Snapshot.Thread(ctx, home.Thread)
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
