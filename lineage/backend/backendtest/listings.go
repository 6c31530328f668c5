package backendtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// listed is an element of a thread listing, with values instead of pointers.
type listed struct {
	Thread      structure.Thread
	LastMessage time.Time
}

func (l listed) updated() time.Time {
	if l.LastMessage.After(l.Thread.UpdatedAt) {
		return l.LastMessage
	}
	return l.Thread.UpdatedAt
}

// place is the sort key of the thread.
func (l listed) place() int64 { return backend.OrderTime(l.updated()) }

// queries returns the listings to test, given all threads that ever existed.
func queries(threads []backend.ThreadListing) []backend.ThreadQuery {
	var all []backend.ThreadQuery
	add := func(q backend.ThreadQuery) {
		all = append(all, q)
		q.Oldest = true
		all = append(all, q)
	}
	add(backend.ThreadQuery{})
	nobody := ""
	add(backend.ThreadQuery{User: &nobody})
	for _, t := range some(threads) {
		at := t.Updated()
		add(backend.ThreadQuery{User: &t.UserID, After: t.Token()})
		add(backend.ThreadQuery{SourcePrefix: t.SourceID[:(len(t.SourceID)+1)/2]})
		add(backend.ThreadQuery{TitlePrefix: strings.ToUpper(strings.ToValidUTF8(t.Title[:(len(t.Title)+1)/2], ""))})
		add(backend.ThreadQuery{From: at, To: at.Add(time.Millisecond)})
		add(backend.ThreadQuery{After: t.Token()})
		add(backend.ThreadQuery{From: at.Add(time.Microsecond), User: &t.UserID})
		add(backend.ThreadQuery{To: at.Add(time.Microsecond), After: t.Token()})
		var values []backend.MetadataIs
		for key, some := range topLevel(t.Metadata) {
			values = append(values, backend.MetadataIs{Key: key, Value: some[0]})
		}
		slices.SortFunc(values, func(a, b backend.MetadataIs) int { return strings.Compare(a.Key, b.Key) })
		for i := range some(values) {
			add(backend.ThreadQuery{Metadata: values[i : i+1]})
		}
		add(backend.ThreadQuery{User: &t.UserID, Metadata: values, SourcePrefix: t.SourceID, TitlePrefix: t.Title})
	}
	return all
}

// topLevel returns the strings, numbers and booleans at each key of metadata, including elements
// of arrays.
func topLevel(metadata []byte) map[string][]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(metadata, &all) != nil {
		return nil
	}
	values := map[string][]json.RawMessage{}
	for key, value := range all {
		var array []json.RawMessage
		if json.Unmarshal(value, &array) != nil {
			array = []json.RawMessage{value}
		}
		for _, v := range array {
			if strings.IndexByte("{[n", v[0]) < 0 {
				values[key] = append(values[key], v)
			}
		}
	}
	return values
}

func (f Facts) listings(t tester, r backend.Reader, seen *Census) {
	t.Helper()
	for _, id := range seen.threads.list() {
		for incarnation := range uint64(2) {
			at, err := r.LastMessage(background, structure.Home{Thread: id, Incarnation: incarnation})
			f.put(t, fmt.Sprint("last message of ", id, incarnation), answer(t, at, err))
		}
	}
	var there []backend.ThreadListing
	for thread, err := range r.Threads(background, structure.ThreadID{}) {
		if !fine(t, err) {
			break
		}
		at, err := r.LastMessage(background, thread.Home())
		if !fine(t, err) {
			break
		}
		there = append(there, backend.ThreadListing{Thread: thread, LastMessage: at})
	}
	for _, q := range queries(there) {
		f.once(t, nameOf(q), func() any {
			all := []listed{}
			for l, err := range r.ListThreads(background, q) {
				if !fine(t, err) {
					break
				}
				all = append(all, listed{*l.Thread, l.LastMessage})
			}
			return all
		})
	}
}

