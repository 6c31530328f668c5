package structure

import (
	"errors"
	"fmt"
)

// ErrIncomplete is returned when a record lacks what its kind requires.
var ErrIncomplete = errors.New("incomplete record")

// MarshalRecord returns the binary form of a record by itself. It serves the
// kinds that do not depend on their commit: not blocks, chunks, spans and tips.
func MarshalRecord(r Record) ([]byte, error) { return appendPlain(nil, r) }

// AppendRecord is MarshalRecord that appends to dst.
func AppendRecord(dst []byte, r Record) ([]byte, error) { return appendPlain(dst, r) }

// UnmarshalRecord is the inverse of MarshalRecord. The record shares memory with
// b.
func UnmarshalRecord(kind Kind, b []byte) (Record, error) {
	c := cursor{rest: b}
	r := readPlain(kind, &c)
	if err := c.end(); err != nil {
		return nil, err
	}
	return r, nil
}

// appendPlain writes the records whose form depends on nothing around them.
func appendPlain(dst []byte, r Record) ([]byte, error) {
	switch r := r.(type) {
	case *Thread:
		dst = append(dst, r.ID[:]...)
		dst = appendString(dst, r.SourceID)
		dst = appendString(dst, r.UserID)
		dst = appendString(dst, r.Title)
		dst = appendOptional(dst, r.Metadata)
		dst = append(dst, r.Active[:]...)
		dst = appendUint(dst, r.Incarnation)
		dst = appendTime(dst, r.CreatedAt)
		return appendTime(dst, r.UpdatedAt), nil
	case *Context:
		if err := checkRefs(r.Base, r.Tip); err != nil {
			return nil, fmt.Errorf("context %v: %w", r.ID, err)
		}
		dst = append(dst, r.ID[:]...)
		dst = append(dst, r.Thread[:]...)
		dst = append(dst, r.Parent[:]...)
		dst = appendRef(dst, r.Base)
		dst = appendRef(dst, r.Tip)
		dst = append(dst, r.Set[:]...)
		dst = appendOptionalString(dst, r.Overrides.SystemPrompt)
		dst = appendOptionalString(dst, r.Overrides.Model)
		dst = appendOptional(dst, r.Overrides.JSON)
		dst = appendOptional(dst, r.Metadata)
		return appendTime(dst, r.CreatedAt), nil
	case *Run:
		if err := checkRefs(r.Parent); err != nil {
			return nil, fmt.Errorf("run %v: %w", r.ID, err)
		}
		return appendRef(append(dst, r.ID[:]...), r.Parent), nil
	case *SpanSet:
		if err := checkRefs(r.Parent); err != nil {
			return nil, fmt.Errorf("span set %v: %w", r.ID, err)
		}
		dst = appendRef(append(dst, r.ID[:]...), r.Parent)
		return appendTime(appendUint(dst, r.Count), r.CreatedAt), nil
	case *Branch:
		dst = appendString(append(dst, r.Thread[:]...), r.Name)
		return appendTime(append(dst, r.Context[:]...), r.CreatedAt), nil
	case *Checkpoint:
		if err := checkRefs(r.Span); err != nil {
			return nil, fmt.Errorf("checkpoint %v: %w", r.ID, err)
		}
		dst = append(append(dst, r.ID[:]...), r.Thread[:]...)
		return appendTime(appendRef(appendString(dst, r.Name), r.Span), r.CreatedAt), nil
	case *Summary:
		if err := checkRefs(r.From, r.To); err != nil {
			return nil, fmt.Errorf("summary %v: %w", r.ID, err)
		}
		dst = append(append(dst, r.ID[:]...), r.Context[:]...)
		dst = append(dst, r.Content[:]...)
		dst = appendRef(appendRef(dst, r.From), r.To)
		dst = appendUint(appendUint(dst, r.Level), uint64(len(r.Parts)))
		for _, p := range r.Parts {
			dst = append(dst, p[:]...)
		}
		dst = appendOptional(appendString(dst, r.Model), r.Embedding)
		return appendTime(dst, r.CreatedAt), nil
	case *Reflog:
		if err := checkRefs(r.From, r.To); err != nil {
			return nil, fmt.Errorf("reflog of context %v: %w", r.Context, err)
		}
		dst = appendRef(appendRef(append(dst, r.Context[:]...), r.From), r.To)
		return appendTime(appendString(dst, r.Reason), r.At), nil
	case *Deletion:
		return appendDeletion(dst, r)
	case *Cut:
		return append(dst, r.Run[:]...), nil
	case nil:
		return nil, fmt.Errorf("nil record: %w", ErrIncomplete)
	}
	return nil, fmt.Errorf("%v: %w", r.Kind(), ErrIncomplete)
}

