package server

import (
	"log/slog"
	"net/http"

	"github.com/lineage-store/lineage/server/problem"
)

// refuse answers a request that is refused. There are only a few different titles, which are counted.
func (s *Server) refuse(w http.ResponseWriter, _ *http.Request, status int, title, detail string) {
	s.metrics.refused(title)
	problem.New(status, title, detail).Write(w)
}

// fail answers a request that failed. An error that is not the caller's fault is logged and not sent.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, known := problem.Of(err)
	if !known {
		s.o.Logger.LogAttrs(r.Context(), levelError, "request failed", attrErr(err), attrPattern(r))
	}
	s.metrics.refused(p.Title)
	p.Write(w)
}

const levelError = slog.LevelError

func attrErr(err error) slog.Attr { return slog.Any("err", err) }

func attrPattern(r *http.Request) slog.Attr { return slog.String("route", r.Pattern) }
