package lineage

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Types of other packages that callers need by name.
type (
	// ThreadID identifies a thread.
	ThreadID = structure.ThreadID
	// ContextID identifies a context.
	ContextID = structure.ContextID
	// SpanRef is the address of a span: its Run, and its place in it (Seq).
	SpanRef = structure.SpanRef
	// Window selects positions of a history, counted from 1: From and To are the first and the last,
	// zero for the ends of the history, and Last is the largest number of positions before To.
	Window = structure.Window
	// Overrides are the settings that a context has of its own: SystemPrompt and Model, which are
	// inherited where they are nil, and JSON, a merge patch of the inherited JSON.
	Overrides = structure.Overrides
	// Origin is where content comes from: its Kind (a user, a model, a tool), UserID, ModelID, SourceID
	// (its name elsewhere, such as a URL), and ParentID, the content that it was derived from.
	Origin = content.Origin
	// ContentID identifies a content block.
	ContentID = content.ID
	// Owner is the owner of values: a Scope with the Name of a user or application, the Thread or the
	// Context that belongs to it.
	Owner = structure.Owner
	// VerifyOptions configure Verify: Deep recomputes every id and digest, and compares the index with
	// the journal; Progress is called with the number of bytes checked.
	VerifyOptions = backend.VerifyOptions
)
