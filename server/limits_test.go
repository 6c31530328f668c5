package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/server/access"
)

func TestBodyIsLimited(t *testing.T) {
	h := open(t, func(o *Options) { o.Limits.BodySize = 100 })
	bearer := h.token(access.Token{Writes: true})
	require.Equal(t, 200, h.do("POST", "/act", strings.Repeat("x", 100), bearer).status)
	require.Equal(t, http.StatusRequestEntityTooLarge, h.do("POST", "/act", strings.Repeat("x", 101), bearer).status)
	// The connection is closed at once, perhaps before the answer was read.
	if r, err := h.client.Do(h.request("GET", "/", "", bearer, "X-Large: "+strings.Repeat("x", 2*headerSize))); err == nil {
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, r.StatusCode)
	}
}

// raw opens a connection and sends the beginning of a request.
func (h *harness) raw(text string) net.Conn {
	h.t.Helper()
	c, err := net.Dial("tcp", h.Addr().String())
	require.NoError(h.t, err)
	h.t.Cleanup(func() { c.Close() })
	_, err = io.WriteString(c, text)
	require.NoError(h.t, err)
	require.NoError(h.t, c.SetReadDeadline(time.Now().Add(hangs)))
	return c
}

// A connection without a request, with half a head or with half a body ends.
func TestSlowRequestsEnd(t *testing.T) {
	h := open(t, func(o *Options) {
		o.Limits.Header, o.Limits.Body, o.Limits.Idle = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	})
	bearer := h.token(access.Token{Writes: true})
	head := fmt.Sprintf("Host: %s\r\n%s\r\n", h.Addr(), bearer)
	for name, text := range map[string]string{
		"nothing":     "",
		"half a head": "GET / HTTP/1.1\r\nHost: x",
		"half a body": "POST /act HTTP/1.1\r\n" + head + "Content-Length: 10\r\n\r\nhalf",
		"idle":        "GET / HTTP/1.1\r\n" + head + "\r\n",
	} {
		_, err := io.Copy(io.Discard, h.raw(text)) // until the server closes the connection, which is reset if the text came later
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, name)
	}
}

// A request that takes long is not ended by the time that its body had.
func TestBodyTimeIsForTheBody(t *testing.T) {
	for limit := 100 * time.Millisecond; ; limit *= 2 { // the time may be over before the body has arrived
		require.Less(t, limit, hangs)
		arrived, ended := false, false
		h := open(t, func(o *Options) {
			o.Limits.Body = limit
			o.Routes = append(o.Routes, Route{Pattern: "POST /slow", Writes: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				if arrived = err == nil; !arrived {
					return
				}
				select {
				case <-r.Context().Done():
					ended = true
				case <-time.After(3 * limit):
				}
			})})
		})
		r, err := h.client.Do(h.request("POST", "/slow", "body", h.token(access.Token{Writes: true})))
		if err == nil {
			require.NoError(t, r.Body.Close())
		}
		require.NoError(t, h.Close(t.Context())) // the handler has ended
		if arrived {
			require.False(t, ended)
			require.NoError(t, err)
			require.Equal(t, 200, r.StatusCode)
			return
		}
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	h := open(t, func(o *Options) { o.Limits.Connections = 2 })
	bearer := h.token(access.Token{})
	request := fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", h.Addr(), bearer)
	answers := func(c net.Conn) bool {
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err == nil && r.StatusCode == 200
	}
	a, b := h.raw(request), h.raw(request)
	require.True(t, answers(a))
	require.True(t, answers(b))
	c, err := net.Dial("tcp", h.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, _ = io.WriteString(c, request) // the server may have closed it already
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err, "the third is refused")
	require.NoError(t, a.Close())
	require.Eventually(t, func() bool { return answers(h.raw(request)) }, hangs, time.Millisecond)
}

// What is more than the requests at once is refused at once; closing waits for those at work, for a while.
func TestRequestsAreLimited(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	h := open(t, func(o *Options) {
		o.Limits.Requests = 1
		o.Routes = append(o.Routes, Route{Pattern: "GET /slow", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(began)
			<-finish
		})})
	})
	defer end() // before the server is closed
	bearer := h.token(access.Token{})
	done := make(chan int, 1)
	go func() {
		r, err := h.client.Do(h.request("GET", "/slow", "", bearer))
		if err != nil {
			done <- 0
			return
		}
		r.Body.Close()
		done <- r.StatusCode
	}()
	<-began
	got := h.get("/", bearer)
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.NotEmpty(t, got.header.Get("Retry-After"))
	closed := make(chan error, 1)
	go func() { closed <- h.Close(context.Background()) }()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", h.Addr().String())
		if err == nil {
			c.Close()
		}
		return err != nil
	}, hangs, time.Millisecond, "no connection is accepted any more")
	end()
	require.Equal(t, 200, <-done)
	require.NoError(t, <-closed)
}

// A handler that does not end is told to, when the time for closing is over.
func TestCloseEndsRequests(t *testing.T) {
	began := make(chan struct{})
	h := open(t, func(o *Options) {
		o.Routes = append(o.Routes, Route{Pattern: "GET /hangs", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(began)
			<-r.Context().Done()
		})})
	})
	h.raw(fmt.Sprintf("GET /hangs HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", h.Addr(), h.token(access.Token{})))
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.NoError(t, h.Close(ctx))
	require.NoError(t, h.Close(ctx), "again")
}

// An answer that took long to make has its time to be sent, also if it has no body.
func TestLateAnswersAreSent(t *testing.T) {
	h := open(t, func(o *Options) {
		late := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request, past := requestOf(r), time.Now().Add(-time.Hour) // as if it had taken longer than the limit
			request.timed = past
			if err := request.conn.SetWriteDeadline(past); err != nil {
				t.Error(err)
			}
			if r.URL.Query().Has("body") {
				_, _ = w.Write([]byte("late"))
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
		o.Routes = append(o.Routes, Route{Pattern: "GET /v1/late", Scoped: true, Handler: late})
	})
	bearer := h.token(access.Token{})
	require.Equal(t, http.StatusNoContent, h.get("/v1/late", bearer).status)
	require.Equal(t, http.StatusOK, h.get("/v1/late?body", bearer).status)
}
