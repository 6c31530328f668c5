package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
)

// message is a server-sent event as a browser sees it.
type message struct{ event, id, data string }

// stream is a reader of events, which keeps the last id as a browser does.
type stream struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Reader
	last string
}

func (h *harness) stream(query string, headers ...string) *stream {
	h.t.Helper()
	return h.streamOf("/v1/events"+query, headers...)
}

func (h *harness) streamOf(path string, headers ...string) *stream {
	h.t.Helper()
	r, err := h.client.Do(h.request("GET", path, "", headers...))
	require.NoError(h.t, err)
	h.t.Cleanup(func() { r.Body.Close() })
	require.Equal(h.t, 200, r.StatusCode)
	require.Equal(h.t, "text/event-stream", r.Header.Get("Content-Type"))
	return &stream{t: h.t, body: r.Body, in: bufio.NewReader(r.Body)}
}

// next returns the next message. A block without data only sets the last id.
func (s *stream) next() (m message, err error) {
	defer time.AfterFunc(hangs, func() { s.body.Close() }).Stop()
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return m, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data += value
		case "":
			if m.id != "" {
				s.last = m.id
			}
			if m.data != "" {
				return m, nil
			}
			m = message{}
		}
	}
}

func (s *stream) must() message {
	s.t.Helper()
	m, err := s.next()
	require.NoError(s.t, err)
	return m
}

// watched returns the records that 'lineage watch --json' prints.
func watched(t *testing.T, store *lineage.Store) (all []string) {
	t.Helper()
	for c, err := range store.Changes(t.Context(), lineage.Cursor{}) {
		require.NoError(t, err)
		for i := range c.Events {
			line, err := records.Encode(records.NewEvent(&c, &c.Events[i]))
			require.NoError(t, err)
			all = append(all, strings.TrimSpace(string(line)))
		}
	}
	return all
}

// lines returns the records of a message.
func lines(t *testing.T, m message) (all []string) {
	t.Helper()
	var raw []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(m.data), &raw), m.data)
	for _, r := range raw {
		all = append(all, string(r))
	}
	return all
}

// TestEvents reads a store whose stream breaks after every message, and compares with what watch prints.
func TestEvents(t *testing.T) {
	h := open(t)
	bearer := h.token(access.Token{})
	_, main := thread(t, h.store, lineage.ThreadOptions{}, "one", "two")
	var got []string
	last := ""
	for range 2 {
		for head := uint64(0); ; {
			at, err := h.store.View().Head(t.Context())
			require.NoError(t, err)
			if head == at.Number {
				break
			}
			headers := []string{bearer}
			if last != "" {
				headers = append(headers, "Last-Event-ID: "+last)
			}
			s := h.stream("?from=1", headers...)
			m := s.must()
			got, last = append(got, lines(t, m)...), m.id
			require.NoError(t, s.body.Close())
			cursor, err := parseEventID(last)
			require.NoError(t, err)
			head = cursor.Number
		}
		_, err := main.Extend(t.Context(), lineage.User("three"))
		require.NoError(t, err)
	}
	all := watched(t, h.store)
	require.Equal(t, all[:len(got)], got)
	require.Len(t, got, len(all)-1, "the last change is a tip")
}

// A stream without a position begins with the next commit, and continues there if it breaks before that.
func TestEventsFromNow(t *testing.T) {
	h := open(t)
	bearer := h.token(access.Token{})
	_, main := thread(t, h.store, lineage.ThreadOptions{}, "one")
	s := h.stream("", bearer)
	_, err := main.Extend(t.Context(), lineage.User("two"))
	require.NoError(t, err)
	m := s.must()
	require.Contains(t, m.data, "context extended")
	require.NotContains(t, m.data, "thread created")

	h.client.CloseIdleConnections()
	fresh := open(t, func(o *Options) { o.Store = h.store }) // a server that was started again
	again := fresh.stream("", fresh.token(access.Token{}), "Last-Event-ID: "+m.id)
	_, err = main.Extend(t.Context(), lineage.User("three"))
	require.NoError(t, err)
	next := again.must()
	require.NotEqual(t, m.id, next.id)
	require.Equal(t, next.data, s.must().data)
}

