package access

import (
	"context"
	"time"
)

// Caller is who makes a request, as the server found out.
type Caller struct {
	// ID is the same for all requests of a caller: the id of its token, or "local" for processes and the page of this user.
	ID string
	// Writes is set if the caller may change the store.
	Writes bool
	Scope  Scope
	// Valid reports whether the caller may still call, for answers that take long.
	Valid func(now time.Time) bool
}

type callerKey struct{}

// With returns the context of a request of a caller.
func With(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Of returns who makes a request, nil if that was not found out.
func Of(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