func nameOf(q backend.ThreadQuery) string {
	name := fmt.Sprintf("threads from %q, title %q, metadata %s, %v to %v, oldest %v, after %v", q.SourcePrefix, q.TitlePrefix, q.Metadata, q.From, q.To, q.Oldest, q.After)
	if q.User != nil {
		name += fmt.Sprintf(", of %q", *q.User)
	}
	return name
}

func (m *Model) listingFacts(f Facts, seen *Census) {
	last := m.lastMessages()
	for _, id := range seen.threads.list() {
		for incarnation := range uint64(2) {
			f[fmt.Sprint("last message of ", id, incarnation)] = last[structure.Home{Thread: id, Incarnation: incarnation}]
		}
	}
	there := m.listings()
	var threads []backend.ThreadListing
	for _, l := range there {
		threads = append(threads, backend.ThreadListing{Thread: &l.Thread, LastMessage: l.LastMessage})
	}
	for _, q := range queries(threads) {
		f[nameOf(q)] = m.listing(q, there)
	}
}

// listings returns all threads, ordered by id.
func (m *Model) listings() (all []listed) {
	last := m.lastMessages()
	for _, thread := range m.threadsWhere(func(structure.Thread) bool { return true }) {
		all = append(all, listed{thread, last[thread.Home()]})
	}
	return all
}

// listing returns the threads that match a query, in order.
func (m *Model) listing(q backend.ThreadQuery, of []listed) []listed {
	all := filter(of, func(l listed) bool { return passes(q, l) })
	slices.SortFunc(all, func(a, b listed) int {
		if q.Oldest {
			return inOrder(a.place(), a.Thread.ID, b.place(), b.Thread.ID)
		}
		return inOrder(b.place(), b.Thread.ID, a.place(), a.Thread.ID)
	})
	return all
}

func inOrder(a int64, x structure.ThreadID, b int64, y structure.ThreadID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return bytes.Compare(x[:], y[:])
}

// lastMessages returns the time of the last message of each home.
func (m *Model) lastMessages() map[structure.Home]time.Time {
	last := make(map[structure.Home]time.Time)
	for ref, s := range m.spans {
		home := m.runs[ref.Run].Home
		at, some := last[home]
		for _, u := range s.Span.Usages {
			if !some || u.CreatedAt.UnixMilli() > at.UnixMilli() {
				at, some = u.CreatedAt, true
			}
		}
		last[home] = at
	}
	return last
}

func passes(q backend.ThreadQuery, l listed) bool {
	at := l.updated()
	if q.User != nil && *q.User != l.Thread.UserID || !strings.HasPrefix(l.Thread.SourceID, q.SourcePrefix) ||
		!strings.HasPrefix(strings.ToLower(strings.ToUpper(l.Thread.Title)), strings.ToLower(strings.ToUpper(q.TitlePrefix))) ||
		!q.From.IsZero() && at.Before(q.From) || !q.To.IsZero() && !at.Before(q.To) {
		return false
	}
	has := topLevel(l.Thread.Metadata)
	for _, wanted := range q.Metadata {
		if !slices.ContainsFunc(has[wanted.Key], func(value json.RawMessage) bool {
			var got, want any
			return string(value) == string(wanted.Value) ||
				json.Unmarshal(value, &got) == nil && json.Unmarshal(wanted.Value, &want) == nil && got == want
		}) {
			return false
		}
	}
	if q.After.IsZero() {
		return true
	}
	order := inOrder(l.place(), l.Thread.ID, q.After.Updated, q.After.Thread)
	return q.Oldest && order > 0 || !q.Oldest && order < 0
}

