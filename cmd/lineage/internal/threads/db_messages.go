package threads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// History implements Keeper.
func (d *database) History(ctx context.Context, o *LogOptions, r *show.Reader, visit func(*show.ReadMessage, []graph.Label) error) error {
	found, err := d.refs.Find(ctx, o.At)
	if err != nil || found.Message == "" {
		return err
	}
	var chain []*show.ReadMessage
	position := uint64(0)
	learn := func(m *show.ReadMessage) {
		if !d.JSON && !o.Oneline {
			r.Learn(m.Said)
		}
	}
	for m, err := range d.chats.MessageChain(ctx, d.current, found.Message) {
		if err != nil {
			return err
		}
		position++
		if o.To > 0 && position > o.To {
			continue
		}
		record := newChatMessageRecord(&m, position)
		if position < o.From {
			learn(record)
			continue
		}
		chain = append(chain, record)
		if o.Last > 0 && uint64(len(chain)) > o.Last {
			learn(chain[0])
			chain = chain[1:]
		}
	}
	for _, m := range chain {
		if !o.Wants(m.Kind, m.Role) {
			continue
		}
		if err := visit(m, nil); err != nil {
			return err
		}
	}
	return nil
}

// Says implements Keeper.
func (d *database) Says(ctx context.Context, thread, id string) (string, error) {
	m, err := d.chats.Message(ctx, thread, id)
	if m == nil || err != nil {
		return "", err
	}
	_, line := transcript.Line(m.Transcribe())
	return screen.Line(line), nil
}

// Show implements Keeper.
func (d *database) Show(ctx context.Context, name string) error {
	found, err := d.refs.Find(ctx, name)
	if err != nil {
		return err
	}
	if found.Branch != nil && !found.Moved {
		b, err := d.branchNamed(ctx, found.Branch.Name)
		return show.PrintBranch(d.App, b, "active branch", err)
	}
	m, err := d.chats.Message(ctx, d.current, found.Message)
	if err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf("message %q: %w", name, lineage.ErrNotFound)
	}
	position, err := d.chats.CountMessages(ctx, d.current, m.ID)
	if err != nil {
		return err
	}
	return show.PrintMessage(d.App, newChatMessageRecord(m, uint64(position)), nil)
}

// appendTries limits the attempts of an append when other writers are faster.
const appendTries = 100

// Append implements Keeper.
func (d *database) Append(ctx context.Context, o *AppendOptions, items []lineage.Item) (*records.Appended, error) {
	if o.MediaType != "" || o.Document != "" || o.Asset != "" || o.Together || o.Name != "" {
		return nil, app.Usagef("--name, --type, --document, --asset and --together are not kept in a database")
	}
	messages, ids := make([]chat.Message, len(items)), make([]string, len(items))
	for i := range items {
		var err error
		if messages[i], err = chatMessage(&items[i]); err != nil {
			return nil, err
		}
		ids[i] = messages[i].ID
	}
	if d.current == "" && o.Context == "" {
		if err := firstThread(ctx, d.App, d, items); err != nil {
			return nil, err
		}
	}
	for try := 0; ; try++ {
		b, err := d.refs.Branch(ctx, o.Context)
		if err != nil {
			return nil, err
		}
		expected := b.HeadMessageID
		if o.After != "" {
			after, err := d.refs.Find(ctx, o.After)
			if err != nil {
				return nil, err
			}
			expected = chat.Ref(after.Message)
		}
		head, err := d.chats.Append(ctx, chat.AppendRequest{ChatID: d.current, BranchID: b.ID, ExpectedHead: expected, Messages: messages})
		if errors.Is(err, chat.ErrHeadMoved) && o.After == "" && try < appendTries {
			continue
		}
		if err != nil {
			return nil, err
		}
		length, err := d.chats.CountMessages(ctx, d.current, string(head))
		return &records.Appended{Context: b.ID, Branch: b.Name, Thread: d.current, IDs: ids, Tip: string(head), Length: uint64(length)}, err
	}
}

// chatMessage returns an item as a documented structured message. It reads the body into memory, because a database
// stores messages whole.
func chatMessage(item *lineage.Item) (m chat.Message, err error) {
	if item.Reader != nil {
		if item.Body, err = app.ReadAll("the file", item.Reader, app.MaxInput); err != nil {
			return m, err
		}
	}
	m = chat.Message{ID: cmp.Or(item.SourceID, uuid.NewString()), Name: item.Role, Type: chat.TypeMessage}
	m.Origin = chat.Origin{UserID: item.Origin.UserID, ModelID: item.Origin.ModelID}
	if !item.CreatedAt.IsZero() {
		m.CreatedAt = item.CreatedAt.UnixMilli()
	}
	if item.Type == content.TypeJSON {
		m.Data = item.Body
		return m, nil
	}
	if !utf8.Valid(item.Body) {
		return m, app.Usagef("only text can be appended to a database")
	}
	message := engine.UIMessage{ID: m.ID, Role: item.Role, Parts: []engine.Part{engine.TextPart(string(item.Body))}}
	if item.Metadata != nil {
		message.Metadata = item.Metadata
	}
	m.Data, err = message.Encode()
	return m, err
}