func TestEventsRefused(t *testing.T) {
	h := open(t)
	bearer := h.token(access.Token{})
	thread(t, h.store, lineage.ThreadOptions{}, "one")
	for _, query := range []string{"?from=0", "?from=x", "?from=-1", "?from=99999999999999999999", "?thread=x"} {
		require.Equal(t, http.StatusBadRequest, h.get("/v1/events"+query, bearer).status, query)
	}
	require.Equal(t, http.StatusBadRequest, h.get("/v1/events?"+strings.Repeat("thread=0190b5a0-0000-7000-8000-000000000000&", 2)+"thread=x", bearer).status)
	for _, id := range []string{"x", "1", "1-2", "1-zzzzzzzzzzzzzzzz", "-1-0000000000000001"} {
		require.Equal(t, http.StatusBadRequest, h.get("/v1/events", bearer, "Last-Event-ID: "+id).status, id)
	}
	// A commit of another history, or one that the store lost.
	for _, id := range []string{"1-00000000000000ff", "1000-0000000000000001"} {
		require.Equal(t, http.StatusConflict, h.get("/v1/events", bearer, "Last-Event-ID: "+id).status, id)
	}
	require.Equal(t, http.StatusConflict, h.get("/v1/events?from=1000", bearer).status)
}

// Streams of a thread, and of a token for some threads, have what is of these threads, and their position advances.
func TestEventsOfThreads(t *testing.T) {
	h := open(t, func(o *Options) { o.Limits.Heartbeat = 5 * time.Millisecond })
	a, mainA := thread(t, h.store, lineage.ThreadOptions{UserID: "ada"}, "for ada")
	_, mainB := thread(t, h.store, lineage.ThreadOptions{UserID: "bob"}, "for bob")
	extend := func() {
		for _, c := range []*lineage.Context{mainB, mainA, mainB} {
			_, err := c.Extend(t.Context(), lineage.User("more"))
			require.NoError(t, err)
		}
	}
	extend()
	ada := h.token(access.Token{Scope: access.Scope{Users: []string{"ada"}}})
	for _, s := range []*stream{h.stream("?from=1&thread="+a.ID().String(), h.token(access.Token{})), h.stream("?from=1", ada)} {
		var kinds []string
		for len(kinds) < 6 {
			for _, line := range lines(t, s.must()) {
				var r records.Event
				require.NoError(t, json.Unmarshal([]byte(line), &r))
				kinds = append(kinds, r.Kind)
				if r.Context != "" && r.Kind == string(lineage.ContextExtended) {
					require.Equal(t, mainA.ID().String(), r.Context)
				}
			}
		}
		require.Len(t, slices.DeleteFunc(kinds, func(k string) bool { return k != string(lineage.ContextExtended) }), 2)
		head, err := h.store.View().Head(t.Context())
		require.NoError(t, err)
		for s.last != eventID(head) { // the heartbeat has the position
			line, err := s.in.ReadString('\n')
			require.NoError(t, err)
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				s.last = strings.TrimSpace(id)
			}
		}
	}
	require.Equal(t, http.StatusForbidden, h.get("/", ada).status)
}

// A stream ends with its credentials, and with the server.
func TestEventsEnd(t *testing.T) {
	h := open(t, func(o *Options) { o.Limits.Heartbeat = 5 * time.Millisecond })
	short := h.stream("", h.token(access.Token{Expires: h.clock.Add(time.Hour)}))
	page := h.stream("", h.session(), ours)
	ending := h.stream("", h.token(access.Token{}))
	h.later(time.Hour)
	_, err := short.next()
	require.ErrorIs(t, err, io.EOF)
	h.later(sessionLife)
	_, err = page.next()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, h.Close(t.Context()))
	_, err = ending.next()
	require.ErrorIs(t, err, io.EOF, "the stream is not cut off")
}