// testListings lists more threads than one batch of a prefix lookup has, in one call and by
// pages, while threads change and are deleted.
func testListings(t *testing.T, c Config) {
	s := newStore(t, c)
	talkIn := func(i int) []structure.Record {
		th := thread(fmt.Sprint("thread ", i))
		th.SourceID, th.UserID = fmt.Sprintf("from %d", i%3), fmt.Sprint("user ", i%2)
		th.Metadata = fmt.Appendf(nil, `{"half":%v,"number":%d,"tags":["all",%d,"%d","all",{"a":1},null]}`, i%2 == 0, i, i%5, i%7)
		th.UpdatedAt = moment(int64(i % 7))
		run := run(th.Title, structure.SpanRef{})
		run.Home = th.Home()
		span := says(structure.SpanRef{Run: run.ID, Seq: 1}, "one")
		span.Usages[0].CreatedAt = moment(int64(i * 37 % 11))
		return []structure.Record{th, run, span}
	}
	var records []structure.Record
	n := backend.ManyMatches + 50
	for i := range n {
		records = append(records, talkIn(i)...)
	}
	s.applyOnly(s.commit(append([]structure.Record{text("one")}, records...)...), backend.Options{})
	if s.config.Reopen {
		s.restart()
	}
	user := "user 1"
	half := []backend.MetadataIs{{Key: "half", Value: []byte("false")}}
	there := s.model.listings()
	for _, q := range []backend.ThreadQuery{
		{}, {User: &user}, {Metadata: half}, {User: &user, Metadata: half}, {SourcePrefix: "from 2"}, {SourcePrefix: "from", User: &user},
		{TitlePrefix: "THREAD"}, {TitlePrefix: "thread 10"}, {TitlePrefix: "Thread", SourcePrefix: "fr", Metadata: half},
		{Metadata: []backend.MetadataIs{{Key: "number", Value: []byte("7e0")}}}, {From: moment(3), To: moment(9)},
		{Metadata: tagged(`"all"`)}, {Metadata: tagged("4.0")}, {Metadata: tagged(`"6"`, "0", `"all"`)}, {Metadata: tagged("6")}, {Metadata: tagged("4"), User: &user},
	} {
		for range 2 {
			want := s.model.listing(q, there)
			require.Equal(t, want, pagesOf(t, s, q, 400), nameOf(q))
			q.Oldest = !q.Oldest
		}
	}

	// Pages continue at the same place while threads are deleted and created.
	q := backend.ThreadQuery{User: &user}
	var seen []listed
	for page := 0; ; page++ {
		some := 0
		for l, err := range s.ListThreads(background, q) {
			require.NoError(t, err)
			seen, q.After = append(seen, listed{*l.Thread, l.LastMessage}), l.Token()
			if some++; some == 90 {
				break
			}
		}
		if some < 90 {
			break
		}
		s.applyOnly(s.commit(&structure.Deletion{Subject: structure.KindThread, Thread: q.After.Thread}), backend.Options{})
	}
	require.Len(t, seen, n/2)

	for _, bad := range []backend.ThreadQuery{
		{Metadata: []backend.MetadataIs{{Key: "a", Value: []byte("{}")}}}, {Metadata: []backend.MetadataIs{{Key: "a", Value: []byte("null")}}},
		{Metadata: []backend.MetadataIs{{Key: "a"}}}, {Metadata: []backend.MetadataIs{{Key: "a", Value: []byte("1 2")}}},
		{Metadata: slices.Repeat(half, backend.MaxMetadata+1)},
	} {
		require.ErrorIs(t, firstError(s.ListThreads(background, bad)), backend.ErrInvalid)
	}
}

// tagged returns filters for values in the array "tags".
func tagged(values ...string) (all []backend.MetadataIs) {
	for _, v := range values {
		all = append(all, backend.MetadataIs{Key: "tags", Value: []byte(v)})
	}
	return all
}

// pagesOf lists threads by pages, with tokens that pass through text.
func pagesOf(t tester, r backend.Reader, q backend.ThreadQuery, size int) []listed {
	t.Helper()
	all := []listed{}
	for {
		n := 0
		for l, err := range r.ListThreads(background, q) {
			require.NoError(t, err)
			token, err := backend.ParsePageToken(l.Token().String())
			require.NoError(t, err)
			all, q.After = append(all, listed{*l.Thread, l.LastMessage}), token
			if n++; n == size {
				break
			}
		}
		if n < size {
			return all
		}
	}
}
