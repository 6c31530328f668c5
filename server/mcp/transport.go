package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lineage-store/lineage/server/access"
)

// MaxRequest limits the size of a client's request, in bytes.
const MaxRequest = 8 << 20

// Run serves a client on a stream until the stream or the context ends.
func (s *Service) Run(ctx context.Context, c Client, in io.ReadCloser, out io.WriteCloser) error {
	err := s.Server(c).Run(ctx, answeringTransport{&mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: MaxRequest}})
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return err
}

type serverKey struct{}

// Handler returns a handler that serves clients over HTTP, each request by itself. A client is the authenticated
// caller (access.Of), and reads within its scope. The URL parameter project, which may be repeated, narrows the
// scope. A client that may change the store may call the tools in writes.
func (s *Service) Handler(writes []string) http.Handler {
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		server, _ := r.Context().Value(serverKey{}).(*mcp.Server)
		return server
	}, &mcp.StreamableHTTPOptions{
		Stateless: true, Logger: s.o.Logger, MaxRequestBodyBytes: MaxRequest, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // the caller of Handler checks the host, which has names of its own
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := access.Of(r.Context())
		if caller == nil {
			http.Error(w, "no credentials", http.StatusUnauthorized)
			return
		}
		scope, ok := narrowed(caller.Scope, r.URL.Query()["project"])
		if !ok {
			http.Error(w, "the token is not for this project", http.StatusForbidden)
			return
		}
		c := Client{Scope: func(context.Context, *mcp.ServerSession) (access.Scope, error) { return scope, nil }}
		if caller.Writes {
			c.Writes = writes
		}
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, s.Server(c))))
	})
}

// narrowed returns the part of a scope that is in some projects. It returns false if there is none.
func narrowed(scope access.Scope, projects []string) (access.Scope, bool) {
	if len(projects) == 0 {
		return scope, true
	}
	if len(scope.Projects) > 0 {
		projects = slices.DeleteFunc(slices.Clone(projects), func(project string) bool { return !slices.Contains(scope.Projects, project) })
	}
	scope.Projects = projects
	return scope, len(projects) > 0 && !slices.Contains(projects, "")
}
