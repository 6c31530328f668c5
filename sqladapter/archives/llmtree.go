package archives

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage/archive"
)

// threads reads the newer tables: messages with hashes and parents, and threads that point to them.
// Messages have no time, so they get that of the thread, and each thread has its own copies.
func (l *llmReader) threads(ctx context.Context) error {
	query := `SELECT ` + l.list("threads", "id", "name", "tip_message_hash", "forked_from", "datetime_utc") + ` FROM threads ORDER BY threads.id`
	return l.eachItem(ctx, query, nil, func(r row) error {
		t := &llmThread{at: l.next("thread " + r.text("id")), done: make(map[string]bool)}
		if err := l.takeRow(r); err != nil {
			return l.skip(ctx, t.at, err)
		}
		t.partCollector = partCollector{r: &l.reader, Conversation: &archive.Conversation{
			SourceID: r.text("id"), Title: r.text("name"), Created: parseTime(r.text("datetime_utc")), ForkedFrom: r.text("forked_from"),
		}}
		current := r.text("tip_message_hash")
		tips := []string{current}
		err := l.turns(ctx, t, r["id"], &tips)
		if err != nil {
			if err := l.skip(ctx, t.at, err); err != nil {
				return err
			}
		}
		for _, tip := range tips {
			if err := l.chain(ctx, t, tip); err != nil {
				if err := l.skip(ctx, t.at, err); err != nil {
					return err
				}
			}
		}
		if t.done[current] {
			t.Current = current
		}
		return t.finish()
	})
}

// llmThread is the thread being read.
type llmThread struct {
	partCollector
	at    archive.Position
	done  map[string]bool // messages that were added
	turns map[string]any  // ids of turns, by the message that they end with
}

// turns lists the turns of a thread, and the messages that they end with after those of tips.
func (l *llmReader) turns(ctx context.Context, t *llmThread, thread any, tips *[]string) error {
	if !l.has("turns", "id", "thread_id", "tip_message_hash") {
		return nil
	}
	t.turns = make(map[string]any)
	query := `SELECT ` + l.list("turns", "id", "tip_message_hash") + ` FROM turns WHERE thread_id = ? ORDER BY turns.id`
	return l.each(ctx, query, []any{thread}, func(turn row) error {
		tip := turn.text("tip_message_hash")
		if _, known := t.turns[tip]; !known && tip != (*tips)[0] {
			*tips = append(*tips, tip)
		}
		t.turns[tip] = turn["id"]
		return nil
	})
}

// chain adds the messages up to a tip that are not yet added.
func (l *llmReader) chain(ctx context.Context, t *llmThread, tip string) error {
	l.begin()
	var missing []string
	seen := make(map[string]bool)
	for hash := tip; hash != "" && !t.done[hash]; {
		if seen[hash] {
			return fmt.Errorf("%w: message %s is its own ancestor", archive.ErrMalformed, hash)
		}
		seen[hash] = true
		parent, found := "", false
		err := l.each(ctx, `SELECT `+l.list("messages", "parent_hash")+` FROM messages WHERE hash = ?`, []any{hash}, func(r row) error {
			parent, found = r.text("parent_hash"), true
			return nil
		})
		if err != nil {
			return err
		}
		if !found {
			t.Repairs = append(t.Repairs, &archive.Damage{At: t.at, Err: fmt.Errorf("%w: message %s is missing; its successor begins a history", archive.ErrMalformed, hash)})
			break
		}
		missing = append(missing, hash)
		hash = parent
	}
	for _, hash := range slices.Backward(missing) {
		l.begin()
		if err := l.message(ctx, t, hash); err != nil {
			return fmt.Errorf("message %s: %w", hash, err)
		}
		t.done[hash] = true
		if err := t.flush(); err != nil {
			return err
		}
	}
	return nil
}

