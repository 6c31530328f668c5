package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/lineage/transcript"
)

const (
	// maxEdited limits the size of a text that can be edited on the page. maxEditForm limits that of its form, in
	// which a byte may take three.
	maxEdited   = 256 << 10
	maxEditForm = 3*maxEdited + maxForm
	// following is the number of listed messages after an edited one.
	following = 100
	// maxReplayed limits the number of messages that an edit on the page repeats.
	maxReplayed = 10_000
	// maxNames is the number of names that are tried for the branch of an edit.
	maxNames = 100
)

// Which of the messages after an edited one are repeated.
const (
	replayNone    = ""
	replayPrompts = "prompts"
	replayAll     = "all"
)

// editView is the form for editing a message.
type editView struct {
	*subject
	At    uint64
	Index int
	Text  string
	// JSON is set if the text is the JSON of the whole message, because the message has several texts.
	JSON bool
	// Mark is the checksum of the displayed text (markOf). Name is a free branch name.
	Mark, Name string
	// After is the number of messages that follow, and Prompts the number of prompts among them, or a lower bound if
	// More is set. Rows are the first of them.
	After, Prompts uint64
	More           bool
	Rows           []*editRow
}

// editRow is one of the messages after the edited one.
type editRow struct {
	Position       uint64
	Class, Speaker string
	Text           string
	Prompt         bool
}

// editable is a message with a text that can be edited on the page.
type editable struct {
	*lineage.Entry
	text   string
	isJSON bool
	// edited returns the body with another text in place of this one.
	edited func(text string) ([]byte, error)
}

// editableOf returns the editable form of the message with an index in a span. The error is errRequest if a form
// cannot represent the message unchanged.
func (p *Page) editableOf(ctx context.Context, ref lineage.SpanRef, index int) (*editable, error) {
	entries, err := p.o.Store.Span(ctx, ref)
	if err != nil {
		return nil, err
	}
	e := &editable{}
	for _, entry := range entries {
		if entry.Index == index {
			e.Entry = entry
		}
	}
	switch {
	case e.Entry == nil:
		return nil, fmt.Errorf("message %v.%d: %w", ref, index, lineage.ErrNotFound)
	case e.Erased:
		return nil, fmt.Errorf("message %v: %w", ref, lineage.ErrErased)
	case e.Kind != lineage.Message, e.Size > maxEdited:
		return nil, refuse("This message of %d bytes cannot be edited on a page: 'lineage edit' changes it.", e.Size)
	}
	body, err := p.o.Store.Original(ctx, e.Entry)
	if err != nil {
		return nil, err
	}
	e.text, e.edited = string(body), func(text string) ([]byte, error) { return []byte(text), nil }
	if rawjson.IsObject(body) && rawjson.Valid(body) {
		e.json(body)
	}
	// Line ends and replaced characters would come back from a form in another form.
	if render.Clean(e.text) != e.text {
		return nil, refuse("This message has characters that are not seen on a page, and would be lost: 'lineage edit' changes it.")
	}
	return e, nil
}

// json makes the text of a JSON message editable if it has only one, or else the JSON of the message.
func (e *editable) json(body []byte) {
	e.isJSON = true
	e.edited = func(text string) ([]byte, error) {
		if !rawjson.Valid([]byte(text)) || !rawjson.IsObject([]byte(text)) {
			return nil, refuse("The text is not a JSON object, as the message is.")
		}
		return []byte(text), nil
	}
	var texts []string
	for _, m := range message.Decode(body, e.Type, e.Role) {
		for i := range m.Parts {
			if m.Parts[i].Kind == message.TextKind {
				texts = append(texts, m.Parts[i].Text)
			}
		}
	}
	if len(texts) != 1 {
		return
	}
	from, to, found := onlyString(body, texts[0])
	if !found {
		return
	}
	e.text, e.isJSON = texts[0], false
	e.edited = func(text string) ([]byte, error) {
		quoted, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		return bytes.Join([][]byte{body[:from], quoted, body[to:]}, nil), nil
	}
}

// onlyString returns the position of a string in a JSON document, if it occurs exactly once.
func onlyString(doc []byte, text string) (from, to int, found bool) {
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		end := rawjson.StringEnd(doc, i)
		if rawjson.Str(doc[i:end]) == text {
			if found {
				return 0, 0, false
			}
			from, to, found = i, end, true
		}
		i = end - 1
	}
	return from, to, found
}

// positionGiven returns the position and index in a form or query.
func positionGiven(q url.Values) (at uint64, index int, err error) {
	at, err = strconv.ParseUint(q.Get("at"), 10, 63)
	if err != nil || at == 0 {
		return 0, 0, notPosition(q.Get("at"))
	}
	if text := q.Get("index"); text != "" {
		if index, err = strconv.Atoi(text); err != nil || index < 0 {
			return 0, 0, refuse("The message has no part %.40q: parts are counted from 0.", text)
		}
	}
	return at, index, nil
}

