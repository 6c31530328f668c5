package export

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// writer writes the parts of a line for people.
type writer interface {
	// item writes an item. first is set for the first item of a message.
	item(ctx context.Context, i *transcript.Item, first bool)
	// passing writes the branch ends and forks after a message.
	passing(ctx context.Context, p *passing) error
}

// passing is a place on a line at which branches end or lines fork.
type passing struct {
	names []string
	off   []*fork
}

// fork is a line that forks from another one. calls pairs its results with calls before the fork.
type fork struct {
	line
	calls *transcript.Pairer
}

// write writes a line with a writer.
func (x *exporter) write(ctx context.Context, t *tree, l *fork, w writer) error {
	var last *transcript.Message
	put := func(items []*transcript.Item) error {
		for _, i := range items {
			if p, ok := i.Value.(*passing); ok {
				if err := w.passing(ctx, p); err != nil {
					return err
				}
				continue
			}
			w.item(ctx, i, i.From != last)
			last = i.From
		}
		return x.failed()
	}
	for at, err := range t.walk(ctx, l.line) {
		if err != nil {
			return err
		}
		for _, e := range at.entries {
			m, err := x.transcribe(ctx, e)
			if err != nil {
				return err
			}
			l.calls.Add(m)
		}
		if len(at.names)+len(at.off) > 0 {
			p := &passing{names: at.names}
			for _, off := range at.off {
				p.off = append(p.off, &fork{off, l.calls.Fork()})
			}
			l.calls.Mark(p)
		}
		if err := put(l.calls.Ready()); err != nil {
			return err
		}
	}
	return put(l.calls.Flush())
}

// forks returns the lines that begin histories.
func (t *tree) forks() []*fork {
	var forks []*fork
	for _, l := range t.lines() {
		forks = append(forks, &fork{l, transcript.NewPairer(transcript.Options{})})
	}
	return forks
}

// shown are the image types that a page shows. Files of these types can contain nothing but an image.
var shown = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"}

// transcribe returns an entry as a message of a transcript. The bytes of an image that a page shows are read too.
func (x *exporter) transcribe(ctx context.Context, e *lineage.Entry) (*transcript.Message, error) {
	m, err := x.store.Transcribe(ctx, e, x.o.MaxBody)
	if err == nil && e.Kind == lineage.Asset && !e.Erased && slices.Contains(shown, e.Type) && e.Size <= x.o.MaxImage {
		m.Body, err = x.store.Original(ctx, e)
	}
	return m, err
}

// messageTitle returns a title with the position, sender, model and time of a message.
func messageTitle(m *transcript.Message) string {
	who := m.Role
	switch {
	case m.Filename != "":
		who = "file " + m.Filename
	case m.Document != "":
		who = fmt.Sprintf("document %s, revision %d", m.Document, m.Revision)
	case m.Name != "":
		who += " " + m.Name
	}
	title := fmt.Sprintf("%d · %s", m.Position, who)
	if m.Model != "" {
		title += " · " + m.Model
	}
	if !m.Created.IsZero() {
		title += " · " + stamp(m.Created)
	}
	return title
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// callTitle returns the name of a tool and the purpose of the call.
func callTitle(c *transcript.ToolCall) (tool, what string) {
	return strings.Join(strings.Fields(c.Tool), " "), c.Title
}

// resultTitle returns a title that names the call of a result, if needed, and how the call ended. within is the
// message with the call under which the result is shown, nil if it is shown alone.
func resultTitle(r *transcript.ToolResult, within *transcript.Message) string {
	title := "Result"
	switch tool := r.Of(); {
	case within == nil && tool != "":
		title += " of " + tool
	case within != nil && r.From != within:
		title += fmt.Sprintf(" · %d", r.From.Position)
	}
	switch {
	case r.Exit != nil:
		title += fmt.Sprintf(" · exit %d", *r.Exit)
	case r.Failed:
		title += " · failed"
	}
	return title
}

// reminderTitle returns the heading of a text that was not written by a person or a model.
func reminderTitle(i *transcript.Item) string {
	switch {
	case i.Kind == transcript.Thinking:
		return "Reasoning"
	case i.Kind == transcript.Instruction:
		return "Instructions"
	case i.Kind == transcript.Command:
		return "Command"
	case i.Tag != "":
		return "Reminder: " + i.Tag
	}
	return "Reminder"
}

// leftOut returns a note about bytes that are not shown, empty for none.
func leftOut(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("[%d more bytes are too large to show]", n)
}
