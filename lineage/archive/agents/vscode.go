package agents

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// VSCode reads chats of VS Code. A chat is a log of changes to one object, or that object.
func VSCode() archive.Format {
	return archive.Format{
		Name:  "vscode",
		Tried: "published exports of 2025 and 2026; the log of changes: documents",
		Detect: func(h archive.Head) bool {
			first := h.Object()
			if kind := rawjson.Get(first, "kind"); string(kind) == "0" {
				first = rawjson.Get(first, "v")
			}
			return rawjson.Has(first, "requests", "responderUsername") || rawjson.Has(first, "requests", "sessionId", "creationDate")
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				c := vscodeChat{sessionReader: newSessionReader(in, yield)}
				c.about.agent = "vscode"
				c.read(ctx)
			}
		},
	}
}

// vscodeChat is the state of reading a chat of VS Code. Its object is complete only at the end of the log.
type vscodeChat struct {
	sessionReader
	state *mutable
	at    archive.Position
	gone  []vscodeGone
	tree  archive.Tree
	ends  map[string]string // by request id, the last message of the request
}

// vscodeGone is a request that a change removed, and the request before it.
type vscodeGone struct {
	before  string
	request []byte
	at      archive.Position
}

func (c *vscodeChat) read(ctx context.Context) {
	c.ending = c.finish
	if first := c.in.Head().Lines(1); len(first) > 0 && rawjson.Has(first[0], "kind", "v") {
		c.readLines(ctx, c.change)
		return
	}
	c.readObjects(ctx, c.initial)
}

// change applies an entry of the log.
func (c *vscodeChat) change(raw []byte, at archive.Position) error {
	var path [][]byte
	for step := range rawjson.Elements(rawjson.Get(raw, "k")) {
		path = append(path, step)
	}
	value := rawjson.Get(raw, "v")
	kind := string(rawjson.Get(raw, "kind"))
	if kind == "0" {
		if !rawjson.IsObject(value) {
			return archive.Malformed("no object")
		}
		c.initial(value, at)
		return nil
	}
	if c.state == nil {
		return archive.Malformed("a change before the object")
	}
	var was []*mutable
	if len(path) <= 2 {
		was = slices.Clone(c.requests())
	}
	ok := false
	switch kind {
	case "1":
		ok = value != nil && len(path) > 0 && c.state.set(path, value)
	case "2":
		from := -1
		if i := rawjson.Get(raw, "i"); i != nil {
			n, err := strconv.Atoi(string(i))
			if err != nil || n < 0 {
				return archive.Malformed("cut at %.20s", i)
			}
			from = n
		}
		ok = c.state.push(path, from, value)
	case "3":
		ok = len(path) > 0 && c.state.set(path, nil)
	}
	if !ok {
		return archive.Malformed("a change of what is not there")
	}
	if len(path) <= 2 {
		c.removed(was, at)
	}
	return nil
}

// initial sets the object that changes apply to.
func (c *vscodeChat) initial(object []byte, at archive.Position) {
	was := c.requests()
	c.state, c.at = &mutable{raw: object}, at
	c.removed(was, at)
}

// requests returns the requests of the object.
func (c *vscodeChat) requests() []*mutable {
	if c.state == nil {
		return nil
	}
	list := c.state.get("requests")
	if list == nil || !list.divide() || !list.list {
		return nil
	}
	return list.kids
}

func requestID(r *mutable) string {
	if id := r.get("requestId"); id != nil {
		return rawjson.Str(id.bytes())
	}
	return ""
}

// removed records the requests that a change removed.
func (c *vscodeChat) removed(was []*mutable, at archive.Position) {
	now := c.requests()
	if len(now) >= len(was) && (len(was) == 0 || requestID(now[len(was)-1]) == requestID(was[len(was)-1])) {
		return
	}
	present := make(map[string]bool, len(now))
	for _, r := range now {
		present[requestID(r)] = true
	}
	before := ""
	for _, r := range was {
		id := requestID(r)
		if !present[id] {
			c.gone = append(c.gone, vscodeGone{before, r.bytes(), at})
		}
		before = id
	}
}

