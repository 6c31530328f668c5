package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// Reader prints messages for people. Results of calls are printed below the calls.
type Reader struct {
	*app.App
	// Short shows only the start of long instructions and reminders, which an agent's program wrote, and leaves out blank
	// messages.
	Short  bool
	pairer *transcript.Pairer
	// open are the messages that may still get items.
	open map[*transcript.Message]*loggedMessage
	last *transcript.Message
}

// loggedMessage is a message with the names that point to it.
type loggedMessage struct {
	*ReadMessage
	names  []graph.Label
	headed bool // its head was printed
	shown  bool // something of it was printed
}

// NewReader returns a reader that prints to the output of the program.
func NewReader(a *app.App) *Reader {
	return &Reader{App: a, pairer: transcript.NewPairer(transcript.Options{}), open: make(map[*transcript.Message]*loggedMessage)}
}

// PrintMessage prints a message.
func PrintMessage(a *app.App, m *ReadMessage, names []graph.Label) error {
	if a.JSON {
		return a.Emit(m)
	}
	r := NewReader(a)
	r.Add(m, names)
	r.End()
	return nil
}

// Learn tells the reader a message that is not printed, so that results can name its calls.
func (r *Reader) Learn(m *transcript.Message) {
	r.pairer.Add(m)
	r.pairer.Flush()
}

// Add adds a message, and prints items that are complete.
func (r *Reader) Add(m *ReadMessage, names []graph.Label) {
	logged := &loggedMessage{ReadMessage: m, names: names}
	r.open[m.Said] = logged
	r.pairer.Add(m.Said)
	r.pairer.Mark(logged)
	r.print(r.pairer.Ready())
}

// Flush prints the added messages without waiting for results of their calls.
func (r *Reader) Flush() { r.print(r.pairer.Flush()) }

// End prints the rest.
func (r *Reader) End() {
	r.Flush()
	if r.last != nil {
		r.Printf("\n")
	}
	r.last = nil
}

func (r *Reader) print(items []*transcript.Item) {
	for _, i := range items {
		logged, ended := i.Value.(*loggedMessage)
		if !ended {
			m := r.open[i.From]
			m.shown = true
			r.head(m)
			r.item(i, m)
			continue
		}
		// Results are shown with their calls, so a message with only results has a head only if a name points to it. So has
		// a blank message, if the reader is short.
		note := ""
		switch {
		case !logged.shown && (len(logged.names) > 0 || !r.Short):
			note = "(empty)"
		case logged.shown && len(logged.names) > 0 && !logged.headed:
			note = "(shown with its call)"
		}
		if note != "" {
			r.head(logged)
			r.Printf("    %s\n", r.dim(note))
		}
		delete(r.open, logged.Said)
	}
}

// head prints the speaker of a message and the names that point to it, once.
func (r *Reader) head(m *loggedMessage) {
	if m.headed {
		return
	}
	if m.headed = true; r.last != nil {
		r.Printf("\n")
	}
	r.last = m.Said
	speaker, _ := transcript.Line(m.Said)
	who := r.Out.Paint(screen.OfRole(m.Role)+";1", screen.Line(speaker))
	if m.Origin != nil && m.Origin.Model != "" {
		who += r.dim(" (" + screen.Line(m.Origin.Model) + ")")
	}
	r.Printf("%s  %s  %s", r.dim(fmt.Sprint(m.Position)), who, r.dim(screen.Line(ShortID(m.ID))+"  "+screen.Time(m.CreatedAt)))
	if len(m.names) > 0 {
		r.Printf("  %s", LabelText(r.App, m.names))
	}
	r.Printf("\n")
}

func (r *Reader) dim(text string) string { return r.Out.Paint(screen.Dim, text) }

// item prints an item of a message.
func (r *Reader) item(i *transcript.Item, m *loggedMessage) {
	switch i.Kind {
	case transcript.Call:
		r.call(i.Call, m)
	case transcript.Result:
		r.result(i.Result, i.Result.Of())
	case transcript.File, transcript.Note:
		r.Printf("    %s\n", r.dim(screen.Line(i.Line())))
	case transcript.Thinking:
		r.text("    ", "(thinking) "+i.Text, screen.Dim)
	case transcript.Reminder:
		r.beginning("("+cmp.Or(i.Tag, "reminder")+") "+i.Text, screen.Dim, m)
	default:
		if m.Role == "system" || m.Role == "developer" {
			r.beginning(i.Text, screen.Plain, m)
		} else {
			r.text("    ", i.Text, screen.Plain)
		}
	}
	r.left("    ", i.Left, m.ReadMessage)
}

