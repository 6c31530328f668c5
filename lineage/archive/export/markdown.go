package export

import (
	"context"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/lineage/transcript"
)

// markdown writes each conversation as a chapter: the active history, then the lines that fork from
// it, each under the message it follows.
//
// Message text is kept, including markup, but every line of it is quoted, so that a message cannot
// look like a heading or another message.
func (x *exporter) markdown(ctx context.Context) error {
	first := true
	return x.each(ctx, func(conv *conversation) (err error) {
		title := x.o.Title
		if title == "" {
			if title, err = x.title(ctx, conv); err != nil {
				return err
			}
		}
		t, err := newTree(ctx, x.store, conv.tips)
		if err != nil {
			return err
		}
		if !first {
			x.put("\n---\n\n")
		}
		first = false
		x.put("# ", heading(title), "\n")
		if about := about(conv); about != "" {
			x.put("\n", heading(about), "\n")
		}
		w := &markdownWriter{exporter: x, queue: t.forks()}
		for n := 0; len(w.queue) > 0; n++ {
			l := w.queue[0]
			w.queue = w.queue[1:]
			if n > 0 {
				x.put("\n## ", heading(lineTitle(l.line)), "\n")
			}
			w.off = nil
			if err := x.write(ctx, t, l, w); err != nil {
				return err
			}
			w.queue = append(w.off, w.queue...)
		}
		return nil
	})
}

// markdownWriter writes the lines of a conversation.
type markdownWriter struct {
	*exporter
	queue []*fork
	off   []*fork // lines that fork off the line being written
}

// about returns the user of a conversation and the time when it began.
func about(conv *conversation) string {
	var parts []string
	if conv.info.UserID != "" {
		parts = append(parts, "User "+conv.info.UserID)
	}
	if !conv.info.CreatedAt.IsZero() {
		parts = append(parts, stamp(conv.info.CreatedAt))
	}
	return strings.Join(parts, " · ")
}

// maxNames limits the branch names in a title.
const maxNames = 4

// lineTitle returns a title for a line: the branches that end on it and where it forks.
func lineTitle(l line) string {
	title := "Another continuation"
	if n := len(l.branches); n > 0 {
		title = "Branch " + strings.Join(l.branches[:min(n, maxNames)], ", ")
		if n > maxNames {
			title += fmt.Sprintf(" and %d more", n-maxNames)
		}
	}
	if l.after == 0 {
		return title + ", from the start"
	}
	return fmt.Sprintf("%s, after message %d", title, l.after)
}

func (w *markdownWriter) passing(_ context.Context, p *passing) error {
	if len(p.names) > 0 {
		w.put("\n*Here ends: ", heading(strings.Join(p.names, ", ")), "*\n")
	}
	for _, l := range p.off {
		w.put("\n*Goes on otherwise below: ", heading(lineTitle(l.line)), "*\n")
	}
	w.off = append(w.off, p.off...)
	return nil
}

func (w *markdownWriter) item(_ context.Context, i *transcript.Item, first bool) {
	if first {
		w.put("\n### ", heading(messageTitle(i.From)), "\n")
	}
	switch i.Kind {
	case transcript.Call:
		tool, what := callTitle(i.Call)
		w.put("\n**", heading(tool), "**")
		if what != "" {
			w.put(" ", heading(what))
		}
		w.put("\n")
		w.call(i.Call)
		for _, r := range i.Call.Results {
			w.result(r, i.From)
		}
	case transcript.Result:
		w.result(i.Result, nil)
	case transcript.File:
		w.quoteBlock("[" + i.File.String() + "]")
	case transcript.Note:
		w.quoteBlock("[" + i.Text + "]")
	case transcript.Thinking, transcript.Instruction, transcript.Command, transcript.Reminder:
		w.put("\n*", heading(reminderTitle(i)), "*\n")
		w.quoteBlock(i.Text)
	default:
		w.quoteBlock(i.Text)
	}
	w.quoteBlock(leftOut(i.Left))
}

// call writes the input of a call, except for what its title shows.
func (w *markdownWriter) call(c *transcript.ToolCall) {
	w.quoteBlock(c.About)
	if c.Text != c.Title {
		w.fence("", c.Text)
		w.quoteBlock(leftOut(c.Left))
	}
	if c.Diff != "" {
		w.fence("diff", c.Diff)
		w.quoteBlock(leftOut(c.DiffLeft))
	}
	if c.Rest != nil {
		w.fence("json", string(c.Rest))
	}
}

func (w *markdownWriter) result(r *transcript.ToolResult, within *transcript.Message) {
	w.put("\n*", heading(resultTitle(r, within)), "*\n")
	if r.Text != "" {
		w.fence("", r.Text)
	}
	for _, f := range r.Files {
		w.quoteBlock("[" + f.String() + "]")
	}
	w.quoteBlock(leftOut(r.Left))
}

// quoteBlock writes text as a block quote, which also ends open markup in it.
func (x *exporter) quoteBlock(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	x.put("\n")
	for line := range strings.SplitSeq(strings.TrimRight(newlines.Replace(clean(text)), "\n"), "\n") {
		if line == "" {
			x.put(">\n")
			continue
		}
		x.put("> ", line, "\n")
	}
}

// clean replaces bytes that are not UTF-8, control characters, and characters not allowed in pages
// by U+FFFD.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return r
		case r < ' ' || r >= 0x7f && r <= 0x9f || r == 0xfffe || r == 0xffff:
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// newlines normalises line ends.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// fence writes text as a code block, with a fence longer than any in the text.
func (x *exporter) fence(language, text string) {
	text = newlines.Replace(clean(text))
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	x.put("\n", fence, language, "\n", strings.TrimRight(text, "\n"), "\n", fence, "\n")
}

// heading returns text as a single line without markup.
func heading(text string) string {
	return escapeMarkdown.Replace(strings.Join(strings.Fields(clean(text)), " "))
}

var escapeMarkdown = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`, "&", `\&`, "|", `\|`, "~", `\~`, "!", `\!`,
)
