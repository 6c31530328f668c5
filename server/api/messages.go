package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/records"
)

// maxTexts is the approximate maximum of text in a page, in bytes. A single message may be larger.
const maxTexts = 8 << 20

type messagesQuery struct {
	of
	At      string   `json:"-" query:"at" doc:"the position that the history ends at; default the tip of the context"`
	First   uint64   `json:"-" query:"first" doc:"from this position on, counted from 1"`
	Last    uint64   `json:"-" query:"last" doc:"only the last so many messages"`
	Roles   []string `json:"-" query:"role" doc:"only messages of this role; pages may then have fewer than limit"`
	Dialect string   `json:"-" query:"dialect" doc:"answer with the request to send to a model instead: openai, responses, anthropic or ui"`
	Budget  int      `json:"-" query:"budget" doc:"with dialect: the number of tokens it may take, by estimate"`
	listPage
}

func (a *API) messages(ctx context.Context, c *call, in *messagesQuery) error {
	found, err := c.context(ctx, in.of)
	if err != nil {
		return err
	}
	if in.Dialect != "" {
		return a.request(ctx, c, found, in)
	}
	if in.Budget != 0 {
		return fmt.Errorf("budget: %w: only with dialect", lineage.ErrInvalid)
	}
	c.tellTip(records.SpanID(found.Span))
	tip, window, err := c.window(ctx, found, in)
	if err != nil {
		return err
	}
	out, err := a.pageOf(ctx, tip, window, in)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, out)
}

// window returns the end of the requested history, and the requested positions.
func (c *call) window(ctx context.Context, found *refs.Ref, in *messagesQuery) (tip lineage.SpanRef, w lineage.Window, err error) {
	if in.After == "" {
		at, err := c.position(ctx, found, in.At)
		if err != nil {
			return tip, w, err
		}
		w.From = in.First
		if in.Last > 0 {
			length, err := c.store.Position(ctx, at.Span)
			if err != nil {
				return tip, w, err
			}
			w.From = max(w.From, length-min(in.Last, length)+1)
		}
		return at.Span, w, nil
	}
	// All pages are of the history with which the first one began, even if the context has moved since.
	end, n, err := in.inHistory()
	if err != nil {
		return tip, w, err
	}
	at, err := c.position(ctx, found, end)
	if err != nil {
		return tip, w, err
	}
	return at.Span, lineage.Window{From: n + 1}, nil
}

// pageOf reads a page of a history.
func (a *API) pageOf(ctx context.Context, tip lineage.SpanRef, w lineage.Window, in *messagesQuery) (*list[*records.Message], error) {
	out := &list[*records.Message]{}
	if tip.IsZero() {
		return out, nil
	}
	length, err := a.o.Store.Position(ctx, tip)
	if err != nil {
		return nil, err
	}
	w.From = max(w.From, 1)
	if w.From > length {
		return out, nil
	}
	w.To = min(length, w.From+uint64(in.size())-1)
	texts, last := int64(0), w.From-1
	for e, err := range a.o.Store.History(ctx, tip, w) {
		if err != nil {
			return nil, err
		}
		if e.Position > last && len(out.Items) > 0 && texts+e.Size > maxTexts {
			break
		}
		last = e.Position
		if len(in.Roles) > 0 && (e.Kind != lineage.Message || !slices.Contains(in.Roles, e.SearchRole())) {
			continue
		}
		m, err := records.OfMessage(ctx, a.o.Store, e, records.MaxText)
		if err != nil {
			return nil, err
		}
		texts += e.Size
		out.Items = append(out.Items, m)
	}
	if last < length {
		out.Next = tip.String() + ":" + strconv.FormatUint(last, 10)
	}
	return out, nil
}

// request answers with the request to send to a model.
func (a *API) request(ctx context.Context, c *call, found *refs.Ref, in *messagesQuery) error {
	if in.At != "" || in.First != 0 || in.After != "" || len(in.Roles) > 0 || in.Limit != 0 {
		return fmt.Errorf("dialect: %w: of the other parameters only budget and last go with it", lineage.ErrInvalid)
	}
	to, err := dialect(in.Dialect)
	if err != nil {
		return err
	}
	request, err := found.Context.Request(ctx, to, lineage.ResolveOptions{Last: in.Last, Budget: in.Budget})
	if err != nil {
		return err
	}
	c.tellTip(records.SpanID(request.Resolved.Tip))
	c.w.Header().Set("Lineage-Losses", strconv.Itoa(len(request.Losses)))
	return c.sendJSON(http.StatusOK, append(slices.Clip(request.Body()), '\n'))
}

