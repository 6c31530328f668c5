package usage

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/message"
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
