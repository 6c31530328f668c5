package place_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// present is a source that has the present state of each message, and a naive model of what the store then has: the
// versions of each id, the latest last, and messages without ids.
type present struct {
	*world
	ids    map[string][]placedAs
	others map[placedAs]structure.SpanRef
	all    []structure.SpanRef // that others may follow
}

// placedAs is a message of the model.
type placedAs struct {
	after structure.SpanRef
	text  string
	at    structure.SpanRef
	made  int64 // in milliseconds; it counts for messages without ids only
}

// stated is a message of the source. after is the index of a span of the model, -1 for the beginning of a history.
type stated struct {
	after    int
	id, text string
	made     int64
}

// rules compare texts in upper and lower case alike, as far as the store has them.
func (w *present) rules(fresh bool) place.Rules {
	return place.Rules{Fresh: fresh, Latest: true, ByContent: true, Same: func(m *place.Message, version *structure.Span) (bool, error) {
		blocks, err := w.writer.Engine().Blocks(ctx, []content.ID{version.Usages[0].Content})
		return err == nil && strings.EqualFold(string(blocks[0].Body), string(m.Contents[0].Block.Body)), err
	}}
}

func (w *present) place(t require.TestingT, messages []stated, rival func()) {
	var found []place.Match
	var after []structure.SpanRef
	known := w.all // of the state that the messages are drawn for
	var model present
	_, err := w.writer.Make(ctx, func(b *write.Batch, try write.Try) error {
		b.Places()
		state, err := w.writer.Engine().Snapshot(ctx)
		if err != nil {
			return err
		}
		defer state.Close()
		model = present{ids: maps.Clone(w.ids), others: maps.Clone(w.others)}
		placer := place.New(ctx, w.writer, state, b, make(place.Contents), w.thread, w.rules(try.Fresh))
		found, after = nil, nil
		for _, m := range messages {
			at := structure.SpanRef{}
			if m.after >= 0 {
				at = known[m.after]
			}
			got := message(key{id: m.id, text: m.text})
			got.Usages[0].CreatedAt = time.UnixMilli(m.made)
			f, err := placer.Place(at, got)
			if err != nil {
				return err
			}
			found, after = append(found, f), append(after, at)
		}
		if rival != nil {
			do := rival
			rival = nil
			do()
		}
		return nil
	})
	require.NoError(t, err)
	own := make(map[structure.SpanRef]bool) // the batch compares what it has itself by looks
	for i, m := range messages {
		got, want := placedAs{after: after[i], text: m.text}, place.Absent
		var at structure.SpanRef
		if m.id == "" {
			got.made = m.made
			if at = model.others[got]; !at.IsZero() {
				want = place.Known
			}
		} else if versions := model.ids[m.id]; len(versions) > 0 {
			latest := versions[len(versions)-1]
			same := latest.text == m.text || !own[latest.at] && strings.EqualFold(latest.text, m.text)
			switch want = place.Version; {
			case same && latest.after == got.after:
				want, at = place.Known, latest.at
			case same:
				want = place.Moved
			}
		}
		require.Equal(t, want, found[i].How, "%d: %+v of %+v", i, m, messages)
		if want == place.Known {
			require.Equal(t, at, found[i].Span)
			continue
		}
		at = found[i].Span
		if w.all, own[at] = append(w.all, at), true; m.id == "" {
			w.others[got], model.others[got] = at, at
		} else {
			got.at = at
			w.ids[m.id] = append(w.ids[m.id], got)
			model.ids[m.id] = append(slices.Clip(model.ids[m.id]), got)
		}
	}
}

// The ids of a source that has the present state lead to what it states last, and each state is added once.
func TestPresentState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &present{world: newWorld(t), ids: make(map[string][]placedAs), others: make(map[placedAs]structure.SpanRef)}
		defer w.writer.Engine().Close()
		draw := func(most int) (messages []stated) {
			for range rapid.IntRange(1, most).Draw(t, "messages") {
				messages = append(messages, stated{
					after: rapid.IntRange(-1, min(len(w.all), 12)-1).Draw(t, "after"),
					id:    rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "id"),
					text:  rapid.SampledFrom([]string{"a", "A", "b"}).Draw(t, "text"),
					made:  int64(rapid.IntRange(1, 2).Draw(t, "made")),
				})
			}
			return messages
		}
		for range rapid.IntRange(1, 12).Draw(t, "commits") {
			mine := draw(6)
			var rival func()
			if rapid.Bool().Draw(t, "has a rival") {
				theirs := append(draw(3), mine[:rapid.IntRange(0, len(mine)).Draw(t, "the same")]...)
				rival = func() { w.place(t, theirs, nil) }
			}
			w.place(t, mine, rival)
		}
		stats, err := w.writer.Engine().Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, len(w.all), stats.Spans)
		for id, versions := range w.ids {
			n := len(versions)
			for found, err := range w.writer.Engine().Find(ctx, id, w.thread.ID, backend.Found{}) {
				require.NoError(t, err)
				require.EqualValues(t, n, found.Lookup)
				n--
				require.Equal(t, versions[n].at, found.Span, "version %d of %s", n+1, id)
			}
			require.Zero(t, n)
		}
	})
}

// A span whose usages have several ids is found by each of them, also where it is added again.
func TestOtherIDs(t *testing.T) {
	w := newWorld(t)
	defer w.writer.Engine().Close()
	m := message(key{text: "first"})
	for _, id := range []string{"one", "two"} {
		u := message(key{id: id, text: id}).Usages[0]
		u.Lookup = 1
		m.Usages = append(m.Usages, u)
		m.Contents = append(m.Contents, message(key{text: id}).Contents...)
	}
	m.ID = "one"
	root := message(key{text: "root"})
	for n := range uint64(3) {
		_, err := w.writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
			placer := place.New(ctx, w.writer, w.writer.Engine(), b, make(place.Contents), w.thread, place.Rules{})
			f, err := placer.Place(structure.SpanRef{}, m)
			if err != nil || n == 0 {
				return err
			}
			require.True(t, f.How.Has())
			after, err := placer.Place(f.Span, root)
			if err != nil {
				return err
			}
			if f, err = placer.Place(after.Span, m); n == 1 {
				require.Equal(t, place.Moved, f.How)
			} else {
				require.Equal(t, place.Known, f.How)
			}
			return err
		})
		require.NoError(t, err)
		for _, id := range []string{"one", "two"} {
			found, err := backend.FindFirst(ctx, w.writer.Engine(), id, w.thread.ID)
			require.NoError(t, err)
			require.EqualValues(t, min(n+1, 2), found.Lookup, id)
		}
	}
}
