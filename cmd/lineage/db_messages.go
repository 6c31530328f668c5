package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

func millis(t int64) time.Time { return time.UnixMilli(t).UTC() }

// newChatMessageRecord returns the record of a message that a database keeps.
func newChatMessageRecord(m *chat.Message, position uint64) *messageRecord {
	r := &messageRecord{
		ID: m.ID, Position: position, Kind: "message", Role: m.Name, ContentID: content.Sum(m.Data).String(),
		MediaType: content.TypeJSON, Size: int64(len(m.Data)), Text: form.Text(m.Data, m.Name),
		Data: rawJSON(m.Data), SourceID: m.ID, CreatedAt: millis(m.CreatedAt),
	}
	if o := m.Origin; o != (chat.Origin{}) {
		r.Origin = &originRecord{
			Kind: content.OriginOfRole(m.Name).String(), User: o.UserID, Model: o.ModelID, Source: o.SourceID, DerivedFrom: o.DerivedFrom,
		}
	}
	if m.ParentID != "" {
		parent := string(m.ParentID)
		r.Parent = &parent
	}
	if string(m.Data) == "null" {
		r.Text, r.Data, r.Erased = "", nil, true
	}
	return r
}

// printMessage writes a message for a person.
func (d *database) printMessage(r *messageRecord) {
	role := d.out.Paint(screen.OfRole(r.Role)+";1", screen.Line(r.Role))
	if r.Origin != nil && r.Origin.Model != "" {
		role += d.out.Paint(screen.Dim, " ("+screen.Line(r.Origin.Model)+")")
	}
	head := fmt.Sprintf("%s  %s  %s", d.out.Paint(screen.Dim, fmt.Sprint(r.Position)), role, d.out.Paint(screen.Dim, screen.Line(r.ID)+"  "+screen.Time(r.CreatedAt)))
	d.printf("%s\n", head)
	width := 0
	if d.out.Width > 0 {
		width = max(d.out.Width-4, 20)
	}
	for _, line := range screen.Wrap(screen.Clean(r.Text), width) {
		d.printf("    %s\n", line)
	}
	d.printf("\n")
}

func (d *database) log(ctx context.Context, o *logOptions) error {
	found, err := d.position(ctx, o.at)
	if err != nil || found.Message == "" {
		return err
	}
	var chain []*messageRecord
	position := uint64(0)
	for m, err := range d.chats.MessageChain(ctx, found.Message) {
		if err != nil {
			return err
		}
		position++
		if position < o.from || o.to > 0 && position > o.to {
			continue
		}
		chain = append(chain, newChatMessageRecord(&m, position))
		if o.last > 0 && uint64(len(chain)) > o.last {
			chain = chain[1:]
		}
	}
	table := screen.NewTable(d.out, "", "", "", "")
	for _, r := range chain {
		if !contains(o.roles, r.Role) {
			continue
		}
		switch {
		case d.json:
			if err := d.emit(r); err != nil {
				return err
			}
		case o.oneline:
			table.Cells(screen.Cell{Text: fmt.Sprint(r.Position), Right: true, Style: screen.Dim}, screen.Cell{Text: r.ID, Style: screen.Yellow},
				screen.Cell{Text: r.Role, Style: screen.OfRole(r.Role)}, screen.Cell{Text: r.Text})
		default:
			d.printMessage(r)
		}
	}
	return table.Print()
}

// contains reports whether a list has a value; an empty list has all.
func contains(list []string, value string) bool {
	for _, v := range list {
		if v == value {
			return true
		}
	}
	return len(list) == 0
}

func (d *database) show(ctx context.Context, name string) error {
	found, err := d.position(ctx, name)
	if err != nil {
		return err
	}
	if found.Branch != nil && !found.Moved {
		return d.printBranch(ctx, found.Branch.Name, "active branch")
	}
	if found.Message == "" {
		return fmt.Errorf("message %q: %w", name, lineage.ErrNotFound)
	}
	position := uint64(0)
	var last *messageRecord
	for m, err := range d.chats.MessageChain(ctx, found.Message) {
		if err != nil {
			return err
		}
		position++
		last = newChatMessageRecord(&m, position)
	}
	if d.json {
		return d.emit(last)
	}
	d.printMessage(last)
	return nil
}

