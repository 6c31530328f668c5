package structure

import (
	"time"

	"github.com/lineage-store/lineage/content"
)

// Fields visits the fields of a plain record. It reads or sets the given variables.
// Names are unique within a kind.
type Fields interface {
	// ID is the id of a record of some kind, or zero.
	ID(name string, idKind Kind, id *[16]byte)
	// Ref is the address of a span, or the empty position.
	Ref(name string, ref *SpanRef)
	Content(name string, id *content.ID)
	Text(name string, s *string)
	// OptionalText and Optional are nil when absent.
	OptionalText(name string, s **string)
	Optional(name string, b *[]byte)
	Uint(name string, v *uint64)
	// Small is a number below 16.
	Small(name string, v *uint8)
	Flag(name string, v *bool)
	Time(name string, t *time.Time)
	// Count returns the number of elements that follow, each of at least so many bytes.
	// given is the number in the record.
	Count(name string, given, least int) int
	// Refuse is called for a record that has no binary form.
	Refuse(why string)
	// Failed reports whether the visitor has stopped.
	Failed() bool
}

// Walk visits the fields of a plain record in their order on disk. A record is plain if
// its binary form does not depend on other records: blocks, chunks, spans and tips are
// not plain. Walk reports whether the record is plain.
//
// This is the only list of the fields. The binary form, copies, comparisons and the
// columns of packs are derived from it.
func Walk(r Record, f Fields) bool {
	switch r := r.(type) {
	case *Thread:
		walkThread(r, f)
	case *Context:
		walkContext(r, f)
	case *Run:
		walkID(f, "run id", KindRun, &r.ID)
		f.Ref("parent", &r.Parent)
		walkID(f, "thread id", KindThread, &r.Home.Thread)
		if !r.Home.Thread.IsZero() {
			f.Uint("incarnation", &r.Home.Incarnation)
		} else if r.Home.Incarnation != 0 {
			f.Refuse("incarnation of no thread")
		}
	case *SpanSet:
		walkID(f, "span set id", KindSpanSet, &r.ID)
		f.Ref("parent", &r.Parent)
		f.Uint("count", &r.Count)
		f.Time("created", &r.CreatedAt)
	case *Branch:
		walkID(f, "thread id", KindThread, &r.Thread)
		f.Text("name", &r.Name)
		f.Text("source id", &r.SourceID)
		walkID(f, "context id", KindContext, &r.Context)
		f.Uint("order", &r.Order)
		f.Time("created", &r.CreatedAt)
	case *Checkpoint:
		walkID(f, "checkpoint id", KindCheckpoint, &r.ID)
		walkID(f, "thread id", KindThread, &r.Thread)
		f.Text("name", &r.Name)
		f.Text("source id", &r.SourceID)
		f.Ref("span", &r.Span)
		f.Uint("order", &r.Order)
		f.Time("created", &r.CreatedAt)
	case *Summary:
		walkSummary(r, f)
	case *Reflog:
		walkID(f, "context id", KindContext, &r.Context)
		f.Ref("from", &r.From)
		f.Ref("to", &r.To)
		f.Text("reason", &r.Reason)
		f.Time("time", &r.At)
	case *Deletion:
		walkDeletion(r, f)
	case *Cut:
		walkID(f, "run id", KindRun, &r.Run)
	case *Value:
		walkValue(r, f)
	case *Remnant:
		walkID(f, "context id", KindContext, &r.ID)
		walkID(f, "parent context", KindContext, &r.Parent)
		walkOverrides(&r.Overrides, f)
	default:
		return false
	}
	return true
}

func walkID[K any](f Fields, name string, idKind Kind, id *ID[K]) {
	f.ID(name, idKind, (*[16]byte)(id))
}

func walkThread(r *Thread, f Fields) {
	walkID(f, "thread id", KindThread, &r.ID)
	f.Text("source id", &r.SourceID)
	f.Text("user id", &r.UserID)
	f.Text("title", &r.Title)
	f.Optional("metadata", &r.Metadata)
	walkID(f, "active context", KindContext, &r.Active)
	f.Uint("incarnation", &r.Incarnation)
	f.Flag("keeps", &r.Keeps)
	f.Uint("named", &r.Named)
	f.Time("created", &r.CreatedAt)
	f.Time("updated", &r.UpdatedAt)
}

