package content

import (
	"slices"
	"strconv"
)

// OriginKind is the kind of source of content. The numbers are on disk and must not change.
type OriginKind uint8

const (
	OriginUnknown   OriginKind = 0 // not stated
	OriginUser      OriginKind = 1 // a person
	OriginAssistant OriginKind = 2 // a model's answer
	OriginSystem    OriginKind = 3 // the program around the model
	OriginImport    OriginKind = 4 // another store or file
	OriginTool      OriginKind = 5 // the output of a tool
)

var originKinds = [...]string{
	OriginUnknown:   "unknown",
	OriginUser:      "user",
	OriginAssistant: "assistant",
	OriginSystem:    "system",
	OriginImport:    "import",
	OriginTool:      "tool",
}

// ParseOriginKind parses the name that String returns. The error is a *ParseError.
func ParseOriginKind(s string) (OriginKind, error) {
	i := slices.Index(originKinds[:], s)
	if i < 0 {
		return OriginUnknown, newParseError("origin kind", s)
	}
	return OriginKind(i), nil
}

// IsValid reports whether the kind is one of the constants.
func (k OriginKind) IsValid() bool { return int(k) < len(originKinds) }

// String returns the kind's name, or its number if it has none.
func (k OriginKind) String() string {
	if !k.IsValid() {
		return "origin kind " + strconv.Itoa(int(k))
	}
	return originKinds[k]
}

// AppendText implements encoding.TextAppender. A kind without a name is an error.
func (k OriginKind) AppendText(b []byte) ([]byte, error) {
	if !k.IsValid() {
		return nil, newParseError("origin kind", strconv.Itoa(int(k)))
	}
	return append(b, originKinds[k]...), nil
}

// MarshalText implements encoding.TextMarshaler. A kind without a name is an error.
func (k OriginKind) MarshalText() ([]byte, error) { return k.AppendText(nil) }

// UnmarshalText implements encoding.TextUnmarshaler. After an error the kind is unchanged.
func (k *OriginKind) UnmarshalText(text []byte) error {
	parsed, err := ParseOriginKind(string(text))
	if err == nil {
		*k = parsed
	}
	return err
}

// Origin states where content comes from. Every field may be absent.
type Origin struct {
	Kind OriginKind
	// UserID is the user, in a store with several users.
	UserID string
	// ModelID is the model that wrote the content.
	ModelID string
	// SourceID is the content's name elsewhere, such as a URL.
	SourceID string
	// ParentID is the content that this was derived or edited from.
	ParentID ID
}

// Attribution is the part of an origin that belongs to one appearance of content: its user,
// model and source. Shared content has none of its own.
type Attribution struct {
	UserID   string
	ModelID  string
	SourceID string
}

// BlockOrigin is the part of an origin that belongs to a block: the kind of origin, and the
// content that it was derived from.
type BlockOrigin struct {
	Kind     OriginKind
	ParentID ID
}

// Attribution returns the part of the origin that belongs to one appearance.
func (o Origin) Attribution() Attribution { return Attribution{o.UserID, o.ModelID, o.SourceID} }

// OfBlock returns the part of the origin that belongs to a block.
func (o Origin) OfBlock() BlockOrigin { return BlockOrigin{o.Kind, o.ParentID} }

// By returns the origin of an appearance of the block.
func (o BlockOrigin) By(a Attribution) Origin {
	return Origin{Kind: o.Kind, UserID: a.UserID, ModelID: a.ModelID, SourceID: a.SourceID, ParentID: o.ParentID}
}

// IsZero reports whether all fields are absent.
func (o Origin) IsZero() bool { return o == Origin{} }

// OriginOfRole returns the kind of origin for messages with a role.
func OriginOfRole(role string) OriginKind {
	switch role {
	case "user":
		return OriginUser
	case "assistant":
		return OriginAssistant
	case "system", "developer":
		return OriginSystem
	case "tool", "function":
		return OriginTool
	}
	return OriginUnknown
}
