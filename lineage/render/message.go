// Package render shows what people read of a history as HTML: Markdown, highlighted code, calls with their results,
// changes of files, images. Texts are data: no text becomes markup, is loaded from elsewhere, or reorders the page.
package render

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// Message is a message on a page.
type Message struct {
	Position uint64
	// ID is the id in the store, for a page that can load more of the message, else empty. Class is the style: user,
	// assistant, system, tool or other.
	ID, Class string
	// Who is the author, Model the model used.
	Who, Model string
	Time       time.Time
	Blocks     []*Block
	// Anchor is the id of its element on the page.
	Anchor string
	// Continues is set if the previous message is from the same speaker.
	Continues bool
	// Open is set if it has a call without a result.
	Open bool
	// Prompt is the start of the first prompt in it, empty if it has none.
	Prompt string
	// Retries, when not nil, says which of several it is.
	Retries *Retries
	// Inside are histories that begin at the message and can be opened in it.
	Inside []Inside
}

// Inside is a history that can be opened in a message. Address is the address of its content, Alone the address of a
// page of its own.
type Inside struct {
	Title          string
	Messages       uint64
	Address, Alone string
}

// Retries is a message as one of several alternatives: repeated answers, edits. Before and After are the addresses of
// its neighbours, empty for none.
type Retries struct {
	Number, Of    int
	Before, After string
}

// Block is a part of a message.
type Block struct {
	// Kind is text, html, code, call, result, fold, file or note.
	Kind string
	HTML template.HTML
	// Title is the heading of a folded block: a tool, or the kind of a text. What is the rest of the heading.
	Title, What string
	Text        string
	Left        int
	About       string
	Diff        []DiffLine
	// Added and Removed count the lines of a change.
	Added, Removed int
	Rest           string
	Results        []*Result
	// Failed is set for calls and results that failed. Status is how the call ended, empty for success.
	Failed bool
	Status string
	// Pending is set for a call without a result.
	Pending bool
	Files   []*File
	// Long is set for a text that is folded to its first lines.
	Long bool
}

// Result is the result of a call.
type Result struct {
	Text   string
	Failed bool
	Left   int
	Files  []*File
}

// File is an image or another file. Src is the address of an image that is shown, else empty.
type File struct {
	Name string
	Src  template.URL
}

// DiffLine is a line of a change. Class is added, removed, hunk or same.
type DiffLine struct{ Class, Text string }

// Options configure how messages are shown.
type Options struct {
	// Image returns the address of an image of a message, empty if it is not shown.
	Image func(m *transcript.Message, f *transcript.FileInfo) template.URL
	// Prefix is the prefix of the anchors of messages. It differs if a page has several histories.
	Prefix string
	// Highlighting limits the time for highlighting code. Code after that is shown without highlighting. Zero means
	// no limit.
	Highlighting time.Duration
}

// page renders messages.
type page struct {
	Options
	texts
}

// Messages converts items to messages. When the context ends, the rest is not highlighted.
func Messages(ctx context.Context, items []*transcript.Item, options Options) []*Message {
	o := &page{options, texts{ctx, cmp.Or(options.Highlighting, math.MaxInt64)}}
	var all []*Message
	var last *Message
	var from *transcript.Message
	part := 0
	for _, i := range items {
		if i.From == nil {
			continue
		}
		class := classOf(i)
		if last == nil || i.From != from || class != last.Class {
			m := newMessage(i.From, class)
			m.Continues = last != nil && last.Class == m.Class && last.Who == m.Who && last.Model == m.Model
			if part++; i.From != from {
				part = 0
			}
			m.Anchor = fmt.Sprintf("%sm%d", o.Prefix, m.Position)
			if part > 0 {
				m.Anchor += fmt.Sprintf("-%d", part) // tells the parts of a message of several classes apart
			}
			all, last, from = append(all, m), m, i.From
		}
		b := o.block(i)
		last.Blocks = append(last.Blocks, b)
		last.Open = last.Open || b.Pending
		if i.Kind == transcript.Prompt && last.Prompt == "" {
			last.Prompt = PromptLine(i)
		}
	}
	return all
}

// classes maps the kinds of items to the styles of their messages.
var classes = map[transcript.Kind]string{
	transcript.Prompt: "user", transcript.Answer: "assistant", transcript.Thinking: "assistant", transcript.Call: "assistant", transcript.Result: "tool",
	transcript.Instruction: "system", transcript.Reminder: "system",
}

func classOf(i *transcript.Item) string {
	if class := classes[i.Kind]; class != "" {
		return class
	}
	if i.From.Filename == "" && i.From.Document == "" {
		return RoleClass(i.From.Role)
	}
	return "other"
}

// RoleClass returns the style for any role: user, assistant, system, tool or other.
func RoleClass(role string) string {
	switch role {
	case "user", "assistant", "system", "tool":
		return role
	}
	return "other"
}