// askEdit shows the form for editing a message, and the messages that follow it.
func (p *Page) askEdit(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	subject, err := p.subjectOf(r, r.URL.Query().Get("in"))
	if err != nil {
		return err
	}
	if subject.Context == "" {
		return refuse("Only a message of a branch can be edited: open the branch.")
	}
	v := &editView{subject: subject}
	if v.At, v.Index, err = positionGiven(r.URL.Query()); err != nil {
		return err
	}
	ref, err := p.o.Store.At(ctx, subject.Tip, v.At)
	if err != nil {
		return err
	}
	e, err := p.editableOf(ctx, ref, v.Index)
	if err != nil {
		return err
	}
	v.Text, v.JSON, v.Mark = e.text, e.isJSON, markOf(e.text)
	length, err := p.o.Store.Position(ctx, subject.Tip)
	if err != nil {
		return err
	}
	v.After = length - v.At
	signs, err := p.outlines.of(ctx, subject.Tip)
	if err != nil {
		return err
	}
	for _, s := range signs[min(v.At, uint64(len(signs))):] {
		if s == signPrompt {
			v.Prompts++
		}
	}
	v.More = uint64(len(signs)) < length
	if v.After > 0 {
		if err := p.listFollowing(ctx, v); err != nil {
			return err
		}
	}
	if v.Name, err = p.freeName(ctx, subject.Thread); err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "edit", &pageData{Title: "Edit · " + subject.Title, Body: v})
}

// listFollowing lists the first messages after the edited one.
func (p *Page) listFollowing(ctx context.Context, v *editView) error {
	last := uint64(0)
	for m, err := range p.transcribed(ctx, v.Tip, lineage.Window{From: v.At + 1, To: v.At + following}) {
		if err != nil {
			return err
		}
		if m.Position == last {
			continue // another part of the same message
		}
		last = m.Position
		row := &editRow{Position: m.Position, Class: render.RoleClass(m.Role), Prompt: signOf(m) == signPrompt}
		row.Speaker, row.Text = transcript.Line(m)
		row.Text = short(words(row.Text), 160)
		if row.Speaker == "tool" { // results alone
			row.Class = row.Speaker
		}
		v.Rows = append(v.Rows, row)
	}
	return nil
}

// freeName returns a name that no branch of the thread has.
func (p *Page) freeName(ctx context.Context, t *lineage.Thread) (string, error) {
	for n := 1; n < maxNames; n++ {
		name := fmt.Sprint("edit-", n)
		_, err := p.o.Store.View().Branch(ctx, t.ID(), name)
		if errors.Is(err, lineage.ErrNotFound) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// edit creates a branch in which a message has another text.
func (p *Page) edit(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	r.Body = http.MaxBytesReader(w, r.Body, maxEditForm)
	if err := r.ParseForm(); err != nil {
		return refuse("The form cannot be read: %v.", err)
	}
	name, shown, ref, err := p.nameAt(w, r)
	if err != nil {
		return err
	}
	if shown.Context == "" {
		return refuse("Only a message of a branch can be edited: open the branch.")
	}
	at, index, err := positionGiven(r.PostForm)
	if err != nil {
		return err
	}
	e, err := p.editableOf(ctx, ref, index)
	if err != nil {
		return err
	}
	if markOf(e.text) != r.PostForm.Get("was") {
		return errMoved
	}
	text := strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n") // lines of a form end so
	switch {
	case text == e.text:
		return refuse("The text is as it was. Nothing was done.")
	case strings.TrimSpace(text) == "" || len(text) > maxEdited:
		return refuse("The text has %d bytes. It may have 1 to %d.", len(text), maxEdited)
	}
	body, err := e.edited(text)
	if err != nil {
		return err
	}
	o := lineage.EditOptions{Index: index, Thread: shown.Info.ID, Metadata: []byte(`{"made_by":"` + string(graph.KindEdit) + `"}`)}
	if o.Replay, err = p.replay(ctx, r.PostForm.Get("replay"), shown, at); err != nil {
		return err
	}
	if o.Replay != nil && shown.Tip.String() != r.PostForm.Get("tip") {
		return errMoved // more messages would be repeated than the form showed
	}
	c, err := p.contextOf(ctx, shown)
	if err != nil {
		return err
	}
	item := e.Item()
	item.Content, item.Body, item.CreatedAt = lineage.ContentID{}, body, time.Time{}
	fork, err := c.Edit(ctx, ref, item, o)
	if err != nil {
		return err
	}
	if err := shown.Thread.NameBranch(ctx, name, fork); err != nil {
		return errors.Join(err, fork.Delete(context.WithoutCancel(ctx)))
	}
	return done(w, r, &subject{ID: shown.ID, In: fork.ID().String()}, "Branch "+name+" has the other text")
}

// replay returns a function that selects the messages after a position to repeat, or nil for none.
func (p *Page) replay(ctx context.Context, what string, subject *subject, at uint64) (func(*lineage.Entry) bool, error) {
	if what == replayNone {
		return nil, nil
	}
	length, err := p.o.Store.Position(ctx, subject.Tip)
	if err != nil {
		return nil, err
	}
	if length-at > maxReplayed {
		return nil, refuse("%d messages follow, and a page repeats at most %d: 'lineage edit' repeats more.", length-at, maxReplayed)
	}
	switch what {
	case replayAll:
		return func(*lineage.Entry) bool { return true }, nil
	case replayPrompts:
	default:
		return nil, refuse("%.40q cannot be repeated: nothing, the prompts or all can.", what)
	}
	prompts := make(map[uint64]bool)
	for m, err := range p.transcribed(ctx, subject.Tip, lineage.Window{From: at + 1}) {
		if err != nil {
			return nil, err
		}
		prompts[m.Position] = prompts[m.Position] || signOf(m) == signPrompt
	}
	return func(e *lineage.Entry) bool { return prompts[e.Position] }, nil
}
