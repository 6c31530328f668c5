package refs

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/structure"
)

func TestNamesAreFoundAndStepsTaken(t *testing.T) {
	ctx, store := t.Context(), lineagetest.New(t, lineage.Options{})
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "trip", Title: "A trip"})
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	spans, err := main.Extend(ctx, lineage.User("1"), lineage.User("2"), lineage.User("3").WithID("msg-3"))
	require.NoError(t, err)
	_, err = thread.SetCheckpoint(ctx, "start", lineage.CheckpointOptions{At: spans[0]})
	require.NoError(t, err)
	// Names may look like steps, and like each other.
	odd, err := thread.CreateBranch(ctx, "v1.0~2", lineage.BranchOptions{From: main, At: spans[1]})
	require.NoError(t, err)
	r := New(store, thread)
	for name, want := range map[string]lineage.SpanRef{
		"": spans[2], "@": spans[2], "main": spans[2], "main~": spans[1], "main~2": spans[0], "@{1}": spans[1], "~1": spans[1],
		":1": spans[0], "main:2": spans[1], "main~1~1": spans[0], "main:3~1": spans[1], "main~3": {}, "start": spans[0],
		"msg-3": spans[2], "msg-3~1": spans[1], "v1.0~2": spans[1], "v1.0~2~1": spans[0], "trip": spans[2], "trip/start": spans[0],
		"a trip/main~1": spans[1], main.ID().String(): spans[2], Short(main.ID()) + "~1": spans[1],
		spans[1].String(): spans[1], ShortSpan(spans[1]): spans[1], ShortSpan(spans[1]) + "~1": spans[0],
		Short(thread.ID()): spans[2], Short(odd.ID()): spans[1],
	} {
		found, err := r.Find(ctx, name)
		require.NoError(t, err, name)
		require.Equal(t, want, found.Span, name)
	}
	require.NoError(t, main.MoveTo(ctx, spans[0], "rewind"))
	found, err := r.Find(ctx, "main@{-1}")
	require.NoError(t, err)
	require.Equal(t, spans[2], found.Span)

	for _, name := range []string{"nobody", "main~4", "main:9", "main@{-2}", "main@{x}", "main~x", "trip/none", "~~", "@{", "f00f/1", "ffffffff/1", "start@{-1}"} {
		_, err := r.Find(ctx, name)
		require.Error(t, err, name)
	}
	_, err = r.Context(ctx, "start")
	require.ErrorIs(t, err, lineage.ErrInvalid)
	_, err = New(store, nil).Find(ctx, "")
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

func TestWhatIsUnknownOrAmbiguousIsAnsweredWithWhatWasClose(t *testing.T) {
	ctx, store := t.Context(), lineagetest.New(t, lineage.Options{})
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "trip"})
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	for range 9 {
		_, err := main.Fork(ctx, lineage.ForkOptions{})
		require.NoError(t, err)
	}
	_, err = thread.CreateBranch(ctx, "experiment", lineage.BranchOptions{})
	require.NoError(t, err)
	r := New(store, thread)

	var unknown *UnknownError
	_, err = r.Find(ctx, "experimnet~2")
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, []string{"experiment"}, unknown.Near)
	require.Equal(t, `did you mean "experiment"?`, unknown.Hint())

	// Ids that are made together begin alike.
	var ambiguous *AmbiguousError
	_, err = r.Find(ctx, main.ID().String()[:4])
	require.ErrorAs(t, err, &ambiguous)
	require.ErrorIs(t, err, ErrAmbiguous)
	require.Len(t, ambiguous.Matches, maxMatches)
	require.True(t, ambiguous.More)
	require.Contains(t, ambiguous.Hint(), "and others")

	_, err = r.Thread(ctx, "tripp")
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, []string{"trip"}, unknown.Near)

	// The start of a title is no name, also of one that is the first prompt, but close.
	prompt := "Docker build fails on the runner" + strings.Repeat(" again", 50)
	for _, o := range []lineage.ThreadOptions{{}, {Title: "docker networks"}} {
		other, err := store.CreateThread(ctx, o)
		require.NoError(t, err)
		in, err := other.Active(ctx)
		require.NoError(t, err)
		_, err = in.Extend(ctx, lineage.User(prompt))
		require.NoError(t, err)
	}
	_, err = r.Thread(ctx, "Docker")
	require.ErrorAs(t, err, &unknown)
	require.Len(t, unknown.Near, 2)
	require.Contains(t, unknown.Hint(), "Docker build fails")
	require.Contains(t, unknown.Hint(), "docker networks")
	_, err = r.Find(ctx, strings.Repeat("x", 5000))
	require.ErrorAs(t, err, &unknown)
	require.Less(t, len(err.Error()), 200)
}

