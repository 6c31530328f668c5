package resume

import (
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// turn is what the user or the assistant said before the other side continued, as blocks of Anthropic's Messages API.
// Agents with session formats of their own are written from these. Results of calls are in the next turn, and ids are
// unique.
type turn struct {
	role   string
	blocks []contentBlock
	// item is the message that the turn was read from.
	item []byte
}

// contentBlock is a block of a turn.
type contentBlock struct {
	kind string
	raw  []byte
}

func (b contentBlock) text(key string) string { return text(b.raw, key) }

// turns returns a part of a history as turns. System prompts at its start are reported as losses, because agents have
// their own.
func (m *maker) turns(p *excerpt) ([]turn, error) {
	encoded, err := message.Encode(message.Anthropic, p.messages)
	if err != nil {
		return nil, err
	}
	for _, l := range encoded.Losses {
		m.lose(p, l.Message, l.Reason)
	}
	if len(encoded.System) > 0 {
		m.lose(p, 0, "a system prompt: left out, the agent has its own")
	}
	var all []turn
	for _, item := range encoded.Items {
		t := turn{role: text(item, "role"), item: item}
		switch value := rawjson.Get(item, "content"); {
		case rawjson.IsString(value):
			t.blocks = []contentBlock{textBlock(rawjson.Str(value))}
		default:
			for raw := range rawjson.Elements(value) {
				t.blocks = append(t.blocks, contentBlock{text(raw, "type"), raw})
			}
		}
		all = append(all, t)
	}
	return all, nil
}

func textBlock(value string) contentBlock {
	raw := append(append([]byte(`{"type":"text","text":`), rawjson.Quote(value)...), '}')
	return contentBlock{"text", raw}
}

// note returns a text that replaces a block which the agent cannot express.
func (b contentBlock) note() string {
	label := b.kind
	if label == "" {
		label = "data"
	}
	if title := b.text("title"); title != "" {
		label += " " + title
	}
	return "[" + label + "]"
}

// loseBlock reports that the agent cannot express a block.
func (m *maker) loseBlock(b contentBlock, how string) {
	m.s.lose(lineage.Loss{Reason: "a block of type " + b.kind + ": " + how})
}
