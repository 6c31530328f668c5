package archives

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// cursorTable is Cursor's key-value table. It also has credentials and other data, so only rows whose keys begin with
// one of the two prefixes are read.
const (
	cursorTable  = "cursorDiskKV"
	cursorThread = "composerData:"
	cursorBubble = "bubbleId:"
)

// cursor reads the conversations in Cursor's own database. Copies, such as files in an archive, are refused.
func cursor() archive.Format {
	return archive.Format{
		Name:   "cursor",
		Detect: func(h archive.Head) bool { return mentions(h, cursorTable) },
		Read: func(ctx context.Context, in *archive.Input) conversations {
			return readInPlace(ctx, in, func(r reader) error {
				if !r.has(cursorTable, "key", "value") {
					return fmt.Errorf("%w: no table of conversations", archive.ErrMalformed)
				}
				c := cursorReader{r}
				return c.threads(ctx)
			})
		},
	}
}

// maxCursorKey is the size in bytes of the longest key of a conversation that is read.
const maxCursorKey = 256

type cursorReader struct{ reader }

// between selects the rows whose keys have a prefix. keysOf returns its arguments: the prefix ends with a colon, and
// a semicolon is the next character.
const between = ` FROM cursorDiskKV WHERE key >= ?2 AND key < ?3`

func keysOf(prefix string) []any { return []any{prefix, prefix[:len(prefix)-1] + ";"} }