type appendMessages struct {
	of
	Messages []json.RawMessage `json:"messages" doc:"the messages: each one is an input, or a message of a provider as it is"`
	Together bool              `json:"together,omitempty" doc:"make all of them one step of the history"`
	Dialect  string            `json:"dialect,omitempty" query:"dialect" doc:"keep each of them as it is: a message of openai, responses, anthropic or ui"`
	ifTip
}

// dialect returns the dialect of that name. It refuses plain text, which has no roles.
func dialect(name string) (message.Dialect, error) {
	d := message.Dialect(name)
	if d == message.Text || !slices.Contains(message.Dialects(), d) {
		return "", fmt.Errorf("dialect %.100q: %w: must be openai, responses, anthropic or ui", name, lineage.ErrInvalid)
	}
	return d, nil
}

// alone implements alone. An append is a single call of the library.
func (*appendMessages) alone() {}

func (o *appendMessages) do(ctx context.Context, w *within) (made, error) {
	items, err := o.items(w)
	if err != nil {
		return made{}, err
	}
	return w.extend(ctx, o.of, &o.ifTip, items...)
}

// extend appends items to the context that o identifies.
func (w *within) extend(ctx context.Context, o of, at *ifTip, items ...lineage.Item) (made, error) {
	to, err := w.destination(ctx, o)
	if err != nil {
		return made{}, err
	}
	tip, expected, err := at.tip()
	if err != nil {
		return made{}, err
	}
	var added []lineage.SpanRef
	if expected {
		added, err = to.ExtendFrom(ctx, tip, items...)
	} else {
		added, err = to.Extend(ctx, items...)
	}
	if err != nil {
		return made{}, err
	}
	r := &records.Appended{Context: to.ID().String(), Thread: records.ID(to.thread)}
	for _, ref := range added {
		r.IDs = append(r.IDs, ref.String())
	}
	r.Tip = r.IDs[len(r.IDs)-1]
	r.Length, err = to.position(ctx, w.store, added[len(added)-1])
	m := made{Appended: r}
	if w.outside == nil { // a later operation may change the name
		m.branch = &to.branch
	}
	return m, err
}

// maxAppended limits the messages that are appended at once. A commit cannot have more records.
const maxAppended = 10_000

// items returns the items to append.
func (o *appendMessages) items(w *within) ([]lineage.Item, error) {
	if len(o.Messages) == 0 {
		return nil, fmt.Errorf("messages: %w: there are none", lineage.ErrInvalid)
	}
	if o.Dialect != "" {
		if _, err := dialect(o.Dialect); err != nil {
			return nil, err
		}
	}
	if len(o.Messages) > maxAppended {
		return nil, fmt.Errorf("messages: %d: %w: at most %d at once", len(o.Messages), lineage.ErrTooLarge, maxAppended)
	}
	items := make([]lineage.Item, len(o.Messages))
	for i, m := range o.Messages {
		var err error
		if items[i], err = o.item(w, m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	if o.Together {
		return []lineage.Item{lineage.Together(items...)}, nil
	}
	return items, nil
}

func (o *appendMessages) item(w *within, m json.RawMessage) (lineage.Item, error) {
	if o.Dialect != "" {
		item := lineage.Item{Kind: lineage.Message, Body: m, Type: content.TypeJSON}
		if given := records.AsGiven(m, "user"); given != nil {
			item.Role, item.Name = given.Role, given.Name
		} else if item.Role = o.roleOf(m); item.Role == "" {
			return lineage.Item{}, fmt.Errorf("%w: not a message of %s", lineage.ErrInvalid, o.Dialect)
		}
		return item, nil
	}
	return input(w, m)
}

// roleOf returns the role of a message whose parts are not known, such as an item of a new type: the one that it states. An item
// of the Responses API need not state one, and is then something that the model did. It is empty for anything else.
func (o *appendMessages) roleOf(m json.RawMessage) string {
	if !rawjson.IsObject(m) {
		return ""
	}
	if role := rawjson.Str(rawjson.Last(m, "role")); role != "" {
		return role
	}
	if o.Dialect == "responses" && rawjson.Str(rawjson.Last(m, "type")) != "" {
		return "assistant"
	}
	return ""
}

// input reads a message of the request.
func input(w *within, m json.RawMessage) (lineage.Item, error) {
	item, err := records.ParseItem(m, records.InputDefaults{Role: "user"})
	if err != nil {
		return item, fmt.Errorf("%w: %w", lineage.ErrInvalid, err)
	}
	// A caller that knows the hash of a content could read the content by adding it to a thread.
	if !item.Content.IsZero() && !w.caller.Scope.All() {
		return item, errWhole
	}
	return item, nil
}