// A stream of a thread where nothing happens shows that it lives while others write without a pause, and ends with its
// token.
func TestEventsOfABusyStore(t *testing.T) {
	h := open(t, func(o *Options) { o.Limits.Heartbeat = 50 * time.Millisecond })
	quiet, _ := thread(t, h.store, lineage.ThreadOptions{}, "quiet")
	_, busy := thread(t, h.store, lineage.ThreadOptions{}, "busy")
	token, secret, err := h.access.Create(t.Context(), access.Token{})
	require.NoError(t, err)
	s := h.stream("?thread="+quiet.ID().String(), "Authorization: Bearer "+secret)
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			if _, err := busy.Extend(ctx, lineage.User("more")); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	defer writer.Wait()
	defer stop()
	first := ""
	for s.last == first || first == "" { // the heartbeat has the position
		line, err := s.in.ReadString('\n')
		require.NoError(t, err)
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			first, s.last = s.last, strings.TrimSpace(id)
		}
	}
	require.NoError(t, h.access.Delete(t.Context(), token.ID))
	_, err = s.next()
	require.ErrorIs(t, err, io.EOF)
}

// A stream of a store that another process has open lasts while nothing happens.
func TestEventsOfAQuietGuest(t *testing.T) {
	dir := t.TempDir() + "/store"
	owner, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	defer owner.Close()
	guest, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	defer guest.Close()
	h := openOf(t, guest, func(o *Options) { o.Limits.Heartbeat = time.Millisecond })
	s := h.stream("", h.token(access.Token{}))
	for range 500 {
		_, err := s.in.ReadString('\n')
		require.NoError(t, err, h.log.String())
	}
}

// Too many streams are refused; a stream is no request at work. The head of a stream is no stream.
func TestStreamsAreLimited(t *testing.T) {
	h := open(t, func(o *Options) { o.Limits.Streams, o.Limits.Requests = 2, 1 })
	bearer := h.token(access.Token{})
	for range 3 {
		r, err := h.client.Do(h.request("HEAD", "/v1/events", "", bearer))
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
		require.Equal(t, 200, h.get("/", bearer).status, "on the same connection")
	}
	h.stream("", bearer)
	h.stream("", bearer)
	r, err := h.client.Do(h.request("GET", "/v1/events", "", bearer))
	require.NoError(t, err)
	require.NoError(t, r.Body.Close()) // a stream would not end
	require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
	require.Equal(t, 200, h.get("/", bearer).status)
}