// threads reads all conversations. It lists their ids first, so that no query stays open longer than one conversation
// takes.
func (r *cursorReader) threads(ctx context.Context) error {
	var keys []string
	query := `SELECT DISTINCT key` + between + ` AND octet_length(key) <= ?1 ORDER BY key`
	err := r.rows(ctx, maxCursorKey, query, keysOf(cursorThread), func(v row) error {
		keys = append(keys, v.text("key"))
		return r.in.Expand(rowBytes, r.size)
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		id := strings.TrimPrefix(key, cursorThread)
		at := r.next("conversation " + cleanText([]byte(id)))
		if id == "" || strings.Contains(id, ":") {
			continue
		}
		if err := r.thread(ctx, id, at); err != nil {
			if err := r.skip(ctx, at, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// isCursorSecret reports whether a member, at any depth of a conversation or message, is an encryption key, which is never
// read.
func isCursorSecret(member string) bool {
	return strings.Contains(strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(member)), "encryptionkey")
}

// thread reads a conversation.
func (r *cursorReader) thread(ctx context.Context, id string, at archive.Position) error {
	c := partCollector{Conversation: &archive.Conversation{SourceID: cleanText([]byte(id))}, r: &r.reader}
	about, bubbles, err := r.bubbles(ctx, id, &c)
	if err != nil || about == nil {
		return err
	}
	model, cwd := cursorMessages(&c, about, bubbles, at)
	if len(c.Nodes) == 0 {
		return nil
	}
	c.Title = cleanText([]byte(rawjson.Str(rawjson.Get(about, "name"))))
	c.Created, c.Updated = agentTime(cursorNumber(rawjson.Get(about, "createdAt"))), agentTime(cursorNumber(rawjson.Get(about, "lastUpdatedAt")))
	ok := fields{{archive.KeyAgent, "cursor"}}
	for _, f := range []struct{ key, value string }{
		{archive.KeyModel, cmp.Or(model, rawjson.Str(rawjson.Get(rawjson.Get(about, "modelConfig"), "modelName")))}, {archive.KeyProject, cwd}, {"mode", rawjson.Str(rawjson.Get(about, "unifiedMode"))},
	} {
		if f.value != "" {
			ok = append(ok, field{f.key, cleanText([]byte(f.value))})
		}
	}
	c.Metadata = appendJSON(nil, ok)
	return c.finish()
}

// bubbles reads the entries of a conversation, and adds their rows to c if the source wants them: about is the conversation
// itself, nil if it was emptied, and bubbles are its messages by id.
func (r *cursorReader) bubbles(ctx context.Context, id string, c *partCollector) (about []byte, bubbles map[string][]byte, err error) {
	bubbles = make(map[string][]byte)
	prefix := cursorBubble + id + ":"
	from := `SELECT ` + r.list(cursorTable, "key", "value") + ` FROM cursorDiskKV WHERE key `
	// A single statement, so that the list of messages and the messages themselves are from the same moment.
	query := from + `= ? UNION ALL ` + from + `>= ? AND key < ?`
	err = r.each(ctx, query, append([]any{cursorThread + id}, keysOf(prefix)...), func(v row) error {
		value := v.bytes("value")
		if rawjson.Check(value) != nil || !rawjson.IsObject(value) {
			return nil // the entry was emptied
		}
		if err := r.item.object(); err != nil {
			return err
		}
		value = rawjson.RemoveDeep(value, isCursorSecret)
		if _, blob := v["value"].([]byte); blob {
			v["value"] = value
		} else {
			v["value"] = string(value)
		}
		key := v.text("key")
		if bubble, ok := strings.CutPrefix(key, prefix); ok {
			bubbles[bubble] = value
		} else {
			about = value
		}
		if r.in.WantsRows() {
			key := cleanText([]byte(key))
			c.Rows = append(c.Rows, archive.Row{Key: cursorTable + " " + key, JSON: rowJSON(cursorTable, key, []string{"key", "value"}, v)})
		}
		return nil
	})
	return about, bubbles, err
}

// cursorMessages adds the messages of a conversation in order. It returns the model of the last one that names one, and the
// folder that the conversation or the first of them names.
func cursorMessages(c *partCollector, about []byte, bubbles map[string][]byte, at archive.Position) (model, cwd string) {
	cwd = cursorFolder(about)
	last := ""
	add := func(bubble string, value []byte) {
		if bubble == "" || !rawjson.IsObject(value) {
			return
		}
		n := archive.Node{ID: cleanText([]byte(bubble)), Parent: last, Root: last == "", At: at, Created: cursorTime(value), Model: rawjson.Str(rawjson.Get(rawjson.Get(value, "modelInfo"), "modelName"))}
		n.At.Inside += ", message " + n.ID
		switch string(rawjson.Get(value, "type")) {
		case "1":
			n.Role = "user"
		case "2":
			n.Role = "assistant"
		default:
			n.Role = "unknown"
		}
		n.Give(value)
		model, cwd, last = cmp.Or(n.Model, model), cmp.Or(cwd, cursorFolder(value)), n.ID
		c.add(n)
	}
	seen := make(map[string]bool)
	for header := range rawjson.Elements(rawjson.Get(about, "fullConversationHeadersOnly")) {
		if bubble := rawjson.Str(rawjson.Get(header, "bubbleId")); !seen[bubble] {
			seen[bubble] = true
			add(bubble, bubbles[bubble])
		}
	}
	for bubble := range rawjson.Elements(rawjson.Get(about, "conversation")) { // of older versions
		if id := rawjson.Str(rawjson.Get(bubble, "bubbleId")); !seen[id] {
			seen[id] = true
			add(id, bubble)
		}
	}
	return model, cwd
}

// cursorFolder returns the workspace folder that a conversation or message names, empty if none.
func cursorFolder(raw []byte) string {
	if dir := rawjson.Str(rawjson.Get(rawjson.Get(rawjson.Get(raw, "workspaceIdentifier"), "uri"), "fsPath")); dir != "" {
		return dir
	}
	for uri := range rawjson.Elements(rawjson.Get(raw, "workspaceUris")) {
		if u, err := url.Parse(rawjson.Str(uri)); err == nil && u.Scheme == "file" && u.Host == "" {
			return u.Path
		}
	}
	return ""
}

// cursorTime returns the time of a message.
func cursorTime(bubble []byte) time.Time {
	if at := rawjson.Get(bubble, "createdAt"); rawjson.IsString(at) {
		return agentTime(rawjson.Str(at))
	}
	return agentTime(cursorNumber(rawjson.Get(rawjson.Get(bubble, "timingInfo"), "clientStartTime")))
}

// cursorNumber returns a JSON number as a value for agentTime.
func cursorNumber(raw []byte) any {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil
	}
	return n
}