// appendTries bounds how often a message is appended again after others were first.
const appendTries = 100

func (d *database) append(ctx context.Context, o *appendOptions, items []lineage.Item) error {
	if o.mime != "" || o.document != "" || o.asset != "" || o.together || o.name != "" {
		return usagef("--name, --type, --document, --asset and --together are not kept in a database")
	}
	messages := make([]chat.Message, len(items))
	for i := range items {
		if err := readBody(&items[i]); err != nil {
			return err
		}
		m, err := chatMessage(&items[i])
		if err != nil {
			return err
		}
		messages[i] = m
	}
	if d.current == "" && o.context == "" {
		c, err := d.chats.CreateChat(ctx, chat.Chat{ID: uuid.NewString(), Title: screen.Cut(screen.Line(string(items[0].Body)), 60)})
		if err != nil {
			return err
		}
		d.current = c.ID
		d.refs = newChatRefs(d)
	}
	for try := 0; ; try++ {
		b, err := d.branch(ctx, o.context)
		if err != nil {
			return err
		}
		expected := b.HeadMessageID
		if o.after != "" {
			after, err := d.refs.Find(ctx, o.after)
			if err != nil {
				return err
			}
			expected = chat.Ref(after.Message)
		}
		head, err := d.chats.Append(ctx, chat.AppendRequest{ChatID: d.current, BranchID: b.ID, ExpectedHead: expected, Messages: messages})
		if errors.Is(err, chat.ErrHeadMoved) && o.after == "" && try < appendTries {
			continue
		}
		if err != nil {
			return err
		}
		return d.appended(ctx, b, messages, string(head))
	}
}

func (d *database) appended(ctx context.Context, b *chat.Branch, messages []chat.Message, head string) error {
	r := appendedRecord{Context: b.ID, Branch: b.Name, Thread: d.current, Tip: head}
	for i := range messages {
		r.IDs = append(r.IDs, messages[i].ID)
	}
	if !d.json {
		for _, id := range r.IDs {
			d.printf("%s\n", id)
		}
		return nil
	}
	for _, err := range d.chats.MessageChain(ctx, head) {
		if err != nil {
			return err
		}
		r.Length++
	}
	return d.emit(&r)
}

// readBody has an item hold what it is to be read from: a database keeps messages whole.
func readBody(item *lineage.Item) error {
	if item.Reader == nil {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(item.Reader, maxInput+1))
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	if len(body) > maxInput {
		return fmt.Errorf("the file has more than %s: %w", screen.Bytes(maxInput), lineage.ErrTooLarge)
	}
	item.Body, item.Reader = body, nil
	return nil
}

// chatMessage returns an item as the documented structured message.
func chatMessage(item *lineage.Item) (chat.Message, error) {
	m := chat.Message{ID: item.SourceID, Name: item.Role, Type: chat.TypeMessage}
	m.Origin = chat.Origin{UserID: item.Origin.UserID, ModelID: item.Origin.ModelID}
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	if !item.CreatedAt.IsZero() {
		m.CreatedAt = item.CreatedAt.UnixMilli()
	}
	if item.Type == content.TypeJSON {
		m.Data = item.Body
		return m, nil
	}
	if !utf8.Valid(item.Body) {
		return m, usagef("only text can be appended to a database")
	}
	message := engine.UIMessage{ID: m.ID, Role: item.Role, Parts: []engine.Part{engine.TextPart(string(item.Body))}}
	if item.Metadata != nil {
		message.Metadata = item.Metadata
	}
	var err error
	m.Data, err = message.Encode()
	return m, err
}
