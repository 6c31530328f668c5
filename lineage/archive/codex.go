package archive

import (
	"cmp"
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/message"
)

// codex reads Codex rollouts: a file of JSON lines per session.
func codex() Format {
	return Format{
		Name: "codex", Grows: true,
		Detect: func(h Head) bool {
			for _, line := range h.lines(3) {
				if !has(line, "type", "payload") {
					continue
				}
				switch rawjson.Str(rawjson.Get(line, "type")) {
				case "session_meta", "turn_context", "response_item", "event_msg", "compacted":
					return true
				}
			}
			return false
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return func(yield func(*Conversation, error) bool) {
				r := rollout{in: in, yield: yield}
				r.read(ctx)
			}
		},
	}
}

// rollout is a Codex session being read.
type rollout struct {
	in      *Input
	yield   func(*Conversation, error) bool
	part    Conversation
	bytes   int
	id      string
	model   string
	first   bool // a part was yielded
	logged  bool
	restart bool // the next message begins a history
}

func (r *rollout) read(ctx context.Context) {
	for item, err := range r.in.Lines(ctx) {
		if item.Pause {
			if !r.pause() {
				return
			}
			continue
		}
		if err == nil {
			if bad := item.Valid(); bad != nil {
				err = damaged(item.At, bad)
				if repair := item.beingWritten(bad); repair != nil && r.begun() {
					r.part.Repairs = append(r.part.Repairs, repair)
					continue
				}
			} else if !has(item.Raw, "type", "payload") {
				err = damaged(item.At, malformed("not a line of a rollout"))
			}
		}
		if err != nil {
			if !r.yield(nil, err) {
				return
			}
			continue
		}
		r.line(item)
		if r.bytes += len(item.Raw); (r.bytes >= partBytes || len(r.part.Nodes) >= partNodes) && r.id != "" && !r.send(true) {
			return
		}
	}
	if r.begun() {
		r.send(false)
	}
}

// pause yields what was read since the last part. Before the id of the session is known, it yields nothing.
func (r *rollout) pause() bool {
	if r.id == "" || !r.begun() {
		return r.yield(&Conversation{SourceID: r.id, More: true}, nil)
	}
	return r.send(true)
}

// begun reports whether the session has a node.
func (r *rollout) begun() bool { return r.first || len(r.part.Nodes) > 0 }

func (r *rollout) send(more bool) bool {
	c := r.part
	c.SourceID, c.More = r.id, more
	r.part, r.bytes, r.first = Conversation{}, 0, true
	return r.yield(&c, nil)
}

func (r *rollout) line(item Item) {
	created := parseTime(rawjson.Get(item.Raw, "timestamp"))
	payload := rawjson.Get(item.Raw, "payload")
	if created.After(r.part.Updated) {
		r.part.Updated = created
	}
	switch kind := rawjson.Str(rawjson.Get(item.Raw, "type")); kind {
	case "session_meta":
		if r.id == "" && rawjson.IsObject(payload) {
			r.meta(payload, item.At)
			if r.part.Created.IsZero() {
				r.part.Created = created
			}
			return
		}
	case "turn_context":
		if model := rawjson.Str(rawjson.Get(payload, "model")); model != "" {
			r.model = model
			r.part.Model = model
		}
	case "response_item":
		if rawjson.IsObject(payload) {
			n := rolloutItem(payload, r.model)
			n.Created, n.At, n.Root = created, item.At, r.restart
			r.restart = false
			r.part.Nodes = append(r.part.Nodes, n)
			return
		}
	case "compacted":
		r.compacted(payload, item.At)
	}
	n := Node{Role: rawjson.Str(rawjson.Get(item.Raw, "type")), Body: item.Raw, Type: typeJSON, Created: created, Aside: asideLog, Root: !r.logged, At: item.At}
	r.logged = true
	r.part.Nodes = append(r.part.Nodes, n)
}

// meta reads the metadata of a session.
func (r *rollout) meta(payload []byte, at Position) {
	var rest jsonObject
	for m := range rawjson.Members(payload) {
		switch m.Key {
		case "id":
			r.id = rawjson.Str(m.Value)
		case "timestamp":
			r.part.Created = parseTime(m.Value)
		case "forked_from_id":
			r.part.ForkedFrom = rawjson.Str(m.Value)
			rest.add(m)
		case "history_base":
			if base := rawjson.Str(rawjson.Get(m.Value, "thread_id")); base != "" {
				r.part.ForkedFrom = base
				at.Inside = "history_base"
				r.part.Repairs = append(r.part.Repairs, damaged(at, malformed("its beginning is only in session %s; it begins here", base)))
			}
			rest.add(m)
		default:
			rest.add(m)
		}
	}
	r.part.Metadata = rest.bytes()
}

// compacted continues the history from the replacement that a compaction made. The previous history
// remains as a branch.
func (r *rollout) compacted(payload []byte, at Position) {
	history := rawjson.Get(payload, "replacement_history")
	root := true
	for item := range rawjson.Elements(history) {
		if !rawjson.IsObject(item) {
			continue
		}
		n := rolloutItem(item, r.model)
		n.At, n.Root = at, root
		root = false
		r.part.Nodes = append(r.part.Nodes, n)
	}
	if !root {
		return
	}
	if text := rawjson.Get(payload, "message"); rawjson.IsString(text) {
		n := Node{Role: "system", Name: "compacted", At: at}
		n.Body, n.Type = textBody(text)
		r.part.Nodes = append(r.part.Nodes, n)
	}
}

// rolloutItem reads a message, a call or a result.
func rolloutItem(payload []byte, model string) Node {
	kind := rawjson.Str(rawjson.Get(payload, "type"))
	n := Node{Role: cmp.Or(message.ItemRole(kind), "assistant"), Name: kind}
	if kind == "message" || kind == "" && has(payload, "role") {
		n.Role, n.Name = rawjson.Str(rawjson.Get(payload, "role")), ""
	}
	if n.Role == "assistant" {
		n.Model = model
	}
	n.Give(payload)
	return n
}
