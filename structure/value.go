package structure

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
)

// Scope is the kind of owner of a value.
type Scope uint8

// The scopes. The values are part of the disk format.
const (
	StoreScope       Scope = 1
	ApplicationScope Scope = 2
	UserScope        Scope = 3
	ThreadScope      Scope = 4
	ContextScope     Scope = 5
)

var scopeNames = [...]string{
	StoreScope: "store", ApplicationScope: "application", UserScope: "user", ThreadScope: "thread", ContextScope: "context",
}

// String returns the name of the scope.
func (s Scope) String() string {
	if int(s) < len(scopeNames) && scopeNames[s] != "" {
		return scopeNames[s]
	}
	return "scope " + strconv.Itoa(int(s))
}

// Owner is the owner of values. Only the field for its scope is set.
type Owner struct {
	Scope   Scope
	Name    string // of an application or user
	Thread  ThreadID
	Context ContextID
}

// String returns the scope and the owner.
func (o Owner) String() string {
	switch o.Scope {
	case ApplicationScope, UserScope:
		return fmt.Sprintf("%v %.80q", o.Scope, o.Name)
	case ThreadScope:
		return fmt.Sprintf("%v %v", o.Scope, o.Thread)
	case ContextScope:
		return fmt.Sprintf("%v %v", o.Scope, o.Context)
	}
	return o.Scope.String()
}

// ValueKey identifies a value: an owner has one value per key.
type ValueKey struct {
	Owner Owner
	Key   string
}

// Name returns the owner and the key, for messages.
func (k ValueKey) Name() string { return fmt.Sprintf("%v: %.80q", k.Owner, k.Key) }

// MaxValueName is the largest size in bytes of a value's key, and of the name of an
// application or user.
const MaxValueName = 512

// MaxInlineValue is the largest size in bytes of the JSON in a value record. Larger JSON is
// stored as a block.
const MaxInlineValue = 64 << 10

// Value sets a named JSON value, or deletes it. It replaces earlier records with the same
// key; in one commit the last counts.
type Value struct {
	ValueKey
	// Incarnation is the incarnation of the thread that owns the value.
	Incarnation uint64
	// JSON is the value, stored byte for byte, unless it is in Content. If neither is set,
	// the value is deleted.
	JSON    []byte
	Content content.ID
	// Seen is the tip of the context that owns the value, when the value was set. Forks that
	// start after it inherit the value. See SetBefore.
	Seen SpanRef
	At   time.Time
}

// CollectedSpan replaces a collected span in Value.Seen. It is in no run.
var CollectedSpan = SpanRef{Seq: 1}

// Deleted reports whether the record deletes the value.
func (v *Value) Deleted() bool { return v.JSON == nil && v.Content.IsZero() }

// Home returns the thread that owns the value, or zero.
func (v *Value) Home() Home { return Home{v.Owner.Thread, v.Incarnation} }

// SetBefore reports whether the value was set before a span of its context was added: a
// context that starts at the span inherits it, unless a later value was also set before the
// span.
//
// It does not look up the run of Seen, which may have been collected.
func (v *Value) SetBefore(span SpanRef, runs RunLookup) (bool, error) {
	switch v.Seen {
	case SpanRef{}:
		return true, nil
	case span, CollectedSpan:
		return false, nil
	}
	for !span.IsZero() && span.Run != v.Seen.Run {
		run, _, err := locate(span, runs)
		if err != nil {
			return false, err
		}
		if !run.Parent.IsZero() {
			if _, _, err = parentRun(run, runs); err != nil {
				return false, err
			}
		}
		span = run.Parent
	}
	return v.Seen.Seq <= span.Seq, nil
}

// InheritedAt returns the position as of which a context reads the values of its parent,
// given the position as of which its own are read: the base of the context, or the position
// if that is before the base.
func InheritedAt(at, base SpanRef, runs RunLookup) (SpanRef, error) {
	before, err := Position(at, runs)
	if err != nil {
		return SpanRef{}, err
	}
	start, err := Position(base, runs)
	if err != nil || before >= start {
		return base, err
	}
	is, err := IsAncestor(at, base, runs)
	if err != nil || !is {
		return base, err
	}
	return at, nil
}

// Check returns an error for a value that cannot be stored.
func (v *Value) Check() error {
	if why := v.fault(); why != "" {
		return fmt.Errorf("%s: %w", why, ErrIncomplete)
	}
	return nil
}

// fault returns what is wrong with the value, or "".
func (v *Value) fault() string {
	if why := v.ValueKey.fault(); why != "" {
		return why
	}
	switch {
	case v.JSON != nil && !v.Content.IsZero():
		return "both JSON and content"
	case v.JSON != nil && len(v.JSON) == 0:
		return "empty JSON"
	case len(v.JSON) > MaxInlineValue:
		return fmt.Sprintf("JSON of %d bytes, more than %d", len(v.JSON), MaxInlineValue)
	case v.Incarnation != 0 && v.Owner.Scope != ThreadScope:
		return "incarnation of no thread"
	case !v.Seen.IsZero() && v.Owner.Scope != ContextScope:
		return "span seen by no context"
	}
	return ""
}

func (k ValueKey) fault() string {
	if why := k.Owner.fault(); why != "" {
		return why
	}
	if !isValueName(k.Key) {
		return fmt.Sprintf("key %.80q is not 1 to %d bytes of UTF-8 without NUL", k.Key, MaxValueName)
	}
	return ""
}

// Valid reports whether values can belong to the owner.
func (o Owner) Valid() bool { return o.fault() == "" }

func (o Owner) fault() string {
	named := o.Scope == ApplicationScope || o.Scope == UserScope
	switch {
	case o.Scope < StoreScope || o.Scope > ContextScope:
		return "unknown " + o.Scope.String()
	case !named && o.Name != "", o.Scope != ThreadScope && !o.Thread.IsZero(), o.Scope != ContextScope && !o.Context.IsZero():
		return "owner of another scope than " + o.Scope.String()
	case named && !isValueName(o.Name):
		return fmt.Sprintf("name %.80q is not 1 to %d bytes of UTF-8 without NUL", o.Name, MaxValueName)
	}
	return ""
}

func isValueName(s string) bool {
	return s != "" && len(s) <= MaxValueName && strings.IndexByte(s, 0) < 0 && utf8.ValidString(s)
}

// Forms of a value.
const (
	valueDeleted = 0
	valueInline  = 1
	valueContent = 2
)

func (v *Value) form() uint8 {
	switch {
	case v.JSON != nil:
		return valueInline
	case !v.Content.IsZero():
		return valueContent
	}
	return valueDeleted
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
	form := r.form()
	f.Small("form", &form)
	switch form {
	case valueDeleted:
	case valueInline:
		f.Optional("json", &r.JSON)
	case valueContent:
		f.Content("content", &r.Content)
	}
	f.Time("time", &r.At)
	if form != r.form() {
		f.Refuse("value of another form")
	}
	if why := r.fault(); why != "" {
		f.Refuse(why)
	}
}