// checkRefs refuses a run without a place: it is no position, and written it
// would come back as the empty one.
func checkRefs(refs ...SpanRef) error {
	for _, r := range refs {
		if r.Seq == 0 && !r.Run.IsZero() {
			return fmt.Errorf("no place in run %v: %w", r.Run, ErrIncomplete)
		}
	}
	return nil
}

func appendDeletion(dst []byte, d *Deletion) ([]byte, error) {
	dst = append(dst, byte(d.Subject))
	switch d.Subject {
	case KindThread:
		dst = append(dst, d.Thread[:]...)
	case KindContext:
		dst = append(dst, d.Context[:]...)
	case KindBranch, KindCheckpoint:
		dst = appendString(append(dst, d.Thread[:]...), d.Name)
	case KindSummary:
		dst = append(append(dst, d.Context[:]...), d.Summary[:]...)
	case KindBlock:
		dst = append(dst, d.Content[:]...)
	default:
		return nil, fmt.Errorf("deletion of a %v: %w", d.Subject, ErrIncomplete)
	}
	return appendTime(dst, d.At), nil
}

// readPlain is the inverse of appendPlain.
func readPlain(kind Kind, c *cursor) Record {
	switch kind {
	case KindThread:
		return &Thread{
			ID: readID[ThreadID](c, "thread id"), SourceID: c.string("source id"), UserID: c.string("user id"),
			Title: c.string("title"), Metadata: c.optional("metadata"), Active: readID[ContextID](c, "active context"),
			Incarnation: c.uint("incarnation"),
			CreatedAt:   c.time("created"), UpdatedAt: c.time("updated"),
		}
	case KindContext:
		return &Context{
			ID: readID[ContextID](c, "context id"), Thread: readID[ThreadID](c, "thread id"),
			Parent: readID[ContextID](c, "parent context"), Base: c.ref("base"), Tip: c.ref("tip"),
			Set: readID[SpanSetID](c, "span set"),
			Overrides: Overrides{
				SystemPrompt: c.optionalString("system prompt"), Model: c.optionalString("model"), JSON: c.optional("overrides"),
			},
			Metadata: c.optional("metadata"), CreatedAt: c.time("created"),
		}
	case KindRun:
		return &Run{ID: readID[RunID](c, "run id"), Parent: c.ref("parent")}
	case KindSpanSet:
		return &SpanSet{
			ID: readID[SpanSetID](c, "span set id"), Parent: c.ref("parent"),
			Count: c.uint("count"), CreatedAt: c.time("created"),
		}
	case KindBranch:
		return &Branch{
			Thread: readID[ThreadID](c, "thread id"), Name: c.string("name"),
			Context: readID[ContextID](c, "context id"), CreatedAt: c.time("created"),
		}
	case KindCheckpoint:
		return &Checkpoint{
			ID: readID[CheckpointID](c, "checkpoint id"), Thread: readID[ThreadID](c, "thread id"),
			Name: c.string("name"), Span: c.ref("span"), CreatedAt: c.time("created"),
		}
	case KindSummary:
		return readSummary(c)
	case KindReflog:
		return &Reflog{
			Context: readID[ContextID](c, "context id"), From: c.ref("from"), To: c.ref("to"),
			Reason: c.string("reason"), At: c.time("time"),
		}
	case KindDeletion:
		return readDeletion(c)
	case KindCut:
		return &Cut{Run: readID[RunID](c, "run id")}
	}
	if c.err == nil {
		c.err = fmt.Errorf("%w: %v", ErrUnknownVersion, kind)
	}
	return nil
}

func readSummary(c *cursor) *Summary {
	s := &Summary{
		ID: readID[SummaryID](c, "summary id"), Context: readID[ContextID](c, "context id"),
		Content: c.contentID("content"), From: c.ref("from"), To: c.ref("to"), Level: c.uint("level"),
	}
	n := c.uint("parts")
	if n > uint64(len(c.rest))/uint64(len(SummaryID{})) {
		c.fail("parts are cut short")
		return s
	}
	if n > 0 {
		s.Parts = make([]SummaryID, n)
	}
	for i := range s.Parts {
		s.Parts[i] = readID[SummaryID](c, "part")
	}
	s.Model, s.Embedding, s.CreatedAt = c.string("model"), c.optional("embedding"), c.time("created")
	return s
}

func readDeletion(c *cursor) *Deletion {
	d := &Deletion{Subject: Kind(c.byte("subject"))}
	switch d.Subject {
	case KindThread:
		d.Thread = readID[ThreadID](c, "thread id")
	case KindContext:
		d.Context = readID[ContextID](c, "context id")
	case KindBranch, KindCheckpoint:
		d.Thread, d.Name = readID[ThreadID](c, "thread id"), c.string("name")
	case KindSummary:
		d.Context, d.Summary = readID[ContextID](c, "context id"), readID[SummaryID](c, "summary id")
	case KindBlock:
		d.Content = c.contentID("content id")
	default:
		c.fail("deletion of a " + d.Subject.String())
	}
	d.At = c.time("time")
	return d
}
