package server

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// pagePolicy is the Content-Security-Policy of the page: everything that it shows comes from the server, and no
// script or style is in its markup.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Header values of every answer. They are shared: Set and Add of a header create new values.
var (
	pagePolicies = []string{pagePolicy}
	noSniff      = []string{"nosniff"}
	noReferrer   = []string{"no-referrer"}
	sameOrigin   = []string{"same-origin"}
	noStore      = []string{"no-store"}
)

// setHeaders sets the headers of every answer. A handler may change them.
func setHeaders(h http.Header) {
	h["Content-Security-Policy"] = pagePolicies
	h["X-Content-Type-Options"] = noSniff
	h["Referrer-Policy"] = noReferrer
	h["Cross-Origin-Opener-Policy"] = sameOrigin
	h["Cross-Origin-Resource-Policy"] = sameOrigin
	h["Cache-Control"] = noStore
}

// noted records the route of a request for the log.
func noted(pattern string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requestOf(r).pattern = pattern
		next.ServeHTTP(w, r)
	})
}

// observed logs and counts requests: the method, the route and the path, but not the query, headers or body. A panic
// in a handler fails only its own request.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		setHeaders(w.Header())
		started, r := s.begin(w, r)
		defer func() {
			failed, answered := recover(), started.status != 0
			if failed != nil && failed != http.ErrAbortHandler {
				s.o.Logger.Error("request panicked", "err", fmt.Sprint(failed), "route", started.pattern, "stack", string(debug.Stack()))
				if !answered {
					s.refuse(started, r, http.StatusInternalServerError, "failed", "the log of the server says why")
				}
			}
			elapsed := time.Since(began)
			s.metrics.request(started.pattern, started.status, elapsed)
			if s.o.Logger.Enabled(r.Context(), slog.LevelInfo) {
				s.o.Logger.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
					slog.String("route", started.pattern), slog.Int("status", started.status), slog.Int64("bytes", started.bytes), slog.Duration("took", elapsed), slog.String("caller", started.name()))
			}
			if failed != nil && answered {
				panic(http.ErrAbortHandler) // the answer is cut off, and the caller must notice that
			}
		}()
		next.ServeHTTP(started, r)
	})
}

// healthz answers that the process is alive.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

// readyTimeout limits the time for the check that the store can be used.
const readyTimeout = 2 * time.Second

// readyz answers whether the store can be read.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	_, err := s.o.Store.View().Head(ctx)
	if err == nil && s.o.Ready != nil {
		err = s.o.Ready()
	}
	if err != nil {
		s.o.Logger.Warn("not ready", "err", err)
		s.refuse(w, r, http.StatusServiceUnavailable, "not ready", "the store cannot be read")
		return
	}
	s.healthz(w, r)
}

// showMetrics answers in the text format of Prometheus.
func (s *Server) showMetrics(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	metric := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	m := &s.metrics
	m.mu.Lock()
	labels := slices.SortedFunc(maps.Keys(m.requests), func(a, b requestLabels) int {
		return strings.Compare(fmt.Sprint(a.route, " ", a.status), fmt.Sprint(b.route, " ", b.status))
	})
	metric("lineage_requests_total", "counter", "Requests by route and status.")
	for _, l := range labels {
		fmt.Fprintf(&b, "lineage_requests_total{route=%q,status=\"%d\"} %d\n", l.route, l.status, m.requests[l].n)
	}
	metric("lineage_request_seconds_total", "counter", "Time of requests by route and status.")
	for _, l := range labels {
		fmt.Fprintf(&b, "lineage_request_seconds_total{route=%q,status=\"%d\"} %g\n", l.route, l.status, m.requests[l].seconds)
	}
	metric("lineage_refused_total", "counter", "Requests that were not done, by reason.")
	for _, why := range slices.Sorted(maps.Keys(m.refusals)) {
		fmt.Fprintf(&b, "lineage_refused_total{reason=%q} %d\n", why, m.refusals[why])
	}
	metric("lineage_events_sent_total", "counter", "Messages of streams of events.")
	fmt.Fprintf(&b, "lineage_events_sent_total %d\n", m.events)
	metric("lineage_streams_dropped_total", "counter", "Streams of events whose reader was too slow or went away.")
	fmt.Fprintf(&b, "lineage_streams_dropped_total %d\n", m.dropped)
	m.mu.Unlock()
	metric("lineage_requests_at_work", "gauge", "Requests that are being answered.")
	fmt.Fprintf(&b, "lineage_requests_at_work %d\n", s.limits.requests.Load())
	metric("lineage_event_streams", "gauge", "Open streams of events.")
	fmt.Fprintf(&b, "lineage_event_streams %d\n", s.limits.streams.Load())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String())) // the caller may be gone
}

// begin returns the state of a request, and the request with the state.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) (*request, *http.Request) {
	started := &request{ResponseWriter: w, conn: http.NewResponseController(w), atLeast: s.o.Limits.Write, g: &s.limits}
	return started, r.WithContext(context.WithValue(r.Context(), requestKey{}, started))
}
