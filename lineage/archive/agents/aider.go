package agents

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// aiderStart is before the time at which a chat began, in a line of its own.
const aiderStart = "# aider chat started at "

// Aider reads the history of chats that aider keeps in a folder (.aider.chat.history.md): Markdown, to which each start
// of the program adds a chat. Lines of a person begin with "#### " and lines that the program printed with "> "; both end
// with two spaces, which tells them from the same in an answer. All other lines are answers of the model.
func Aider() archive.Format {
	return archive.Format{
		Name:  "aider",
		Tried: "published histories of 2025 and 2026",
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(1) {
				return bytes.HasPrefix(line, []byte(aiderStart))
			}
			return false
		},
		Read: readAider,
	}
}

func readAider(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
	return func(yield func(*archive.Conversation, error) bool) {
		at := archive.Position{File: in.Name}
		text, err := in.ReadAll()
		if err != nil {
			yield(nil, in.Unreadable(at, err))
			return
		}
		var chat *aiderChat
		known := make(map[string]int)
		for line := range bytes.Lines(text) {
			if context.Cause(ctx) != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			at.Line++
			if started, ok := bytes.CutPrefix(line, []byte(aiderStart)); ok {
				if chat != nil && !chat.finish(known) {
					return
				}
				chat = newAiderChat(in, string(bytes.TrimSpace(started)), yield)
			} else if chat != nil {
				chat.line(line, at)
			}
			at.Offset += int64(len(line))
		}
		if chat != nil {
			chat.finish(known)
		}
	}
}

// aiderChat is a chat that is being read.
type aiderChat struct {
	sessionReader
	role  string // of the block that is being read, or ""
	block []byte
	at    archive.Position // of the block
	// printed is the first line that the program printed.
	printed string
	stopped error // the reason why the rest of the chat is not read
}

// aiderOutput is the role of what the program printed.
const aiderOutput = "output"

func newAiderChat(in *archive.Input, started string, yield func(*archive.Conversation, error) bool) *aiderChat {
	c := &aiderChat{sessionReader: newSessionReader(in, yield)}
	c.about.agent, c.id = "aider", started
	if t, err := time.Parse(time.DateTime, started); err == nil { // it states no zone
		c.sessionReader.at(t)
	}
	return c
}

// line adds a line to the block that it belongs to.
func (c *aiderChat) line(line []byte, at archive.Position) {
	role, text := "assistant", bytes.TrimRight(line, "\r\n")
	if prompt, ok := c.marked(text, "#### "); ok {
		role, text = "user", prompt
	} else if printed, ok := c.marked(text, "> "); ok {
		role, text = aiderOutput, printed
	}
	if role == "assistant" && c.role != role && len(bytes.TrimSpace(text)) == 0 { // between blocks
		c.end()
		return
	}
	if role != c.role {
		c.end()
		c.role, c.at = role, at
	}
	c.block = append(append(c.block, text...), '\n')
}

// marked returns the text of a line that begins with a prefix. ok is false for others, and for a line of an answer.
func (c *aiderChat) marked(line []byte, prefix string) (text []byte, ok bool) {
	text, ok = bytes.CutPrefix(line, []byte(prefix))
	text, ends := bytes.CutSuffix(text, []byte("  "))
	return text, ok && (ends || c.role != "assistant")
}

// end adds the block that was read.
func (c *aiderChat) end() {
	role, text := c.role, bytes.Clone(bytes.Trim(c.block, "\n"))
	c.role, c.block = "", c.block[:0]
	if len(bytes.TrimSpace(text)) == 0 || c.stopped != nil {
		return
	}
	if limit := c.in.MaxObjects(); int64(len(c.part.Nodes)) >= limit {
		c.stopped = &archive.LimitError{Limit: "objects", Most: limit, What: "messages in a chat", Err: archive.ErrTooLarge}
		c.part.Skip(c.at, c.stopped)
		return
	}
	n := archive.Node{Role: role, Body: text, Type: content.TypeText, At: c.at}
	switch role {
	case aiderOutput:
		c.output(string(text))
		n.Aside, n.Root = lineage.AsideLog, c.begin(lineage.AsideLog)
		c.add(n)
		return
	case "assistant":
		n.Model = c.about.model
	}
	c.link(&n, false)
	c.add(n)
}

// output reads what the program printed of itself.
func (c *aiderChat) output(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		c.printed = cmp.Or(c.printed, line)
		if version, ok := strings.CutPrefix(line, "Aider v"); ok {
			c.about.version = version
		}
		for _, prefix := range []string{"Model: ", "Main model: "} {
			if model, ok := strings.CutPrefix(line, prefix); ok {
				c.about.model, _, _ = strings.Cut(model, " with ")
			}
		}
		if folder, ok := strings.CutPrefix(line, "Cur working dir: "); ok {
			c.about.cwd = cmp.Or(c.about.cwd, folder)
		}
	}
}

// finish yields the chat, unless nobody said anything in it. known counts the chats of the file by their ids: one of the
// same second has a number.
func (c *aiderChat) finish(known map[string]int) bool {
	c.end()
	if !slices.ContainsFunc(c.part.Nodes, func(n archive.Node) bool { return n.Aside == "" }) {
		return true
	}
	id := c.id + "\n" + c.printed
	if known[id]++; known[id] > 1 {
		c.printed += "\n" + strconv.Itoa(known[id])
	}
	c.local = archive.Mark(c.printed)
	return c.send(false)
}
