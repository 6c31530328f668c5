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
	// Window selects positions of a history, counted from 1. From and To are the first and last position; zero means
	// the start and the end of the history. Last is the maximum number of positions before To.
	Window = structure.Window
	// Overrides are the own settings of a context. SystemPrompt and Model are inherited if they are nil. JSON is a
	// merge patch of the inherited JSON.
	Overrides = structure.Overrides
	// Origin is where content comes from: its Kind (a user, a model, a tool), UserID, ModelID, SourceID (its name in
	// the source, such as a URL), and ParentID, the content that it was derived from.
	Origin = content.Origin
	// ContentID identifies a content block.
	ContentID = content.ID
	// Owner is the owner of values: a Scope with the Name of a user or application, the Thread or the Context.
	Owner = structure.Owner
	// VerifyOptions configure Verify: Deep recomputes every id and digest, and compares the index with
	// the journal; Progress is called with the number of bytes checked.
	VerifyOptions = backend.VerifyOptions
)
