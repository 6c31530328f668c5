package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// reader prints messages for people, with the results of calls below the calls.
type reader struct {
	*app
	pairer *transcript.Pairer
	// open are the messages that may have items to come.
	open map[*transcript.Message]*loggedMessage
	last *transcript.Message
}

// loggedMessage is a message with the names that point to it.
type loggedMessage struct {
	*readMessage
	names  []graph.Label
	headed bool // its head is printed
	shown  bool // something of it is printed
}

func (a *app) read() *reader {
	return &reader{app: a, pairer: transcript.NewPairer(transcript.Options{}), open: make(map[*transcript.Message]*loggedMessage)}
}

// printMessage prints a message.
func (a *app) printMessage(m *readMessage, names []graph.Label) error {
	if a.json {
		return a.emit(m)
	}
	r := a.read()
	r.add(m, names)
	r.end()
	return nil
}

// learn lets results that are printed name the calls of a message that is not printed.
func (r *reader) learn(m *transcript.Message) {
	r.pairer.Add(m)
	r.pairer.Flush()
}

// add adds a message, and prints what is complete.
func (r *reader) add(m *readMessage, names []graph.Label) {
	is := &loggedMessage{readMessage: m, names: names}
	r.open[m.said] = is
	r.pairer.Add(m.said)
	r.pairer.Mark(is)
	r.print(r.pairer.Ready())
}

// flush prints the messages that were added, without waiting for results of their calls.
func (r *reader) flush() { r.print(r.pairer.Flush()) }

// end prints the rest.
func (r *reader) end() {
	r.flush()
	if r.last != nil {
		r.printf("\n")
	}
	r.last = nil
}

func (r *reader) print(items []*transcript.Item) {
	for _, i := range items {
		is, ended := i.Value.(*loggedMessage)
		if !ended {
			m := r.open[i.From]
			m.shown = true
			r.head(m)
			r.item(i, m)
			continue
		}
		// The results of a message are shown with their calls: it has a head if a name points to it.
		switch {
		case is.shown && len(is.names) > 0 && !is.headed:
			r.head(is)
			r.printf("    %s\n", r.dim("(shown with its call)"))
		case !is.shown:
			r.head(is)
		}
		delete(r.open, is.said)
	}
}

// head prints the speaker of a message and the names that point to it, once.
func (r *reader) head(m *loggedMessage) {
	if m.headed {
		return
	}
	if m.headed = true; r.last != nil {
		r.printf("\n")
	}
	r.last = m.said
	speaker, _ := transcript.Line(m.said)
	who := r.out.Paint(screen.OfRole(m.Role)+";1", screen.Line(speaker))
	if m.Origin != nil && m.Origin.Model != "" {
		who += r.dim(" (" + screen.Line(m.Origin.Model) + ")")
	}
	r.printf("%s  %s  %s", r.dim(fmt.Sprint(m.Position)), who, r.dim(screen.Line(shortID(m.ID))+"  "+screen.Time(m.CreatedAt)))
	if len(m.names) > 0 {
		r.printf("  %s", r.labelText(m.names))
	}
	r.printf("\n")
}

func (r *reader) dim(text string) string { return r.out.Paint(screen.Dim, text) }

// item prints an item of a message.
func (r *reader) item(i *transcript.Item, m *loggedMessage) {
	switch i.Kind {
	case transcript.Call:
		r.call(i.Call, m)
	case transcript.Result:
		r.result(i.Result, i.Result.Of())
	case transcript.File, transcript.Note:
		r.printf("    %s\n", r.dim(screen.Line(i.Line())))
	case transcript.Thinking:
		r.text("    ", "(thinking) "+i.Text, screen.Dim)
	case transcript.Reminder:
		r.text("    ", "("+cmp.Or(i.Tag, "reminder")+") "+i.Text, screen.Dim)
	default:
		r.text("    ", i.Text, screen.Plain)
	}
	r.left("    ", i.Left, m.readMessage)
}

// text prints a text for a person: wrapped to the terminal, its lines indented and in a style.
func (r *reader) text(indent, text string, style screen.Style) {
	for line := range strings.Lines(r.indented(indent, text)) {
		end := ""
		if line, end = strings.TrimSuffix(line, "\n"), "\n"; style != screen.Plain && line != "" {
			line = r.out.Paint(style, line)
		}
		r.printf("%s%s", line, end)
	}
}

// left says how much of a text is not shown.
func (r *reader) left(indent string, n int, m *readMessage) {
	if n > 0 {
		r.printf("%s%s\n", indent, r.dim(fmt.Sprintf("… %s more: lineage cat %s", screen.Bytes(n), m.ContentID)))
	}
}

// call prints a call and its results.
func (r *reader) call(c *transcript.ToolCall, m *loggedMessage) {
	r.printf("    → %s", r.out.Paint(screen.Bold, screen.Line(c.Tool)))
	if c.Title != "" {
		r.printf(" %s", screen.Line(c.Title))
	}
	r.printf("\n")
	if c.Text != c.Title {
		r.text("      ", c.Text, screen.Plain)
		r.left("      ", c.Left, m.readMessage)
	}
	if c.Diff != "" {
		for line := range strings.Lines(c.Diff) {
			style := map[byte]screen.Style{'-': screen.Red, '+': screen.Green}[line[0]]
			r.text("      ", line, style)
		}
		r.left("      ", c.DiffLeft, m.readMessage)
	}
	if c.Rest != nil && string(c.Rest) != c.Title {
		r.text("      ", string(c.Rest), screen.Dim)
	}
	for _, result := range c.Results {
		where := ""
		if result.From != m.said {
			where = fmt.Sprint(result.From.Position)
		}
		r.result(result, where)
	}
}

// result prints a result: what it is of or where it comes from, how the call ended, and what came out.
func (r *reader) result(of *transcript.ToolResult, head string) {
	from := r.open[of.From]
	from.shown = true
	mark, style := "← ", screen.Dim
	if of.Failed {
		mark, style = "✗ ", screen.Red
	}
	if of.Exit != nil {
		head += fmt.Sprintf(" exit %d", *of.Exit)
	}
	head = strings.TrimSpace(screen.Line(head))
	if text := plain.Text(of.Text); isShort(text) {
		r.printf("    %s%s", r.out.Paint(style, mark), text)
		if head != "" {
			r.printf("%s", r.dim("  "+head))
		}
		r.printf("\n")
	} else {
		r.printf("    %s\n", r.out.Paint(style, strings.TrimSpace(mark+head)))
		r.text("      ", of.Text, screen.Plain)
	}
	for _, f := range of.Files {
		r.printf("      %s\n", r.dim("["+screen.Line(f.String())+"]"))
	}
	r.left("      ", of.Left, from.readMessage)
}

// isShort reports whether a text is shown in the line of its head.
func isShort(text string) bool {
	const longest = 60
	return text != "" && screen.Width(text) <= longest && !strings.Contains(text, "\n")
}