// message adds a message whose ancestors were added.
func (l *llmReader) message(ctx context.Context, t *llmThread, hash string) error {
	n := archive.Node{ID: hash, At: t.at}
	var provider any
	err := l.each(ctx, `SELECT `+l.list("messages", "parent_hash", "role", "provider_metadata")+` FROM messages WHERE hash = ?`, []any{hash}, func(r row) error {
		n.Role, n.Parent, provider = r.text("role"), r.text("parent_hash"), r["provider_metadata"]
		return nil
	})
	if err != nil {
		return err
	}
	if n.Root = !t.done[n.Parent]; n.Root {
		n.Parent = ""
	}
	if n.Role == "" {
		n.Role = "message"
	}
	if err := l.parts(ctx, &n); err != nil {
		return err
	}
	var more fields
	add := func(key string, v any, isJSON bool) error {
		v, err := l.kept(v, isJSON)
		if v != nil {
			more = append(more, field{key, v})
		}
		return err
	}
	if err := add("provider_metadata", provider, true); err != nil {
		return err
	}
	if id, ends := t.turns[hash]; ends {
		query := `SELECT ` + l.list("turns", "model", "resolved_model", "options_json", "schema_id", "input_tokens", "output_tokens", "token_details", "duration_ms", "datetime_utc",
			"response_json") + ` FROM turns WHERE id = ? AND tip_message_hash = ?`
		err := l.each(ctx, query, []any{id, hash}, func(turn row) error {
			n.Model, n.Created = turn.text("model"), parseTime(turn.text("datetime_utc"))
			err := add("turn_id", id, false)
			for _, name := range []string{"resolved_model", "duration_ms", "input_tokens", "output_tokens", "token_details", "schema_id", "options_json", "response_json"} {
				if err == nil {
					err = add(name, turn[name], name == "token_details" || strings.HasSuffix(name, "_json"))
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(more) > 0 {
		n.Metadata = appendJSON(nil, more)
	}
	t.add(n)
	return nil
}

// parts reads the content of a message: its text if that is all, else {"parts": [{type, …}]}.
func (l *llmReader) parts(ctx context.Context, n *archive.Node) error {
	var parts []any
	order := ` ORDER BY parts.id`
	if l.has("parts", "position") {
		order = ` ORDER BY parts.position, parts.id`
	}
	err := l.each(ctx, `SELECT `+l.list("parts", "id", "type", "text", "payload")+` FROM parts WHERE message_hash = ?`+order, []any{n.ID}, func(r row) error {
		part := fields{{"type", r.text("type")}}
		var refs any
		if raw := r.bytes("payload"); len(raw) > 0 {
			v, err := decodeJSON(&l.item, raw)
			if err != nil {
				return err
			}
			payload, _ := v.(fields)
			for _, f := range payload {
				switch f.key {
				case "type":
				case "text_ref":
					refs = f.value
				default:
					part = append(part, f)
				}
			}
		}
		if refs != nil {
			text, err := l.textOf(ctx, refs)
			if err != nil {
				return err
			}
			part = append(part, field{"text", text})
		}
		if r["text"] != nil {
			part = append(part, field{"text", r.text("text")})
		}
		if r.text("type") == "attachment" {
			if file, err := l.partAttachment(ctx, r["id"]); err != nil {
				return err
			} else if file != nil {
				n.Attachments = append(n.Attachments, *file)
				return nil
			}
		}
		parts = append(parts, part)
		return nil
	})
	if err != nil {
		return err
	}
	switch text, only := onlyText(parts); {
	case only:
		n.Body, n.Type = []byte(text), "text/plain"
	default:
		n.Body, n.Type = appendJSON(nil, fields{{"parts", parts}}), "application/json"
	}
	if n.Role == "tool" && len(parts) == 1 {
		n.Name = parts[0].(fields).text("name")
	}
	return nil
}

// onlyText returns the text of parts, if they are a single text.
func onlyText(parts []any) (string, bool) {
	switch len(parts) {
	case 0:
		return "", true
	case 1:
		f := parts[0].(fields)
		text, ok := f.get("text").(string)
		return text, ok && len(f) == 2 && f.text("type") == "text"
	}
	return "", false
}

// textOf joins a text that refers to fragments.
func (l *llmReader) textOf(ctx context.Context, refs any) (string, error) {
	list, _ := refs.([]any)
	var text strings.Builder
	for _, e := range list {
		f, _ := e.(fields)
		if literal, ok := f.get("literal").(string); ok {
			text.WriteString(literal)
			continue
		}
		for _, name := range []string{"fragment", "fragment_id", "id"} {
			if id := f.get(name); id != nil {
				s, err := l.fragment(ctx, string(appendJSON(nil, id)))
				if err != nil {
					return "", err
				}
				text.WriteString(s)
				break
			}
		}
	}
	return text.String(), nil
}

func (l *llmReader) partAttachment(ctx context.Context, part any) (*archive.Attachment, error) {
	if !l.has("part_attachments", "part_id", "attachment_id") || !l.has("attachments", "id", "type", "path", "url", "content") {
		return nil, nil
	}
	var file *archive.Attachment
	err := l.each(ctx, `SELECT `+l.list("attachments", "id", "type", "path", "url", "content")+` FROM part_attachments JOIN attachments ON attachments.id = attachment_id WHERE part_id = ?`,
		[]any{part}, func(r row) error {
			file, _ = attachment(r)
			return nil
		})
	return file, err
}
