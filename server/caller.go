package server

import (
	"strings"
	"time"

	"github.com/lineage-store/lineage/server/access"
)

// caller is the authenticated sender of a request.
type caller struct {
	// name is for the log: "socket", "page", or the id of a token.
	name string
	// page is set if the caller is a browser that is signed in to the page.
	page   bool
	writes bool
	scope  access.Scope
	// valid reports whether the caller may still read. It is for long answers.
	valid func(now time.Time) bool
}

// access returns the caller in the form for handlers of other packages.
func (c *caller) access() *access.Caller {
	id, isToken := strings.CutPrefix(c.name, "token ")
	if !isToken {
		id = "local"
	}
	return &access.Caller{ID: id, Writes: c.writes, Scope: c.scope, Valid: c.valid}
}
