package server

import (
	"io"
	"net/http"
	"time"
)

// request is the state of a request in progress, and the writer of its answer. Each part of an answer has some time to
// be sent.
type request struct {
	http.ResponseWriter
	conn *http.ResponseController
	// atLeast is the minimum time to send a part of the answer. timed is when it was last set.
	atLeast time.Duration
	timed   time.Time

	status  int
	bytes   int64
	pattern string  // of the route
	caller  *caller // nil until it is known

	g *gates
	// counted is set while the request counts as one at work.
	counted bool
	// body is the body without the usual limit of its size.
	body io.ReadCloser
}

type requestKey struct{}

// requestOf returns the state of a request.
func requestOf(r *http.Request) *request {
	state, _ := r.Context().Value(requestKey{}).(*request)
	return state
}

func callerOf(r *http.Request) *caller { return requestOf(r).caller }

// count counts the request as one at work, and reports whether there may be so many.
func (w *request) count() bool {
	w.counted = true
	return w.g.requests.Add(1) <= int64(w.g.limits.Requests)
}

// free ends what count began. It may be called twice.
func (w *request) free() {
	if w.counted {
		w.counted = false
		w.g.requests.Add(-1)
	}
}

// extend gives the next part of the answer its time.
func (w *request) extend(now time.Time) {
	if now.Sub(w.timed) > w.atLeast/8 {
		w.timed = now
		_ = w.conn.SetWriteDeadline(now.Add(w.atLeast + w.atLeast/8)) // if this fails, the write fails
	}
}

// name returns the caller for the log.
func (w *request) name() string {
	if w.caller == nil {
		return ""
	}
	return w.caller.name
}

// WriteHeader implements http.ResponseWriter.
func (w *request) WriteHeader(status int) {
	w.extend(time.Now()) // an answer without a body has only this
	if w.status == 0 || w.status < http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *request) Write(b []byte) (int, error) {
	w.extend(time.Now())
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *request) Unwrap() http.ResponseWriter { return w.ResponseWriter }
