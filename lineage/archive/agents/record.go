package agents

import (
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// record is a line of a session while it is read, with what the records of all agents state.
type record struct {
	archive.Node
	kind    string
	message []byte
	// hasParent is set if it states its parent, even if that is none.
	hasParent bool
	// rest are the members that are not in the node. They become its metadata.
	rest rawjson.Object
}

// keys are the names that an agent has for members of records.
type keys struct{ id, parent, message string }

// uuidKeys are those of Claude Code and Qwen Code.
var uuidKeys = keys{id: "uuid", parent: "parentUuid", message: "message"}

// take reads a member that all agents have, and reports whether it is one.
func (r *record) take(m rawjson.Member, k keys) bool {
	switch m.Key {
	case "type":
		r.kind = rawjson.Str(m.Value)
	case k.id:
		r.ID = rawjson.Str(m.Value)
	case k.parent:
		r.hasParent, r.Parent = true, rawjson.Str(m.Value)
	case "timestamp":
		if r.Created = archive.ParseTime(m.Value); r.Created.IsZero() {
			r.rest.Add(m)
		}
	case k.message:
		r.message = m.Value
	default:
		return false
	}
	return true
}

// logRecord keeps a record that is not a message: see session.log.
func (s *session) logRecord(r *record, raw []byte) {
	s.log(r.kind, r.ID, r.Parent, raw, r.Created, r.At)
}
