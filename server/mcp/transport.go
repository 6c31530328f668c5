package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRequest limits a request of a client in bytes.
const maxRequest = 8 << 20

// Run answers a client on a stream until it ends, or the context does.
func (s *Service) Run(ctx context.Context, c Client, in io.ReadCloser, out io.WriteCloser) error {
	err := s.Server(c).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: maxRequest})
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return err
}

type serverKey struct{}

// Handler returns a handler that answers clients over HTTP, each request by itself. client returns who makes a request; if
// it returns none, it has answered.
func (s *Service) Handler(client func(http.ResponseWriter, *http.Request) *Client) http.Handler {
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		server, _ := r.Context().Value(serverKey{}).(*mcp.Server)
		return server
	}, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: s.o.Logger, MaxRequestBodyBytes: maxRequest, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // whoever mounts it checks the host, which has names of its own
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := client(w, r)
		if c == nil {
			return
		}
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, s.Server(*c))))
	})
}