// A reader that does not read is dropped, and continues later without a gap. Others are not delayed.
func TestSlowReaderIsDropped(t *testing.T) {
	h := open(t, func(o *Options) { o.Limits.Write = 50 * time.Millisecond })
	bearer := h.token(access.Token{})
	main, err := h.store.NewContext(t.Context(), lineage.ContextOptions{})
	require.NoError(t, err)
	conn, err := net.Dial("tcp", h.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	fmt.Fprintf(conn, "GET /v1/events?from=1 HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", h.Addr(), bearer)
	n := 0
	require.Eventually(t, func() bool {
		require.NoError(t, h.store.Update(t.Context(), func(ctx context.Context, tx *lineage.Tx) error {
			for range 4000 {
				n++
				if err := tx.Values(lineage.Owner{Scope: lineage.StoreScope}).Set(ctx, fmt.Sprintf("%0500d", n), []byte("1")); err != nil {
					return err
				}
			}
			return nil
		}))
		h.metrics.mu.Lock()
		defer h.metrics.mu.Unlock()
		return h.metrics.dropped == 1
	}, hangs, time.Millisecond)
	patient := openOf(t, h.store) // this test may be slow itself
	reads := patient.stream("?from=1", patient.token(access.Token{}))
	require.NotEmpty(t, reads.must().data)
	for at := reads.last; ; at = reads.last {
		head, err := h.store.View().Head(t.Context())
		require.NoError(t, err)
		if at == eventID(head) {
			break
		}
		reads.must()
	}
	_, err = main.Extend(t.Context(), lineage.User("later"))
	require.NoError(t, err)
	require.NotEmpty(t, reads.must().data)
}

// notedDeadlines are the write deadlines of a connection, which are not set: the server may be slow itself.
type notedDeadlines struct {
	http.ResponseWriter
	mu   sync.Mutex
	last time.Time
}

func (n *notedDeadlines) SetWriteDeadline(at time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = at
	return nil
}

// A reader that reads is not dropped, however long its stream lasts: what is sent later has a time of its own.
func TestPatientReaderIsNotDropped(t *testing.T) {
	const limit = 50 * time.Millisecond
	var h *harness
	deadlines := &notedDeadlines{}
	h = open(t, func(o *Options) {
		o.Routes = append(o.Routes, Route{Pattern: "GET /v1/noted", Scoped: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request := requestOf(r)
			request.atLeast, request.timed, request.conn = limit, time.Time{}, http.NewResponseController(deadlines)
			h.events(w, r)
		})})
	})
	_, main := thread(t, h.store, lineage.ThreadOptions{}, "one")
	reads := h.streamOf("/v1/noted?from=1", h.token(access.Token{}))
	require.NotEmpty(t, reads.must().data)
	time.Sleep(2 * limit)
	extended := time.Now()
	_, err := main.Extend(t.Context(), lineage.User("later"))
	require.NoError(t, err)
	for head, err := h.store.View().Head(t.Context()); reads.last != eventID(head); reads.must() {
		require.NoError(t, err)
	}
	deadlines.mu.Lock()
	defer deadlines.mu.Unlock()
	require.False(t, deadlines.last.Before(extended.Add(limit)))
}

// TestTakenOver closes the owner of a directory while a guest is served: the guest becomes the owner, and its stream
// goes on.
func TestTakenOver(t *testing.T) {
	dir := t.TempDir() + "/store"
	owner, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	guest, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	defer guest.Close()
	h := openOf(t, guest)
	both := openOf(t, owner)
	s := h.stream("?from=1", h.token(access.Token{}))
	third := both.stream("?from=1", both.token(access.Token{}))
	_, main := thread(t, owner, lineage.ThreadOptions{}, "one")
	first := s.must()
	require.Equal(t, first, third.must())
	require.NoError(t, both.Close(t.Context()))
	require.NoError(t, owner.Close())
	again, err := guest.Context(t.Context(), main.ID())
	require.NoError(t, err)
	_, err = again.Extend(t.Context(), lineage.User("two"))
	require.NoError(t, err)
	got := lines(t, first)
	for all := watched(t, guest); len(got) < len(all); {
		got = append(got, lines(t, s.must())...)
	}
	require.Equal(t, watched(t, guest), got)
	require.NoError(t, h.Close(t.Context()))
}

// A store that was closed under its server fails requests, and nothing else.
func TestStoreClosed(t *testing.T) {
	store, err := lineage.OpenMemory(t.Context(), lineage.Options{})
	require.NoError(t, err)
	h := openOf(t, store)
	bearer := h.token(access.Token{})
	s := h.stream("", bearer)
	require.Equal(t, 200, h.get("/readyz").status)
	require.NoError(t, store.Close())
	_, err = s.next()
	require.Error(t, err)
	require.Equal(t, http.StatusServiceUnavailable, h.get("/readyz").status)
	require.Equal(t, http.StatusServiceUnavailable, h.get("/v1/events", bearer).status)
	require.Equal(t, 200, h.get("/healthz").status)
	gone := open(t, func(o *Options) { o.Ready = func() error { return lineage.ErrNotFound } })
	require.Equal(t, http.StatusServiceUnavailable, gone.get("/readyz").status)
}
