package lineage

import "github.com/lineage-store/lineage/internal/rawjson"

// Asides of contexts that are not conversations. They are the member "aside" in the metadata of a context.
const (
	// AsideLog has the records of a session or archive that are not messages: events, snapshots, large fields.
	AsideLog = "log"
	// AsideSource says how the lines of a session file are composed of messages.
	AsideSource = "source"
)

// AsideOf returns what the metadata of a context say that it is beside a conversation, or "".
func AsideOf(contextMetadata []byte) string {
	if !rawjson.Valid(contextMetadata) { // other programs may have set it
		return ""
	}
	return rawjson.Str(rawjson.Get(contextMetadata, "aside"))
}

// BesideMessages reports whether a context with this metadata has data that an import or a follower keeps beside the
// messages. Searches and exports leave it out.
func BesideMessages(contextMetadata []byte) bool {
	aside := AsideOf(contextMetadata)
	return aside == AsideLog || aside == AsideSource
}