// Every id that is listed is found by each beginning of its short form that only it has, and by each beginning of the whole
// that only it has. Other beginnings are refused, with the ids that have them.
func TestShownIDsAreFoundByTheirBeginnings(t *testing.T) {
	ctx, store := t.Context(), lineagetest.New(t, lineage.Options{})
	var first *lineage.Thread
	spans := make(map[string]lineage.SpanRef)
	threads := make(map[string]lineage.ThreadID)
	contexts := make(map[string]lineage.ContextID)
	contents := make(map[string]lineage.ContentID)
	for i := range 30 {
		thread, err := store.CreateThread(ctx, lineage.ThreadOptions{Title: fmt.Sprintf("Thread %d", i)})
		require.NoError(t, err)
		if first == nil {
			first = thread
		}
		main, err := thread.Active(ctx)
		require.NoError(t, err)
		_, err = main.Extend(ctx, lineage.User(fmt.Sprint("one ", i)), lineage.User(fmt.Sprint("two ", i)))
		require.NoError(t, err)
		entries, err := main.All(ctx)
		require.NoError(t, err)
		spans[entries[1].Span.Run.String()] = entries[1].Span
		threads[thread.ID().String()] = thread.ID()
		contexts[main.ID().String()] = main.ID()
		contents[entries[0].Content.String()] = entries[0].Content
	}
	r := New(store, nil)
	requireBeginnings(t, spans, "/2", func(text string) (lineage.SpanRef, error) {
		found, err := r.Find(ctx, text)
		if err != nil {
			return lineage.SpanRef{}, err
		}
		return found.Span, nil
	})
	requireBeginnings(t, threads, "", func(text string) (lineage.ThreadID, error) {
		found, err := r.Thread(ctx, text)
		if err != nil {
			return lineage.ThreadID{}, err
		}
		return found.ID(), nil
	})
	requireBeginnings(t, contexts, "", func(text string) (lineage.ContextID, error) {
		found, err := r.Context(ctx, text)
		if err != nil {
			return lineage.ContextID{}, err
		}
		return found.Context.ID(), nil
	})
	requireBeginnings(t, contents, "", func(text string) (lineage.ContentID, error) { return r.Content(ctx, text) })

	// A place that only one of several runs has is not ambiguous.
	main, err := first.Active(ctx)
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.User("three"))
	require.NoError(t, err)
	tip, err := main.Tip(ctx)
	require.NoError(t, err)
	found, err := r.Find(ctx, tip.Run.String()[:8]+"/3")
	require.NoError(t, err)
	require.Equal(t, tip, found.Span)
}

// requireBeginnings looks for each of the ids by its beginnings, and by those of its last eight characters.
func requireBeginnings[T any](t *testing.T, ids map[string]T, suffix string, find func(string) (T, error)) {
	t.Helper()
	stands := func(id, text string) bool {
		return strings.HasPrefix(id, text) || len(id) == 36 && (strings.HasSuffix(id, text) || strings.HasPrefix(id[28:], text))
	}
	for id, want := range ids {
		var texts []string
		for n := 9; n < 20; n++ { // a shorter beginning of a content id may be one of a context's too
			texts = append(texts, id[:n])
		}
		if len(id) == 36 {
			texts = append(texts, id[:minShort])
			for n := minShort; n <= 8; n++ {
				texts = append(texts, id[28:28+n], strings.ToUpper(id[28:28+n]))
			}
		}
		for _, text := range texts {
			var candidates []string
			for other := range ids {
				if stands(other, strings.ToLower(text)) {
					candidates = append(candidates, other)
				}
			}
			got, err := find(text + suffix)
			if len(candidates) == 1 {
				require.NoError(t, err, text)
				require.Equal(t, want, got, text)
				continue
			}
			var ambiguous *AmbiguousError
			require.ErrorAs(t, err, &ambiguous, text)
			require.Len(t, ambiguous.Matches, min(len(candidates), maxMatches))
			for _, m := range ambiguous.Matches {
				listed := strings.TrimSuffix(m.ID, suffix)
				require.True(t, slices.ContainsFunc(candidates, func(id string) bool { return stands(id, listed) }), "%s for %s", m.ID, text)
				require.Contains(t, ambiguous.Hint(), m.ID)
			}
		}
	}
}

