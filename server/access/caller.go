package access

import (
	"context"
	"time"
)

// Caller is the authenticated sender of a request.
type Caller struct {
	// ID is the same for all requests of a caller: the id of its token, or "local" for processes and the page of this
	// user.
	ID string
	// Writes is set if the caller may change the store.
	Writes bool
	Scope  Scope
	// Valid reports whether the caller is still authorized. It is for long answers.
	Valid func(now time.Time) bool
}

type callerKey struct{}

// With returns a context with the caller of a request.
func With(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Of returns the caller of a request, nil if it is unknown.
func Of(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
