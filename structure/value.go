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

func (*Value) Kind() Kind { return KindValue }
