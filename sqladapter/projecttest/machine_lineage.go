package projecttest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
)

func (m *machine) keep(c *lineage.Context, err error) error {
	if err == nil {
		m.contexts = append(m.contexts, c)
	}
	return err
}

func (m *machine) newThread(t *rapid.T) error {
	thread, err := m.store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada", Title: "thread", Metadata: []byte(`{"b": 1.0, "a":[ ], "b":"\u00e9"}`)})
	if err != nil {
		return err
	}
	m.threads = append(m.threads, thread)
	return m.keep(thread.Active(bg))
}

func (m *machine) newContext(*rapid.T) error {
	return m.keep(m.store.NewContext(bg, lineage.ContextOptions{Metadata: []byte(`{"loose":true}`)}))
}

// setValue sets or deletes values of a context, its thread, an application and a user.
func (m *machine) setValue(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	return m.store.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		in, err := tx.Context(bg, c.ID())
		if err != nil {
			return err
		}
		info, err := in.Info(bg)
		if err != nil {
			return err
		}
		owners := []*lineage.Values{tx.Values(lineage.Owner{Context: in.ID()}), tx.Values(lineage.Owner{Context: in.ID()}), tx.Values(lineage.Owner{Scope: lineage.StoreScope}), tx.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}), tx.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: "app"})}
		if !info.Thread.IsZero() {
			thread, err := tx.Thread(bg, info.Thread)
			if err != nil {
				return err
			}
			owners = append(owners, tx.Values(lineage.Owner{Thread: thread.ID()}))
		}
		for _, values := range owners {
			key := rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key")
			switch rapid.IntRange(0, 4).Draw(t, "value") {
			case 0:
				err = values.Delete(bg, key)
			case 1:
				body := []byte(`"` + strings.Repeat("large ", 15_000) + `"`)
				m.note(body)
				err = values.Set(bg, key, body)
			default:
				m.n++
				err = values.Set(bg, key, fmt.Appendf(nil, `{"a value": %d}`, m.n))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *machine) item(t *rapid.T) lineage.Item {
	item := m.unnamedItem(t)
	if item.Metadata == nil && rapid.IntRange(0, 5).Draw(t, "with metadata") == 0 {
		item.Metadata = []byte(rapid.SampledFrom([]string{`{"k": 1.0}`, `{"title":"what was said \u0000"}`, `{"type":"fragment"}`, "no JSON", ""}).Draw(t, "metadata"))
	}
	switch {
	case m.shared && rapid.Bool().Draw(t, "shared id"):
		return item.WithID(fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "id")))
	case rapid.IntRange(0, 2).Draw(t, "id of its own") == 0:
		m.n++
		return item.WithID(fmt.Sprintf("x%d", m.n))
	}
	return item
}

// unnamedItem returns an item of any kind without an id.
func (m *machine) unnamedItem(t *rapid.T) lineage.Item {
	body := []byte(m.text(t))
	m.note(body)
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return lineage.Item{Kind: lineage.Asset, Filename: "a.png", Body: body, Type: "image/png"}
	case 1:
		m.n++
		return lineage.Item{Kind: lineage.Document, Document: fmt.Sprint("doc", m.n), Revision: 3, Body: body}
	case 2:
		return lineage.Item{Role: "assistant", Body: body, Origin: lineage.Origin{UserID: "eve", ModelID: "model", SourceID: "s", Kind: content.OriginAssistant}}
	case 3:
		return lineage.ToolResult("", "look", string(body))
	case 4:
		large := []byte(strings.Repeat(string(body)+" ", 70_000/len(body)))
		m.note(large)
		if rapid.Bool().Draw(t, "large file") {
			return lineage.Item{Kind: lineage.Asset, Filename: "large.txt", Body: large, Type: "text/plain"}
		}
		data, _ := json.Marshal(map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": string(large)}, map[string]any{"type": "text", "text": string(body)}}})
		return lineage.Item{Role: "user", Body: data, Type: content.TypeJSON}
	case 5, 6, 7:
		all := messagetest.Wild(t)
		if len(all) == 0 {
			break
		}
		message := rapid.SampledFrom(all).Draw(t, "message")
		item := lineage.Item{Role: cmp.Or(message.Role, "user"), Body: []byte(message.Bytes), Type: message.Type}
		if rapid.IntRange(0, 4).Draw(t, "named") == 0 {
			item.Name = "Ann"
		}
		if pieces, ok := form.Split(item.Body, item.Role); ok && message.Type == content.TypeJSON {
			for _, p := range pieces.Pieces {
				m.note(p.Body)
			}
		}
		return item
	case 8:
		return lineage.Item{Role: "user", Body: body, Type: rapid.SampledFrom([]string{"text/markdown", "text/html", "application/x-own"}).Draw(t, "type")}
	}
	return lineage.User(string(body))
}

