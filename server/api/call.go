package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/problem"
)

// handler returns the handler of a route.
func (a *API) handler(r *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		setHeaders(w.Header())
		c := &call{a: a, route: r, w: w, r: req, caller: access.Of(req.Context())}
		if c.caller == nil { // an error in the server: nobody may do anything
			problem.New(http.StatusUnauthorized, "no credentials", "the caller is not known").Write(w)
			return
		}
		c.within = within{store: a.o.Store, caller: c.caller, handles: &a.handles}
		if err := c.may(r); err != nil { // the server checks this too
			a.fail(w, req, err)
			return
		}
		arriving := &uploadedBody{ReadCloser: req.Body}
		if r.upload {
			req.Body = arriving
		}
		release, err := c.readBody(r)
		if err == nil {
			defer release()
			err = r.serve(a, c)
		}
		if err != nil && arriving.cut {
			err = errCut
		}
		if err != nil {
			a.fail(w, req, err)
		}
	})
}

// uploadedBody is a body of bytes. cut is set if it ended early.
type uploadedBody struct {
	io.ReadCloser
	cut bool
}

func (u *uploadedBody) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	var large *http.MaxBytesError
	if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &large) {
		u.cut = true
	}
	return n, err
}

var errCut = problem.New(http.StatusBadRequest, "invalid", "the body did not arrive whole")

// setHeaders changes the headers that the server sets for documents: an answer of the API is none.
func setHeaders(h http.Header) {
	h["Content-Security-Policy"] = policies
	delete(h, "Cross-Origin-Opener-Policy")
	delete(h, "Referrer-Policy")
}

// may returns an error if the caller may not call a route.
func (c *call) may(r *route) error {
	switch {
	case r.needs.writes && !c.caller.Writes:
		return problem.New(http.StatusForbidden, "not allowed", "the token is read-only")
	case r.needs.whole && !c.caller.Scope.All():
		return errWhole
	}
	return nil
}

// fail answers a request that failed.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	var ambiguous *refs.AmbiguousError
	if errors.As(err, &ambiguous) { // names in one thread, which the caller may read
		err = problem.New(http.StatusConflict, "ambiguous", ambiguous.Error()+"; "+ambiguous.Hint())
	}
	p, known := problem.Of(err)
	var in *operationError
	if errors.As(err, &in) && !strings.HasPrefix(p.Detail, in.place()) {
		within := *p
		within.Detail = in.place() + p.Detail
		p = &within
	}
	if !known {
		a.o.Logger.LogAttrs(context.WithoutCancel(r.Context()), levelError, "request failed", attr("err", err.Error()), attr("route", r.Pattern))
	}
	p.Write(w)
}

const (
	// smallBody is the size up to which bodies are not counted. maxBodies limits the total size of other bodies in
	// memory.
	smallBody = 256 << 10
	maxBodies = 128 << 20
)

// readBody reads the body of a route with a JSON body.
func (c *call) readBody(r *route) (release func(), err error) {
	if r.upload || c.r.Body == nil || c.r.Body == http.NoBody || c.r.ContentLength == 0 {
		return func() {}, nil
	}
	if release, err = c.hold(maxBody); err != nil {
		return nil, err
	}
	if c.body, err = io.ReadAll(c.r.Body); err != nil {
		release()
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, err
		}
		return nil, errCut
	}
	if !utf8.Valid(c.body) { // it would be changed when it is read
		release()
		return nil, fmt.Errorf("body: %w: JSON must be UTF-8", lineage.ErrInvalid)
	}
	return release, nil
}

// hold counts a body that will be in memory until release is called. Its reader stops after most bytes.
func (c *call) hold(most int64) (release func(), err error) {
	size := c.r.ContentLength
	if size < 0 || size > most {
		size = most
	}
	if size <= smallBody {
		return func() {}, nil
	}
	if c.a.bodies.Add(size) > maxBodies {
		c.a.bodies.Add(-size)
		return nil, problem.New(http.StatusServiceUnavailable, "too many requests", "try again in a moment")
	}
	return func() { c.a.bodies.Add(-size) }, nil
}
