package records

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// Input is something to append: a line of append --jsonl, or the input of the API.
type Input struct {
	Role string `json:"role,omitempty" doc:"user, assistant, system, tool, …; default user"`
	Name string `json:"name,omitempty" doc:"the name of the speaker or tool"`
	// Exactly one of Text, Content, Data and ContentID is the content.
	Text      *string         `json:"text,omitempty" doc:"the text"`
	Content   json.RawMessage `json:"content,omitempty" doc:"a text, or any JSON, in place of text"`
	Data      []byte          `json:"data,omitempty" doc:"bytes in base64, in place of text"`
	ContentID string          `json:"content_id,omitempty" doc:"content that is in the store, in place of text"`
	ID        string          `json:"id,omitempty" doc:"an id of your choice, unique in the thread"`
	Model     string          `json:"model,omitempty" doc:"the model that wrote it"`
	User      string          `json:"user,omitempty" doc:"the user that it is from"`
	MediaType string          `json:"media_type,omitempty" doc:"its media type"`
	Metadata  json.RawMessage `json:"metadata,omitempty" doc:"any JSON to keep with it"`
	CreatedAt time.Time       `json:"created_at,omitzero" doc:"default now"`
	// Document and Filename make it a revision of a document, or a file, instead of a message.
	Document string `json:"document,omitempty" doc:"makes it a revision of this document"`
	Revision uint64 `json:"revision,omitempty" doc:"which revision; default the next"`
	Filename string `json:"filename,omitempty" doc:"makes it a file under this name"`
}

// InputDefaults are the values for fields that an input does not state.
type InputDefaults struct{ Role, Model, User string }

// inputKeys are the members of an Input.
var inputKeys = map[string]bool{
	"role": true, "name": true, "text": true, "content": true, "data": true, "content_id": true, "id": true, "model": true, "user": true,
	"media_type": true, "metadata": true, "created_at": true, "document": true, "revision": true, "filename": true,
}

// ParseItem reads an Input, or a message of a provider's format, which is kept as it is. The item shares memory with the line.
func ParseItem(line []byte, d InputDefaults) (lineage.Item, error) {
	var in Input
	if err := json.Unmarshal(line, &in); err != nil {
		return lineage.Item{}, wrongInput(err)
	}
	return in.item(line, d)
}

// wrongInput explains why a line is not an Input.
func wrongInput(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not valid JSON: %w", syntax)
	case errors.As(err, &kind) && kind.Field == "":
		return errors.New("it is not a JSON object")
	case errors.As(err, &kind) && kind.Field == "revision":
		return errors.New("revision has to be a number from 0 on")
	case errors.As(err, &kind):
		return fmt.Errorf("%s has to be a string; this one is of the type %s", kind.Field, kind.Value)
	case errors.As(err, new(base64.CorruptInputError)):
		return errors.New("data has to be in base64")
	}
	return errors.New("created_at has to be a time such as 2006-01-02T15:04:05Z")
}

// otherMember returns the name of a member that is not one of an Input. ok is false if there is none.
func otherMember(line []byte) (name string, ok bool) {
	for member := range rawjson.Members(line) {
		if !inputKeys[member.Key] {
			return member.Key, true
		}
	}
	return "", false
}

// AsGiven reads a line as a message of a provider's format. It returns nil if the line is not one.
func AsGiven(line []byte, role string) *message.Message {
	decoded := message.Decode(line, content.TypeJSON, role)
	if len(decoded) == 0 {
		return nil
	}
	for _, p := range decoded[0].Parts {
		if p.Kind != message.DataKind {
			return &decoded[0]
		}
	}
	return nil
}

func (in *Input) item(line []byte, d InputDefaults) (lineage.Item, error) {
	item := lineage.Item{
		Kind: lineage.Message, Role: in.Role, Name: in.Name, SourceID: in.ID, Type: in.MediaType, Metadata: in.Metadata,
		CreatedAt: in.CreatedAt, Origin: lineage.Origin{ModelID: in.Model, UserID: in.User},
	}
	// A line that has more than a text or content, such as tool calls, is a message of a provider's format.
	other, hasOther := otherMember(line)
	var whole *message.Message
	if hasOther && in.Text == nil && in.MediaType == "" {
		whole = AsGiven(line, cmp.Or(in.Role, d.Role))
	}
	if item.Role == "" && whole != nil {
		item.Role, item.Name = whole.Role, whole.Name
	}
	item.Role = cmp.Or(item.Role, d.Role)
	if item.Origin.ModelID == "" && item.Role == "assistant" {
		item.Origin.ModelID = d.Model
	}
	item.Origin.UserID = cmp.Or(item.Origin.UserID, d.User)
	if whole != nil {
		item.Body, item.Type = line, content.TypeJSON
		return item, nil
	}
	switch {
	case in.Document != "" && in.Filename != "":
		return item, errors.New("has both document and filename")
	case in.Document != "":
		item.Kind, item.Document, item.Revision = lineage.Document, in.Document, in.Revision
	case in.Filename != "":
		item.Kind, item.Filename = lineage.Asset, in.Filename
	}
	err := in.said(&item)
	if err == nil && hasOther {
		err = fmt.Errorf("there is no member %.100q", other)
	}
	return item, err
}

// said sets the content of an item.
func (in *Input) said(item *lineage.Item) (err error) {
	var text string
	switch {
	case in.Text != nil && in.Content != nil:
		return errors.New("has both text and content")
	case in.Text != nil && (in.Data != nil || in.ContentID != ""), in.Content != nil && (in.Data != nil || in.ContentID != ""), in.Data != nil && in.ContentID != "":
		return errors.New("has more than one of text, content, data and content_id")
	case in.Text != nil:
		item.Body = []byte(*in.Text)
	case in.Data != nil:
		item.Body, item.Type = in.Data, cmp.Or(item.Type, "application/octet-stream")
	case in.ContentID != "":
		if item.Content, err = content.ParseID(in.ContentID); err != nil || item.Content.IsZero() {
			return errors.New("content_id has 64 hexadecimal digits, not all of them 0")
		}
	case in.Content == nil:
		return errors.New("has neither text nor content")
	case json.Unmarshal(in.Content, &text) == nil:
		item.Body = []byte(text)
	default:
		item.Body, item.Type = in.Content, cmp.Or(item.Type, content.TypeJSON)
	}
	return nil
}
