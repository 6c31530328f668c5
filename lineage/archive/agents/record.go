package agents

import (
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// lineRecord is a record in a line of a session being read, with the members that records of all agents have.
type lineRecord struct {
	archive.Node
	kind    string
	message []byte
	// hasParent is set if the record states its parent, even a null one.
	hasParent bool
	// rest has the members that are not fields of the node. They become its metadata.
	rest rawjson.Object
}

// keys are an agent's names for members of records.
type keys struct{ id, parent, message string }

// uuidKeys are the keys of Claude Code and Qwen Code.
var uuidKeys = keys{id: "uuid", parent: "parentUuid", message: "message"}

// take reads a member that records of all agents have, and reports whether it is one.
func (r *lineRecord) take(m rawjson.Member, k keys) bool {
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
func (s *sessionReader) logRecord(r *lineRecord, raw []byte) {
	s.log(r.kind, r.ID, r.Parent, raw, r.Created, r.At)
}