func walkContext(r *Context, f Fields) {
	walkID(f, "context id", KindContext, &r.ID)
	walkID(f, "thread id", KindThread, &r.Thread)
	walkID(f, "parent context", KindContext, &r.Parent)
	f.Ref("base", &r.Base)
	f.Ref("tip", &r.Tip)
	walkID(f, "span set", KindSpanSet, &r.Set)
	walkOverrides(&r.Overrides, f)
	f.Optional("metadata", &r.Metadata)
	f.Time("created", &r.CreatedAt)
}

func walkOverrides(o *Overrides, f Fields) {
	f.OptionalText("system prompt", &o.SystemPrompt)
	f.OptionalText("model", &o.Model)
	f.Optional("overrides", &o.JSON)
}

func walkSummary(r *Summary, f Fields) {
	walkID(f, "summary id", KindSummary, &r.ID)
	walkID(f, "context id", KindContext, &r.Context)
	f.Content("content", &r.Content)
	f.Ref("from", &r.From)
	f.Ref("to", &r.To)
	f.Uint("level", &r.Level)
	n := f.Count("parts", len(r.Parts), len(SummaryID{}))
	for i := 0; i < n && !f.Failed(); i++ {
		if i == len(r.Parts) {
			r.Parts = append(r.Parts, SummaryID{})
		}
		walkID(f, "part", KindSummary, &r.Parts[i])
	}
	f.Text("model", &r.Model)
	f.Optional("embedding", &r.Embedding)
	f.Time("created", &r.CreatedAt)
}

func walkDeletion(r *Deletion, f Fields) {
	f.Small("subject", (*uint8)(&r.Subject))
	switch r.Subject {
	case KindThread:
		walkID(f, "thread id", KindThread, &r.Thread)
	case KindContext:
		walkID(f, "context id", KindContext, &r.Context)
	case KindBranch, KindCheckpoint:
		walkID(f, "thread id", KindThread, &r.Thread)
		f.Text("name", &r.Name)
	case KindSummary:
		walkID(f, "context id", KindContext, &r.Context)
		walkID(f, "summary id", KindSummary, &r.Summary)
	case KindBlock:
		f.Content("content id", &r.Content)
	default:
		f.Refuse("of a " + r.Subject.String())
	}
	f.Time("time", &r.At)
}

// NewPlain returns an empty plain record of a kind, or nil for other kinds.
func NewPlain(kind Kind) Record {
	switch kind {
	case KindThread:
		return &Thread{}
	case KindContext:
		return &Context{}
	case KindRun:
		return &Run{}
	case KindSpanSet:
		return &SpanSet{}
	case KindBranch:
		return &Branch{}
	case KindCheckpoint:
		return &Checkpoint{}
	case KindSummary:
		return &Summary{}
	case KindReflog:
		return &Reflog{}
	case KindDeletion:
		return &Deletion{}
	case KindCut:
		return &Cut{}
	case KindValue:
		return &Value{}
	case KindRemnant:
		return &Remnant{}
	}
	return nil
}

func walkValue(r *Value, f Fields) {
	f.Small("scope", (*uint8)(&r.Owner.Scope))
	switch r.Owner.Scope {
	case ApplicationScope, UserScope:
		f.Text("owner", &r.Owner.Name)
	case ThreadScope:
		walkID(f, "thread id", KindThread, &r.Owner.Thread)
		f.Uint("incarnation", &r.Incarnation)
	case ContextScope:
		walkID(f, "context id", KindContext, &r.Owner.Context)
		f.Ref("seen", &r.Seen)
	}
	f.Text("key", &r.Key)
	form := r.form() // of a record that is read, it is known only after this field
	f.Small("form", &form)
	switch form {
	case valueDeleted:
	case valueInline:
		f.Optional("json", &r.JSON)
	case valueContent:
		f.Content("content", &r.Content)
	}
	f.Time("time", &r.At)
	if form != r.form() { // such as one without content
		f.Refuse("value of another form")
	}
	if why := r.fault(); why != "" {
		f.Refuse(why)
	}
}