func newMessage(from *transcript.Message, class string) *Message {
	m := &Message{Position: from.Position, ID: from.ID, Class: class, Who: from.Role, Model: from.Model, Time: from.Created}
	switch {
	case from.Filename != "":
		m.Who = "file " + from.Filename
	case from.Document != "":
		m.Who = fmt.Sprintf("document %s, revision %d", from.Document, from.Revision)
	case class == "tool", class == "system":
		m.Who = class
	}
	if from.Name != "" {
		m.Who += " " + from.Name
	}
	return m
}

// longText is the number of bytes or lines of a person's text that are shown before the rest is folded.
const (
	longText  = 2400
	longLines = 30
)

// block returns the block of an item.
func (o *page) block(i *transcript.Item) *Block {
	b := &Block{Kind: "text", Text: i.Text, Left: i.Left}
	switch i.Kind {
	case transcript.Call:
		o.call(b, i.Call)
	case transcript.Result:
		b.Kind, b.Title, b.What = "result", "Result", i.Result.Of()
		o.result(b, i.Result)
	case transcript.File:
		b.Kind, b.Files = "file", []*File{o.file(i.From, i.File)}
	case transcript.Note:
		b.Kind = "note"
	case transcript.Thinking:
		b.Kind, b.Title, b.What = "fold", "Thinking", start(i.Line())
		b.What = strings.TrimPrefix(b.What, "(thinking) ")
	case transcript.Instruction:
		b.Kind, b.Title, b.What = "fold", "Instructions", start(i.Line())
	case transcript.Reminder:
		b.Kind, b.Title, b.What = "fold", cmp.Or(i.Tag, "reminder"), start(transcript.Start(i.Text))
	case transcript.Data:
		b.Kind, b.Title, b.What = "fold", cmp.Or(i.Tag, "data"), start(i.Line())
	default:
		isMarkdown := i.Kind == transcript.Answer || strings.HasPrefix(i.From.Type, "text/markdown")
		if isMarkdown {
			if made, ok := o.markdown(i.Text); ok {
				b.Kind, b.HTML = "html", made
			}
		}
		b.Long = i.Kind == transcript.Prompt && (len(i.Text) > longText || strings.Count(i.Text, "\n") > longLines)
	}
	return b
}

// call fills a block with a call: what was run, the changes of files, and results.
func (o *page) call(b *Block, c *transcript.ToolCall) {
	b.Kind, b.Title, b.What, b.About, b.Text, b.Left = "call", transcript.Start(c.Tool), c.Title, c.About, "", c.Left
	if c.Text != c.Title {
		b.HTML, _ = o.texts.code(languageOf(c.Tool), c.Text)
	}
	b.Diff = diffOf(c.Diff)
	for _, l := range b.Diff {
		switch l.Class {
		case "added":
			b.Added++
		case "removed":
			b.Removed++
		}
	}
	b.Left += c.DiffLeft
	b.Rest = string(c.Rest)
	b.Pending = len(c.Results) == 0
	for _, r := range c.Results {
		o.result(b, r)
	}
}

// result adds a result to a block.
func (o *page) result(b *Block, r *transcript.ToolResult) {
	result := &Result{Text: r.Text, Failed: r.Failed, Left: r.Left}
	for _, f := range r.Files {
		result.Files = append(result.Files, o.file(r.From, f))
	}
	b.Results = append(b.Results, result)
	b.Failed = b.Failed || r.Failed
	switch {
	case r.Exit != nil && *r.Exit != 0:
		b.Status = fmt.Sprintf("exit %d", *r.Exit)
	case r.Failed:
		b.Status = "failed"
	}
}

func (o *page) file(from *transcript.Message, f *transcript.FileInfo) *File {
	file := &File{Name: transcript.Start(f.String())}
	if o.Image != nil {
		file.Src = o.Image(from, f)
	}
	return file
}

// languageOf returns the language of the input of a tool.
func languageOf(tool string) string {
	switch strings.ToLower(tool) {
	case "bash", "shell", "exec", "exec_command", "local_shell", "run_shell_command", "terminal":
		return "bash"
	case "python", "execute_python", "code_interpreter":
		return "python"
	}
	return ""
}

func diffOf(diff string) []DiffLine {
	var lines []DiffLine
	for line := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n") {
		class := "same"
		switch {
		case diff == "":
			return nil
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "***"):
			class = "hunk"
		case strings.HasPrefix(line, "+"):
			class = "added"
		case strings.HasPrefix(line, "-"):
			class = "removed"
		}
		lines = append(lines, DiffLine{class, line})
	}
	return lines
}

// PromptLine returns the start of a prompt, as one line of a list.
func PromptLine(prompt *transcript.Item) string { return start(prompt.Line()) }

// start returns the start of a line.
func start(line string) string {
	const longest = 160
	if runes := []rune(line); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return line
}

// Clean returns HTML without invisible characters and characters that reorder a page. It is the last step before HTML
// is sent or written.
func Clean(html string) string { return plain.Text(newlines.Replace(html)) }
