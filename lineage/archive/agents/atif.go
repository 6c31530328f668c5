package agents

import (
	"cmp"
	"context"
	"iter"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// ATIF reads trajectories in the Agent Trajectory Interchange Format. A trajectory is an object with the steps of a
// run and with the trajectories of its subagents.
func ATIF() archive.Format {
	return archive.Format{
		Name: "atif",
		Detect: func(h archive.Head) bool {
			return strings.HasPrefix(rawjson.Str(rawjson.Get(h.Object(), "schema_version")), "ATIF")
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				for item, err := range in.Items(ctx) {
					if err == nil && !rawjson.IsObject(item.Raw) {
						err = archive.Damaged(item.At, archive.Malformed("not an object"))
					}
					if err != nil {
						if !yield(nil, err) {
							return
						}
						continue
					}
					s := atifRun{sessionReader: newSessionReader(in, yield), parents: make(map[string]string)}
					s.read(item.Raw, item.At)
				}
			}
		},
	}
}

// atifRun is the state of reading a trajectory.
type atifRun struct {
	sessionReader
	parents map[string]string // by the id of a subagent's trajectory, the step that refers to it
}

// atifID returns the id of the document, or of the session.
func atifID(raw []byte) string {
	return cmp.Or(rawjson.Str(rawjson.Get(raw, "trajectory_id")), rawjson.Str(rawjson.Get(raw, "session_id")))
}

func (s *atifRun) read(raw []byte, at archive.Position) {
	s.id = atifID(raw)
	agent := rawjson.Get(raw, "agent")
	s.about.agent = cmp.Or(rawjson.Str(rawjson.Get(agent, "name")), "atif")
	s.about.version, s.about.model = rawjson.Str(rawjson.Get(agent, "version")), rawjson.Str(rawjson.Get(agent, "model_name"))
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "steps", "subagent_trajectories", "trajectory_id", "agent":
		case "session_id":
			if rawjson.Str(m.Value) != s.id {
				s.about.more.Add(m)
			}
		default:
			m.Value = rawjson.Compact(m.Value)
			s.field(m, at)
		}
	}
	for _, key := range []string{"tool_definitions", "extra"} {
		if v := rawjson.Get(agent, key); v != nil && !rawjson.IsNull(v) {
			s.field(rawjson.Member{Key: key, Quoted: rawjson.Quote(key), Value: v}, at)
		}
	}
	s.steps(raw, "", "", at, 0)
	s.end()
}

// steps reads the steps of a trajectory and of its subagents.
func (s *atifRun) steps(raw []byte, aside, prefix string, at archive.Position, depth int) {
	model := rawjson.Str(rawjson.Get(rawjson.Get(raw, "agent"), "model_name"))
	last, i := "", 0
	for step := range rawjson.Elements(rawjson.Get(raw, "steps")) {
		i++
		at.Inside = prefix + "step " + strconv.Itoa(i)
		if !rawjson.IsObject(step) {
			s.part.Skip(at, archive.Malformed("not an object"))
			continue
		}
		n := archive.Node{At: at, ID: prefix + strconv.Itoa(i), Aside: aside, Parent: last, Created: archive.ParseTime(rawjson.Get(step, "timestamp"))}
		switch n.Role = rawjson.Str(rawjson.Get(step, "source")); n.Role {
		case "agent":
			n.Role, n.Model = "assistant", cmp.Or(rawjson.Str(rawjson.Get(step, "model_name")), model)
		case "":
			n.Role = "unknown"
		}
		for result := range rawjson.Elements(rawjson.Get(rawjson.Get(step, "observation"), "results")) {
			for ref := range rawjson.Elements(rawjson.Get(result, "subagent_trajectory_ref")) {
				for _, key := range []string{"trajectory_id", "session_id"} {
					if id := rawjson.Str(rawjson.Get(ref, key)); id != "" && s.parents[id] == "" {
						s.parents[id] = n.ID
					}
				}
			}
		}
		if last == "" {
			n.Parent = s.parents[strings.TrimPrefix(aside, "agent ")]
			n.Root = n.Parent == ""
		}
		n.Give(step)
		last = n.ID
		s.add(n)
	}
	if depth == maxSubagents {
		return
	}
	i = 0
	for child := range rawjson.Elements(rawjson.Get(raw, "subagent_trajectories")) {
		if i++; rawjson.IsObject(child) {
			id := cmp.Or(atifID(child), prefix+strconv.Itoa(i))
			s.steps(child, "agent "+id, id+"/", at, depth+1)
		}
	}
}
