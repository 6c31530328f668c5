// Package problem writes the errors of the server as problem details (RFC 9457).
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/lineage-store/lineage/lineage"
)

// Prefix is the prefix of the type of each problem. The name follows.
const Prefix = "urn:lineage:problem:"

// Problem is the answer to a failed request.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Tip is the actual tip of a context, for a request that expected another one. It is empty for an empty history.
	Tip *string `json:"tip,omitempty"`
}

// New returns a problem. There are only a few titles, which are counted. The type is the title with hyphens.
func New(status int, title, detail string) *Problem {
	name := []byte(title)
	for i, c := range name {
		if c == ' ' {
			name[i] = '-'
		}
	}
	return &Problem{Type: Prefix + string(name), Title: title, Status: status, Detail: detail}
}

// Error implements error, so that a handler can return a problem.
func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// Write answers a request. A failure to write is ignored, because the caller may be gone.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Del("ETag")
	h.Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// sentinels are errors of the library whose text may be sent to the caller.
var sentinels = []struct {
	err    error
	status int
	title  string
}{
	{lineage.ErrTipMoved, http.StatusPreconditionFailed, "tip moved"},
	{lineage.ErrExists, http.StatusConflict, "exists"},
	{lineage.ErrOtherUser, http.StatusConflict, "other user"},
	{lineage.ErrProtected, http.StatusConflict, "protected"},
	{lineage.ErrInvalid, http.StatusBadRequest, "invalid"},
	{lineage.ErrTooLarge, http.StatusRequestEntityTooLarge, "too large"},
}

// fixed are errors whose text must not be sent. It may name things that the caller may not know, or files of the
// machine.
var fixed = []struct {
	err           error
	status        int
	title, detail string
}{
	{lineage.ErrNotFound, http.StatusNotFound, "not found", "it is not in the store, or not for this caller"},
	{lineage.ErrErased, http.StatusGone, "erased", "its bytes were erased"},
	{lineage.ErrDiverged, http.StatusConflict, "another history", "the store does not have this commit any more: read its state again"},
	{lineage.ErrConflict, http.StatusConflict, "conflict", "another writer was first: read the state again"},
	{lineage.ErrUncertain, http.StatusInternalServerError, "uncertain", "the disk failed: the change may or may not be stored"},
	{lineage.ErrReadOnly, http.StatusForbidden, "read-only", "the store cannot be changed"},
	{lineage.ErrClosed, http.StatusServiceUnavailable, "closing", "the server is closing"},
	{lineage.ErrExpired, http.StatusServiceUnavailable, "closing", "the server is closing"},
	{context.Canceled, http.StatusServiceUnavailable, "closing", "the server is closing"},
}

// Of returns the problem for an error. known is false for an error that is not the caller's fault. Its text is only
// for the log.
func Of(err error) (p *Problem, known bool) {
	if errors.As(err, &p) {
		return p, true
	}
	var size *http.MaxBytesError
	if errors.As(err, &size) {
		return New(http.StatusRequestEntityTooLarge, "too large", "the body is larger than is accepted here"), true
	}
	for _, s := range sentinels {
		if !errors.Is(err, s.err) {
			continue
		}
		p = New(s.status, s.title, err.Error())
		var tip *lineage.TipError
		if errors.As(err, &tip) {
			id := ""
			if !tip.Actual.IsZero() {
				id = tip.Actual.String()
			}
			p.Tip = &id
		}
		return p, true
	}
	for _, f := range fixed {
		if errors.Is(err, f.err) {
			return New(f.status, f.title, f.detail), true
		}
	}
	return New(http.StatusInternalServerError, "failed", "the log of the server says why"), false
}
