package structure

import "github.com/lineage-store/lineage/content"

// Present is the set of optional fields of a usage. Its bits are the flags on disk, frequent
// ones first: flags up to 64 take one byte.
type Present uint64

// Optional fields of a usage.
const (
	HasSource          Present = 1 << iota // a source id
	HasUnique                              // no field: it is the first with its source id
	HasMetadata                            // metadata in the usage
	HasBy                                  // an attribution
	HasForm                                // the content that is the form
	HasName                                // the name of a message, or of the tool of a part
	HasExtras                              // extras of the form
	HasOrigin                              // the origin of a block
	HasType                                // a media type
	HasVersion                             // a version of its source id, 2 or more
	IsOpaque                               // no field: the content is the whole message
	HasMetadataContent                     // the content that is the metadata

	lastPresent = HasMetadataContent
)

// Present returns the optional fields that the usage has.
func (u *Usage) Present() (p Present) {
	for _, field := range [...]struct {
		present bool
		bit     Present
	}{
		{u.SourceID != "", HasSource},
		{u.Lookup == 1, HasUnique},
		{u.Metadata != nil, HasMetadata},
		{u.By != (content.Attribution{}), HasBy},
		{!u.Form.IsZero(), HasForm},
		{u.Name != "" && (u.Kind == MessageUsage || u.Kind == PartUsage), HasName},
		{u.Origin != nil, HasOrigin},
		{u.Type != "", HasType},
		{u.Lookup > 1, HasVersion},
		{len(u.Extras) > 0, HasExtras},
		{u.Opaque, IsOpaque},
		{!u.MetadataContent.IsZero(), HasMetadataContent},
	} {
		if field.present {
			p |= field.bit
		}
	}
	return p
}

// Possible reports whether a usage of the kind can have this set of fields.
func (p Present) Possible(kind UsageKind) bool {
	either := func(a, b Present) bool { return p&a == 0 || p&b == 0 }
	needs := func(a, b Present) bool { return p&a == 0 || p&b != 0 }
	return p < lastPresent<<1 &&
		needs(HasUnique|HasVersion, HasSource) && either(HasUnique, HasVersion) &&
		needs(HasExtras, HasForm) && either(IsOpaque, HasForm) && either(HasMetadataContent, HasMetadata) &&
		(kind == MessageUsage || p&(HasForm|IsOpaque) == 0) &&
		(kind == MessageUsage || kind == PartUsage || p&HasName == 0)
}

// roles are the roles with numbers.
var roles = [...]string{1: "user", 2: "assistant", 3: "system", 4: "tool", 5: "developer", 6: "function"}

// RoleNumber returns the number of a role, or 0.
func RoleNumber(role string) int {
	for i := 1; i < len(roles); i++ {
		if roles[i] == role {
			return i
		}
	}
	return 0
}

// RoleOf returns the role with a number other than 0.
func RoleOf(number int) (role string, ok bool) {
	if number < 1 || number >= len(roles) {
		return "", false
	}
	return roles[number], true
}
