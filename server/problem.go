package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/lineage-store/lineage/lineage"
)

// problem is the answer to a request that fails (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// refuse answers a request that is not done. The title is one of a few, which are counted.
func (s *Server) refuse(w http.ResponseWriter, _ *http.Request, status int, title, detail string) {
	s.metrics.refused(title)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(problem{title, status, detail}) // the caller may have gone
}

// fail answers a request that failed. What is not the caller's fault is logged and not sent.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case r.Context().Err() != nil: // nobody reads it
		return
	case errors.Is(err, lineage.ErrNotFound):
		s.refuse(w, r, http.StatusNotFound, "not found", "it is not in the store, or not for this caller")
	case errors.Is(err, lineage.ErrErased):
		s.refuse(w, r, http.StatusGone, "erased", "its bytes were erased")
	case errors.Is(err, lineage.ErrInvalid):
		s.refuse(w, r, http.StatusBadRequest, "invalid", err.Error())
	case errors.Is(err, lineage.ErrDiverged):
		s.refuse(w, r, http.StatusConflict, "another history", "the store does not have this commit any more: read its state again")
	case errors.Is(err, lineage.ErrClosed), errors.Is(err, lineage.ErrExpired), errors.Is(err, context.Canceled):
		s.refuse(w, r, http.StatusServiceUnavailable, "closing", "the server is closing")
	default:
		s.o.Logger.LogAttrs(r.Context(), levelError, "request failed", attrErr(err), attrPattern(r))
		s.refuse(w, r, http.StatusInternalServerError, "failed", "the log of the server says why")
	}
}