// hang adds messages to a thread after a span of any context.
func (m *machine) hang(t *rapid.T) error {
	thread, err := pick(t, m.threads)
	if err != nil {
		return err
	}
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	at, err := m.anySpan(t, c)
	if err == nil {
		_, err = thread.AddAfter(bg, at, m.items(t)...)
	}
	return err
}

func (m *machine) note(body []byte) {
	id := content.Sum(body)
	m.content = append(m.content, id)
	m.bodies[id] = body
}

func (m *machine) items(t *rapid.T) []lineage.Item {
	items := make([]lineage.Item, rapid.IntRange(1, 3).Draw(t, "items"))
	for i := range items {
		items[i] = m.item(t)
	}
	return items
}

func (m *machine) extend(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	_, err = c.Extend(bg, m.items(t)...)
	return err
}

func (m *machine) extendTogether(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	_, err = c.Extend(bg, lineage.Together(m.items(t)...))
	return err
}

// anySpan returns a span of a context's history.
func (m *machine) anySpan(t *rapid.T, c *lineage.Context) (lineage.SpanRef, error) {
	tip, err := c.Tip(bg)
	if err != nil || tip.IsZero() {
		return tip, err
	}
	length, err := c.Len(bg)
	if err != nil {
		return tip, err
	}
	return m.store.At(bg, tip, rapid.Uint64Range(1, length).Draw(t, "position"))
}

func (m *machine) fork(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	var o lineage.ForkOptions
	if rapid.Bool().Draw(t, "elsewhere") {
		if o.At, err = m.anySpan(t, c); err != nil {
			return err
		}
	}
	if rapid.Bool().Draw(t, "into a thread") {
		thread, err := pick(t, m.threads)
		if err != nil {
			return err
		}
		o.Thread = thread.ID()
		if id, err := m.chatID(t); err == nil && rapid.Bool().Draw(t, "of a chat") {
			if thread, err = m.store.FindThread(bg, id); err != nil {
				return err
			}
			o.Thread = thread.ID()
		}
	}
	return m.keep(c.Fork(bg, o))
}

func (m *machine) subagent(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	prompt := "you are a subagent"
	child, err := c.Fork(bg, lineage.ForkOptions{Overrides: lineage.Overrides{SystemPrompt: &prompt}})
	if err := m.keep(child, err); err != nil {
		return err
	}
	if _, err = child.Extend(bg, m.items(t)...); err != nil || rapid.Bool().Draw(t, "busy") {
		return err
	}
	_, err = child.Return(bg, lineage.Assistant(m.text(t)))
	return err
}

func (m *machine) alternatives(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	offered, err := c.Alternatives(bg, lineage.Overrides{}, lineage.Overrides{JSON: []byte(`{"temperature":1}`)})
	if err != nil {
		return err
	}
	for _, one := range offered {
		m.contexts = append(m.contexts, one)
		if rapid.Bool().Draw(t, "filled") {
			if _, err := one.Extend(bg, m.item(t)); err != nil {
				return err
			}
		}
	}
	if rapid.Bool().Draw(t, "chosen") {
		return c.Choose(bg, offered[0])
	}
	return nil
}

func (m *machine) edit(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	at, err := m.anySpan(t, c)
	if err != nil || at.IsZero() {
		return err
	}
	return m.keep(c.Edit(bg, at, lineage.User(m.text(t)), lineage.EditOptions{Replay: func(e *lineage.Entry) bool { return e.Role == "user" }}))
}

func (m *machine) rewindTo(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	at, err := m.anySpan(t, c)
	if err != nil || at.IsZero() {
		return err
	}
	return c.MoveTo(bg, at, "rewind")
}

func (m *machine) undo(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	return c.Undo(bg)
}

func (m *machine) merge(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	from, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	if rapid.Bool().Draw(t, "replace") {
		tip, err := from.Tip(bg)
		if err != nil {
			return err
		}
		return c.MoveTo(bg, tip, "replace")
	}
	_, err = c.Merge(bg, from)
	return err
}

