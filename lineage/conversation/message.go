package conversation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
)

// Message is one message of a conversation.
type Message struct {
	Role    string
	Content string
	// Fields are further fields of the message, such as tool calls: JSON values by key, kept byte for byte
	// except for surrounding white space. "role" is not allowed. "content" is allowed if Content is empty,
	// for content that is not a string.
	Fields map[string]json.RawMessage
	// Erased is set if the content of the message was erased.
	Erased bool
	// By has the author, the model and the origin of the message, as far as known.
	By content.Attribution
	// DerivedFrom is the content that the message was edited or derived from, if any.
	DerivedFrom lineage.ContentID
}

// Equal reports whether two messages are equal. It ignores By.
func (m Message) Equal(other Message) bool {
	return m.Role == other.Role && m.Content == other.Content && m.Erased == other.Erased &&
		maps.EqualFunc(m.Fields, other.Fields, func(a, b json.RawMessage) bool {
			return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
		})
}

// item returns the message as an item of a span: a text, or one JSON object if it has fields.
func (m Message) item() (lineage.Item, error) {
	if err := checkText("message", "role", m.Role); err != nil {
		return lineage.Item{}, err
	}
	if m.Erased {
		return lineage.Item{}, fmt.Errorf("message whose content was erased: %w", lineage.ErrInvalid)
	}
	i := lineage.Item{
		Role: m.Role, Type: content.TypeText, Body: []byte(m.Content),
		Origin: content.BlockOrigin{ParentID: m.DerivedFrom}.By(m.By),
	}
	var err error
	if len(m.Fields) > 0 {
		i.Type = content.TypeJSON
		i.Body, err = m.encode()
	}
	return i, err
}

func (m Message) encode() ([]byte, error) {
	if !utf8.ValidString(m.Content) {
		return nil, fmt.Errorf("message with fields, and content that is not UTF-8: %w", lineage.ErrInvalid)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"role":%s`, rawjson.Quote(m.Role))
	if _, other := m.Fields["content"]; !other {
		fmt.Fprintf(&b, `,"content":%s`, rawjson.Quote(m.Content))
	}
	for _, key := range slices.Sorted(maps.Keys(m.Fields)) {
		value := bytes.TrimSpace(m.Fields[key])
		if err := m.checkField(key, value); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",%s:%s", rawjson.Quote(key), value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (m Message) checkField(key string, value []byte) error {
	problem := ""
	switch {
	case !utf8.ValidString(key):
		problem = "its name is not UTF-8"
	case !json.Valid(value):
		problem = "it is not JSON"
	case key == "role":
		problem = "the role has a place of its own"
	case key == "content" && (m.Content != "" || value[0] == '"'):
		problem = "text has a place of its own"
	default:
		return nil
	}
	return fmt.Errorf("message field %q: %s: %w", key, problem, lineage.ErrInvalid)
}

// decode returns the message that item encoded. Other JSON becomes the content of the message.
func decode(role, mediaType string, body []byte) Message {
	plain := Message{Role: role, Content: string(body)}
	var fields map[string]json.RawMessage
	if mediaType != content.TypeJSON || json.Unmarshal(body, &fields) != nil {
		return plain
	}
	if stated, ok := rawjson.Text(fields["role"]); !ok || stated != role {
		return plain
	}
	m := Message{Role: role}
	delete(fields, "role")
	if text, ok := rawjson.Text(fields["content"]); ok {
		m.Content = text
		delete(fields, "content")
	}
	if len(fields) > 0 {
		m.Fields = fields
	}
	return m
}

// messageOf returns the message of an entry. The two share no memory.
func (c *Conversation) messageOf(ctx context.Context, e *lineage.Entry) (Message, error) {
	m := Message{Role: e.Role, Erased: true}
	if !e.Erased {
		body, err := c.store.Original(ctx, e)
		if err != nil {
			return Message{}, err
		}
		m = decode(e.Role, e.Type, body)
		if e.Type == content.TypeJSON && m.Content == string(body) { // a message of another format
			if m.Content, err = c.store.Text(ctx, e); err != nil {
				return Message{}, err
			}
		}
	}
	m.By, m.DerivedFrom = e.Origin.Attribution(), e.Origin.ParentID
	return m, nil
}
