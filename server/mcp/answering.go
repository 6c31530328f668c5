package mcp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answeringTransport is a transport that ends when the client has sent everything and every request was answered. The library
// ends at once, without answering the requests that it has read.
type answeringTransport struct{ mcp.Transport }

func (t answeringTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &answeringConnection{Connection: c, waiting: make(map[any]bool), closed: make(chan struct{}), answered: make(chan struct{}, 1)}, nil
}

type answeringConnection struct {
	mcp.Connection
	closing sync.Once
	closed  chan struct{}
	// answered gets a value each time a request is answered.
	answered chan struct{}

	mu      sync.Mutex
	waiting map[any]bool // ids of requests without an answer
}

func (c *answeringConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err != nil {
		c.drain(ctx)
		return nil, err
	}
	if r, ok := message.(*jsonrpc.Request); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case r.IsCall():
			c.waiting[r.ID.Raw()] = true
		case r.Method == "notifications/cancelled": // it has no answer
			var params struct{ RequestID any }
			if json.Unmarshal(r.Params, &params) == nil {
				if n, ok := params.RequestID.(float64); ok {
					params.RequestID = int64(n)
				}
				delete(c.waiting, params.RequestID)
			}
		}
	}
	return message, nil
}

func (c *answeringConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if r, ok := message.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.waiting, r.ID.Raw())
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

// drain waits until every request is answered, or the connection is closed.
func (c *answeringConnection) drain(ctx context.Context) {
	for {
		c.mu.Lock()
		left := len(c.waiting)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *answeringConnection) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