func (m *machine) subset(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	return m.keep(c.Fork(bg, lineage.ForkOptions{Sees: &lineage.Filter{Roles: []string{"user"}}}))
}

func (m *machine) send(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	to, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	last, err := c.Last(bg, 1)
	if err != nil || len(last) == 0 {
		return err
	}
	_, err = c.Send(bg, to, last[len(last)-1].Item())
	return err
}

type shortener struct{ text string }

func (s shortener) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: s.text, Model: "short"}, nil
}

func (m *machine) summarize(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	text := m.text(t)
	m.note([]byte(text))
	_, err = c.Summarize(bg, shortener{text}, lineage.SummarizeOptions{})
	return err
}

func (m *machine) dropSummary(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	for s, err := range c.Summaries(bg) {
		if err != nil {
			return err
		}
		return c.DeleteSummary(bg, s.ID)
	}
	return nil
}

func (m *machine) override(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	model := m.text(t)
	return c.Update(bg, func(info *lineage.ContextInfo) error {
		info.Overrides = lineage.Overrides{Model: &model}
		return nil
	})
}

func (m *machine) thread(t *rapid.T) (*lineage.Thread, error) {
	if id, err := m.chatID(t); err == nil && rapid.Bool().Draw(t, "a chat's") {
		return m.store.FindThread(bg, id)
	}
	return pick(t, m.threads)
}

func (m *machine) branch(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	m.n++
	o := lineage.BranchOptions{Switch: rapid.Bool().Draw(t, "switch"), Empty: rapid.IntRange(0, 4).Draw(t, "empty") == 0}
	return m.keep(thread.CreateBranch(bg, fmt.Sprintf("t%d", m.n), o))
}

func (m *machine) aside(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	_, err = thread.CreateBranch(bg, "", lineage.BranchOptions{})
	return err
}

func (m *machine) rewind(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	c, err := thread.Active(bg)
	if err != nil {
		return err
	}
	at, err := m.anySpan(t, c)
	if err != nil || at.IsZero() {
		return err
	}
	_, err = thread.CreateBranch(bg, "", lineage.BranchOptions{At: at, Switch: true})
	return err
}

func (m *machine) threadCheckpoint(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	_, err = thread.SetCheckpoint(bg, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), lineage.CheckpointOptions{})
	return err
}

func (m *machine) restore(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	at, err := thread.Checkpoint(bg, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"))
	if err == nil {
		_, err = thread.CreateBranch(bg, "", lineage.BranchOptions{At: at.Span, Switch: true})
	}
	return err
}

func (m *machine) anyName(t *rapid.T, thread *lineage.Thread) (string, error) {
	list, err := thread.Branches(bg)
	if err != nil {
		return "", err
	}
	b, err := pick(t, list)
	return b.Name, err
}

func (m *machine) name(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	m.n++
	return thread.NameBranch(bg, fmt.Sprintf("n%d", m.n), c)
}

func (m *machine) switchTo(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	name, err := m.anyName(t, thread)
	if err != nil {
		return err
	}
	return thread.Switch(bg, name)
}

func (m *machine) rename(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	name, err := m.anyName(t, thread)
	if err != nil {
		return err
	}
	branch, err := thread.BranchContext(bg, name)
	if err != nil {
		return err
	}
	return thread.NameBranch(bg, fmt.Sprintf("r%d", rapid.IntRange(0, 3).Draw(t, "name")), branch)
}

func (m *machine) dropBranch(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	name, err := m.anyName(t, thread)
	if err != nil {
		return err
	}
	return thread.DeleteBranch(bg, name)
}

func (m *machine) dropContext(t *rapid.T) error {
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	return c.Delete(bg)
}

func (m *machine) dropThread(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	return thread.Delete(bg)
}

func (m *machine) erase(t *rapid.T) error {
	id, err := pick(t, m.content)
	if err != nil {
		return err
	}
	return m.store.Erase(bg, id)
}

func (m *machine) storeAgain(t *rapid.T) error {
	id, err := pick(t, m.content)
	if err != nil {
		return err
	}
	_, _, err = m.store.Put(bg, bytes.NewReader(m.bodies[id]), lineage.BlockOptions{})
	return err
}

// collect deletes unreachable data. No commit records it.
func (m *machine) collect(*rapid.T) error {
	_, err := m.store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	return err
}
