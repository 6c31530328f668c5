package lineage

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Types of other packages that callers need by name. The comments list the fields of structs.
type (
	// ThreadID identifies a thread.
	ThreadID = structure.ThreadID
	// ContextID identifies a context.
	ContextID = structure.ContextID
	// SpanRef is the address of a span: its run, and its place in it. The zero SpanRef is the position before the first
	// span.
	//
	//	Run structure.RunID
	//	Seq uint64 // from 1
	SpanRef = structure.SpanRef
	// Window selects positions of a history, counted from 1.
	//
	//	From, To uint64 // the first and last position; zero means the start and the end of the history
	//	Last     uint64 // the maximum number of positions before To; zero is no limit
	Window = structure.Window
	// Overrides are the own settings of a context. What is nil is inherited.
	//
	//	SystemPrompt *string
	//	Model        *string
	//	JSON         []byte // a merge patch of the inherited JSON
	Overrides = structure.Overrides
	// Origin is where content comes from. Every field may be empty.
	//
	//	Kind     content.OriginKind // a user, a model, a tool
	//	UserID   string
	//	ModelID  string
	//	SourceID string    // its name in the source, such as a URL
	//	ParentID ContentID // the content that it was derived from
	Origin = content.Origin
	// ContentID identifies a content block.
	ContentID = content.ID
	// Owner is the owner of values. Only the field for its scope is set.
	//
	//	Scope   structure.Scope
	//	Name    string // of a user or application
	//	Thread  ThreadID
	//	Context ContextID
	Owner = structure.Owner
	// VerifyOptions configure Verify.
	//
	//	Deep     bool                    // recompute every id and digest, and compare the index with the journal
	//	Progress func(done, total int64) // if not nil, called with the number of bytes checked
	VerifyOptions = backend.VerifyOptions
)
