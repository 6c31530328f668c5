package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hangs bounds the wait for what happens at once on a machine that does nothing else.
const hangs = 2 * time.Minute

// harness is a server of a store in memory, with a page of two routes.
type harness struct {
	*Server
	t      *testing.T
	store  *lineage.Store
	access *access.File
	log    *syncBuffer
	client *http.Client

	mu    sync.Mutex
	clock time.Time
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

const pageText = "<!doctype html><title>the page</title><h1>page</h1>"

// pageRoutes are those of a page.
func pageRoutes() []Route {
	return []Route{
		{Pattern: "GET /{$}", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, pageText)
		})},
		{Pattern: "POST /act", Writes: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			io.WriteString(w, "acted")
		})},
		{Pattern: "GET /panic", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") })},
	}
}

// open starts a server of a store in memory on any port.
func open(t *testing.T, change ...func(*Options)) *harness {
	return openOf(t, lineagetest.New(t, lineage.Options{}), change...)
}

func openOf(t *testing.T, store *lineage.Store, change ...func(*Options)) *harness {
	t.Helper()
	h := &harness{t: t, store: store, log: &syncBuffer{}, clock: time.Now()}
	h.access = access.Open(t.TempDir(), store.ID())
	o := Options{
		Store: store, Access: h.access, Routes: pageRoutes(), Listen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(h.log, nil)),
		Limits: Limits{Header: hangs, Body: hangs, Write: hangs}, // the machine may be slow
		now: func() time.Time {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.clock
		},
	}
	for _, change := range change {
		change(&o)
	}
	var err error
	h.Server, err = Open(t.Context(), o)
	require.NoError(t, err)
	transport := &http.Transport{}
	h.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, h.Close(context.Background()))
	})
	return h
}

// later moves the clock of the server.
func (h *harness) later(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock = h.clock.Add(d)
}

// request returns a request with headers, each as "Name: value"; "Host: …" sets the host.
func (h *harness) request(method, path, body string, headers ...string) *http.Request {
	r, err := http.NewRequestWithContext(h.t.Context(), method, "http://"+h.Addr().String()+path, strings.NewReader(body))
	require.NoError(h.t, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Add(name, value)
		}
	}
	return r
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (h *harness) do(method, path, body string, headers ...string) answer {
	h.t.Helper()
	r, err := h.client.Do(h.request(method, path, body, headers...))
	require.NoError(h.t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(h.t, err)
	return answer{r.StatusCode, r.Header, string(b)}
}

func (h *harness) get(path string, headers ...string) answer {
	h.t.Helper()
	return h.do("GET", path, "", headers...)
}

// token creates a token and returns the header with it.
func (h *harness) token(t access.Token) string {
	h.t.Helper()
	_, secret, err := h.access.Create(h.t.Context(), t)
	require.NoError(h.t, err)
	return "Authorization: Bearer " + secret
}

// session opens the page and returns the header with its cookie.
func (h *harness) session() string {
	h.t.Helper()
	_, code, _ := strings.Cut(h.Link(), "#")
	got := h.do("POST", "/login", code, "Sec-Fetch-Site: same-origin")
	require.Equal(h.t, http.StatusNoContent, got.status, got.body)
	cookie, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
	return "Cookie: " + cookie
}

const ours = "Sec-Fetch-Site: same-origin"

// thread makes a thread with a message.
func thread(t *testing.T, s *lineage.Store, o lineage.ThreadOptions, texts ...string) (*lineage.Thread, *lineage.Context) {
	t.Helper()
	made, err := s.CreateThread(t.Context(), o)
	require.NoError(t, err)
	main, err := made.Active(t.Context())
	require.NoError(t, err)
	for _, text := range texts {
		_, err = main.Extend(t.Context(), lineage.User(text))
		require.NoError(t, err)
	}
	return made, main
}

// runtimeDir returns a directory for sockets.
func runtimeDir(t *testing.T) string { return filepath.Join(t.TempDir(), "run") }
