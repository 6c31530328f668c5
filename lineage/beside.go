package lineage

import "github.com/lineage-store/lineage/internal/rawjson"

// Asides of contexts that are no conversations. They are the member "aside" of a context's metadata.
const (
	// AsideLog has the records of a session or archive that are no messages: events, snapshots, large fields.
	AsideLog = "log"
	// AsideSource says how the lines of a session file follow from messages.
	AsideSource = "source"
)

// BesideMessages reports whether a context with this metadata holds data that an import or a follower keeps next to the
// messages. Searches and exports leave it out.
func BesideMessages(contextMetadata []byte) bool {
	if !rawjson.Valid(contextMetadata) {
		return false
	}
	aside := rawjson.Str(rawjson.Get(contextMetadata, "aside"))
	return aside == AsideLog || aside == AsideSource
}