// text prints a text for people: wrapped to the terminal, indented and styled.
func (r *Reader) text(indent, text string, style screen.Style) {
	r.lines(slices.Collect(strings.Lines(r.Indented(indent, text))), style)
}

func (r *Reader) lines(lines []string, style screen.Style) {
	for _, line := range lines {
		end := ""
		if line, end = strings.TrimSuffix(line, "\n"), "\n"; style != screen.Plain && line != "" {
			line = r.Out.Paint(style, line)
		}
		r.Printf("%s%s", line, end)
	}
}

// beginning prints a text, or only its first lines if the reader is short.
func (r *Reader) beginning(text string, style screen.Style, m *loggedMessage) {
	const most, first = 12, 8
	lines := slices.Collect(strings.Lines(r.Indented("    ", text)))
	if !r.Short || len(lines) <= most {
		r.lines(lines, style)
		return
	}
	r.lines(lines[:first], style)
	r.Printf("    %s\n", r.dim(fmt.Sprintf("… %d more lines: lineage show %s", len(lines)-first, screen.Line(ShortID(m.ID)))))
}

// left prints how much of a text is not shown.
func (r *Reader) left(indent string, n int, m *ReadMessage) {
	if n > 0 {
		r.Printf("%s%s\n", indent, r.dim(fmt.Sprintf("… %s more: lineage cat %s", amount.Bytes(n), m.ContentID)))
	}
}

// call prints a call and its results.
func (r *Reader) call(c *transcript.ToolCall, m *loggedMessage) {
	r.Printf("    → %s", r.Out.Paint(screen.Bold, screen.Line(c.Tool)))
	if c.Title != "" {
		r.Printf(" %s", screen.Line(c.Title))
	}
	r.Printf("\n")
	if c.Text != c.Title {
		r.text("      ", c.Text, screen.Plain)
		r.left("      ", c.Left, m.ReadMessage)
	}
	if c.Diff != "" {
		for line := range strings.Lines(c.Diff) {
			style := map[byte]screen.Style{'-': screen.Red, '+': screen.Green}[line[0]]
			r.text("      ", line, style)
		}
		r.left("      ", c.DiffLeft, m.ReadMessage)
	}
	if c.Rest != nil && string(c.Rest) != c.Title {
		r.text("      ", string(c.Rest), screen.Dim)
	}
	for _, result := range c.Results {
		place := ""
		if result.From != m.Said {
			place = fmt.Sprint(result.From.Position)
		}
		r.result(result, place)
	}
}

// result prints a result: its call or its source, how the call ended, and the output.
func (r *Reader) result(result *transcript.ToolResult, head string) {
	from := r.open[result.From]
	from.shown = true
	mark, style := "← ", screen.Dim
	if result.Failed {
		mark, style = "✗ ", screen.Red
	}
	if result.Exit != nil {
		head += fmt.Sprintf(" exit %d", *result.Exit)
	}
	head = strings.TrimSpace(screen.Line(head))
	if text := plain.Text(result.Text); isShort(text) {
		r.Printf("    %s%s", r.Out.Paint(style, mark), text)
		if head != "" {
			r.Printf("%s", r.dim("  "+head))
		}
		r.Printf("\n")
	} else {
		r.Printf("    %s\n", r.Out.Paint(style, strings.TrimSpace(mark+head)))
		r.text("      ", result.Text, screen.Plain)
	}
	for _, f := range result.Files {
		r.Printf("      %s\n", r.dim("["+screen.Line(f.String())+"]"))
	}
	r.left("      ", result.Left, from.ReadMessage)
}

// isShort reports whether a text fits on the line of its head.
func isShort(text string) bool {
	const longest = 60
	return text != "" && screen.Width(text) <= longest && !strings.Contains(text, "\n")
}
