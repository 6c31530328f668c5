package export

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// markdown writes each conversation as a chapter: the active history, then the lines that fork from
// it, each under the message it follows.
//
// Message text is kept, including markup, but every line of it is quoted, so that a message cannot
// look like a heading or another message.
func (x *exporter) markdown(ctx context.Context) error {
	first := true
	for conv, err := range x.conversations(ctx) {
		if err != nil {
			return err
		}
		if !first {
			x.put("\n---\n\n")
		}
		first = false
		title := x.o.Title
		if title == "" {
			if title, err = x.title(ctx, conv); err != nil {
				return err
			}
		}
		x.put("# ", heading(title), "\n")
		if about := about(conv); about != "" {
			x.put("\n", heading(about), "\n")
		}
		t, err := newTree(ctx, x.store, conv.tips)
		if err != nil {
			return err
		}
		queue := t.lines()
		for n := 0; len(queue) > 0; n++ {
			l := queue[0]
			queue = queue[1:]
			if n > 0 {
				x.put("\n## ", heading(lineTitle(l)), "\n")
			}
			var off []line
			for p, err := range t.walk(ctx, l) {
				if err != nil {
					return err
				}
				if err := x.markdownPlace(ctx, p); err != nil {
					return err
				}
				off = append(off, p.off...)
			}
			queue = append(off, queue...)
		}
	}
	return nil
}

// about returns the user of a conversation and when it began.
func about(conv *conversation) string {
	var said []string
	if conv.info.UserID != "" {
		said = append(said, "User "+conv.info.UserID)
	}
	if !conv.info.CreatedAt.IsZero() {
		said = append(said, stamp(conv.info.CreatedAt))
	}
	return strings.Join(said, " · ")
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// maxNames limits the branches in a title.
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

func (x *exporter) markdownPlace(ctx context.Context, p *place) error {
	for _, e := range p.entries {
		x.put("\n### ", heading(entryTitle(e)), "\n")
		body, ok, err := x.body(ctx, e)
		if err != nil {
			return err
		}
		switch {
		case !ok:
			x.quoteBlock(tooLarge(e))
		case e.Erased:
			x.quoteBlock(erased)
		case e.Kind == lineage.Asset:
			x.quoteBlock("[" + assetLabel(e) + "]")
		default:
			for _, m := range said(e, body) {
				for i := range m.Parts {
					x.markdownPart(&m.Parts[i])
				}
			}
		}
	}
	if len(p.names) > 0 {
		x.put("\n*Here ends: ", heading(strings.Join(p.names, ", ")), "*\n")
	}
	for _, l := range p.off {
		x.put("\n*Goes on otherwise below: ", heading(lineTitle(l)), "*\n")
	}
	return x.failed()
}

func tooLarge(e *lineage.Entry) string {
	return fmt.Sprintf("[content %v, %d bytes, is too large to show]", e.Content, e.Size)
}

// entryTitle returns the position of an entry and who it is from.
func entryTitle(e *lineage.Entry) string {
	who := e.Role
	switch {
	case e.Kind == lineage.Asset:
		who = "file " + e.Filename
	case e.Kind == lineage.Document:
		who = fmt.Sprintf("document %s, revision %d", e.Document, e.Revision)
	case e.Name != e.Role && e.Name != "":
		who += " " + e.Name
	}
	title := fmt.Sprintf("%d · %s", e.Position, who)
	if e.Origin.ModelID != "" {
		title += " · " + e.Origin.ModelID
	}
	if !e.CreatedAt.IsZero() {
		title += " · " + stamp(e.CreatedAt)
	}
	return title
}

func (x *exporter) markdownPart(p *message.Part) {
	switch p.Kind {
	case message.ReasoningKind:
		x.put("\n*Reasoning*\n")
		x.quoteBlock(p.Text)
	case message.CallKind:
		x.put("\n*Calls ", heading(p.Tool), "*", idNote(p.CallID), "\n")
		x.fence("json", p.Arguments())
	case message.ResultKind:
		if p.CallID == "" {
			x.quoteBlock(p.OutputText())
			return
		}
		x.put("\n*Result*", idNote(p.CallID), "\n")
		x.fence("", p.OutputText())
	case message.DataKind:
		if p.Name != "step-start" {
			x.quoteBlock(p.String())
		}
	default:
		x.quoteBlock(p.String())
	}
}

func idNote(id string) string {
	if id == "" {
		return ""
	}
	return " (" + heading(id) + ")"
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