// The short form of a thread's id, and a title, find it without looking at the others.
func TestThreadsAreFoundAtTheSameCost(t *testing.T) {
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		ctx, below := t.Context(), lineagetest.New(t, lineage.Options{})
		var last *lineage.Thread
		for range n {
			var err error
			last, err = below.CreateThread(ctx, lineage.ThreadOptions{Title: "like all others"})
			require.NoError(t, err)
		}
		titled, err := below.CreateThread(ctx, lineage.ThreadOptions{Title: "Not like others"})
		require.NoError(t, err)
		engine := backendtest.NewCounting(write.Of(below).Engine())
		r := New(lineage.New(engine), nil)
		costs := make(map[string]int64)
		for kind, text := range map[string]string{"short form": Short(last.ID()), "more": last.ID().String()[20:], "id": last.ID().String()} {
			for _, text := range []string{text, strings.ToUpper(text)} {
				costs[kind] = engine.Cost(func() {
					found, err := r.Thread(ctx, text)
					require.NoError(t, err, text)
					require.Equal(t, last.ID(), found.ID(), text)
				})
			}
		}
		costs["title"] = engine.Cost(func() {
			found, err := r.Thread(ctx, "not like Others")
			require.NoError(t, err)
			require.Equal(t, titled.ID(), found.ID())
		})
		return costs
	})
}

// Threads of one short form are told apart by more of their ids, and listed by all of them.
func TestThreadsOfOneShortForm(t *testing.T) {
	ctx, store := t.Context(), lineagetest.New(t, lineage.Options{})
	var ids []string
	for i := range 3 {
		id := structure.DeriveID[structure.ThreadID]("one", "short form")
		id[0], id[11] = byte(i), byte(i)
		_, err := write.Of(store).Engine().Apply(ctx, &structure.Commit{Records: []structure.Record{&structure.Thread{ID: id}}}, backend.Options{})
		require.NoError(t, err)
		ids = append(ids, id.String())
	}
	r := New(store, nil)
	for _, id := range ids {
		found, err := r.Thread(ctx, id[len(id)-10:])
		require.NoError(t, err)
		require.Equal(t, id, found.ID().String())
	}
	_, err := r.Thread(ctx, ids[0][len(ids[0])-8:])
	ambiguous := &AmbiguousError{}
	require.ErrorAs(t, err, &ambiguous)
	for i, m := range ambiguous.Matches {
		require.Equal(t, ids[i], m.ID)
	}
}

func TestContentIsFoundByTheBeginningOfItsID(t *testing.T) {
	ctx, store := t.Context(), lineagetest.New(t, lineage.Options{})
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.User("one"), lineage.User("two"))
	require.NoError(t, err)
	last, err := main.Last(ctx, 1)
	require.NoError(t, err)
	r := New(store, thread)
	for _, name := range []string{last[0].Content.String(), last[0].Content.Short(), strings.ToUpper(last[0].Content.Short()), ":2", "main"} {
		id, err := r.Content(ctx, name)
		require.NoError(t, err, name)
		require.Equal(t, last[0].Content, id, name)
	}
	_, err = r.Content(ctx, "0123456789ab")
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"main", "mian", 1}, {"main", "main", 0}, {"cheap", "chaep", 1}, {"kitten", "sitting", 3}} {
		require.Equal(t, c.want, distance(c.a, c.b), "%s, %s", c.a, c.b)
		require.Equal(t, c.want, distance(c.b, c.a), "%s, %s", c.b, c.a)
	}
}

func FuzzCutStep(f *testing.F) {
	for _, seed := range []string{"main~2", "@{1}", "a@{-3}", ":4", "x~", "~~~", "a@{b}", "18446744073709551616:18446744073709551616"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, s, ok := cutStep(text)
		if ok {
			require.Equal(t, text, name+s.text)
			require.Less(t, len(name), len(text))
		}
	})
}

// expiring is a view of which the first path expires.
type expiring struct {
	backend.View
	expired bool
}

func (v *expiring) Path(ctx context.Context, at structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	if v.expired {
		return v.View.Path(ctx, at, w, o)
	}
	v.expired = true
	return func(yield func(*backend.Step, error) bool) { yield(nil, backend.ErrExpired) }
}

// A content is also found where the state that was read first has expired.
func TestContentIsFoundAfterAStateExpired(t *testing.T) {
	ctx, store := t.Context(), lineagetest.New(t, lineage.Options{})
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.User("one"))
	require.NoError(t, err)
	last, err := main.Last(ctx, 1)
	require.NoError(t, err)
	r := New(store, thread).Within(func(*structure.Thread) bool { return true }, store.FindThread)
	r.view = &expiring{View: r.view}
	id, err := r.Content(ctx, last[0].Content.Short())
	require.NoError(t, err)
	require.Equal(t, last[0].Content, id)
}