// finish adds the messages of the object. Requests that were removed become branches.
func (c *vscodeChat) finish() {
	if c.state == nil {
		return
	}
	c.ends = make(map[string]string)
	var fields []rawjson.Member
	for m := range rawjson.Members(c.state.bytes()) {
		switch m.Key {
		case "requests":
		case "sessionId":
			c.id = rawjson.Str(m.Value)
		case "customTitle":
			c.title = rawjson.Str(m.Value)
		case "creationDate", "lastMessageDate":
			c.sessionReader.at(archive.ParseTime(m.Value))
		default:
			fields = append(fields, m)
		}
	}
	for _, m := range fields {
		c.field(m, c.at)
	}
	before := ""
	for i, r := range c.requests() {
		at := c.at
		at.Inside = "request " + strconv.Itoa(i+1)
		before = c.request(r.bytes(), before, at)
	}
	for _, g := range c.gone {
		if id := rawjson.Str(rawjson.Get(g.request, "requestId")); id != "" && c.ends[id] == "" {
			c.request(g.request, c.ends[g.before], g.at)
		}
	}
	c.tree.At = c.at
	c.part.Current = before
	chat := archive.Conversation{Current: before}
	c.tree.Fill(&chat)
	for nodes := range chat.Parts() {
		for _, n := range nodes {
			c.add(n)
		}
	}
	c.part.Repairs = append(c.part.Repairs, chat.Repairs...)
	c.part.RepairsMore += chat.RepairsMore
}

// ofResponse are the members of a request that belong to its response.
var ofResponse = []string{
	"result", "responseMarkdownInfo", "followups", "modelState", "vote", "voteDownReason", "usedContext", "contentReferences", "codeCitations",
	"timeSpentWaiting", "responseTimestamp", "isCanceled", "editedFileEvents", "isHidden", "shouldBeRemovedOnSend",
}

// request adds the prompt and the response of a request, and returns the id of the last message added.
func (c *vscodeChat) request(raw []byte, before string, at archive.Position) string {
	if !rawjson.IsObject(raw) {
		c.log("request", "", "", raw, c.part.Updated, at)
		return before
	}
	prompt := archive.Node{Role: "user", Parent: before, At: at}
	answer := archive.Node{Role: "assistant", At: at}
	var message, response []byte
	var promptFields, answered rawjson.Object
	for m := range rawjson.Members(raw) {
		switch {
		case m.Key == "requestId":
			prompt.ID = rawjson.Str(m.Value)
		case m.Key == "responseId":
			answer.ID = rawjson.Str(m.Value)
		case m.Key == "message":
			message = m.Value
		case m.Key == "response":
			response = m.Value
		case m.Key == "timestamp":
			if prompt.Created = archive.ParseTime(m.Value); prompt.Created.IsZero() {
				promptFields.Add(m)
			}
		case m.Key == "modelId":
			answer.Model = rawjson.Str(m.Value)
			promptFields.Add(m)
		case slices.Contains(ofResponse, m.Key):
			answered.Add(m)
		default:
			promptFields.Add(m)
		}
	}
	id, last := prompt.ID, before
	if rawjson.IsObject(message) || rawjson.IsString(message) {
		if prompt.ID == "" {
			prompt.ID = "request-" + strconv.Itoa(c.tree.Len())
		}
		prompt.Give(message)
		prompt.Metadata = promptFields.Bytes()
		c.tree.Add(prompt, nil, true)
		last = prompt.ID
	}
	for range rawjson.Elements(response) {
		if answer.ID = cmp.Or(answer.ID, id+"/response"); answer.ID == last {
			answer.ID += "/response"
		}
		answer.Parent, answer.Created = last, prompt.Created
		answer.Give(response)
		answer.Metadata = answered.Bytes()
		c.about.model = cmp.Or(answer.Model, c.about.model)
		c.tree.Add(answer, nil, true)
		last = answer.ID
		break
	}
	if id != "" && c.ends[id] == "" {
		c.ends[id] = last
	}
	return last
}
