package transcript

import (
	"cmp"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Line returns the speaker of a message and its content in one line. Data is left out if there is other content.
// Calls begin with a right arrow, results with a left arrow or, if they failed, with a cross. A message with only
// results has a tool as its speaker, whatever role its format gives it.
func Line(m *Message) (speaker, line string) {
	var texts, data []string
	results := 0
	for _, i := range Items(m, Options{MaxText: maxLine}) {
		switch i.Kind {
		case Data:
			data = append(data, i.Line())
			continue
		case Result:
			results++
		}
		texts = append(texts, i.Line())
	}
	if len(texts) == 0 {
		texts = data
	}
	speaker = m.Role
	switch {
	case m.Document != "":
		speaker = "document " + m.Document
	case m.Filename != "":
		speaker = "file " + m.Filename
	case results > 0 && results == len(texts) && kinds[m.Role] == Prompt:
		speaker = "tool"
	}
	if m.Name != "" && m.Document == "" && m.Filename == "" {
		speaker += " " + m.Name
	}
	return speaker, oneLine(strings.Join(texts, " "), maxLine)
}

// Line returns an item in one line. It is empty for a mark.
func (i *Item) Line() string {
	switch i.Kind {
	case Thinking:
		return "(thinking) " + oneLine(i.Text, maxLine)
	case Call:
		return strings.TrimRight("→ "+i.Call.Tool+" "+i.Call.Title, " ")
	case Result:
		return i.Result.Line()
	case File:
		return "[" + oneLine(i.File.String(), maxLine) + "]"
	case Reminder:
		return i.label() + oneLine(i.Text, maxLine)
	case Data:
		return oneLine(string(rawjson.Compact([]byte(i.Text))), maxLine)
	case Note:
		return "(" + i.Text + ")"
	case Mark:
		return ""
	}
	return oneLine(i.Text, maxLine)
}

// Of returns the call of a result: the tool and the title of the call, empty if unknown.
func (r *ToolResult) Of() string {
	if r.Call == nil {
		return r.Tool
	}
	return strings.TrimSpace(r.Call.Tool + " " + r.Call.Title)
}

// Line returns a result in one line.
func (r *ToolResult) Line() string {
	line := "← "
	if r.Failed {
		line = "✗ "
	}
	line += oneLine(r.Text, maxLine)
	for _, f := range r.Files {
		line = strings.TrimRight(line, " ") + " [" + oneLine(f.String(), maxLine) + "]"
	}
	return strings.TrimRight(line, " ")
}

// TitleMessages is the number of messages that are searched for a prompt. titleLength is the maximum length of a title that
// is the start of a text, in characters.
const (
	TitleMessages = 16
	titleLength   = 80
)

// Untitled is shown as the title of a conversation for which Title returns none.
const Untitled = "Untitled"

// Title returns the title under which a conversation is shown, in one line. It is the conversation's own title; else
// the start of its first prompt, if that is among the first messages; else its first command; else the start of its
// first text; else its source id. If there is none of these, it is empty. The history is only read for a conversation
// without a title.
func Title(title, sourceID string, history iter.Seq2[*Message, error]) (string, error) {
	if title = strings.Join(strings.Fields(title), " "); title != "" {
		return title, nil
	}
	command, text, n := "", "", 0
	for m, err := range history {
		if err != nil {
			return "", err
		}
		for _, i := range Items(m, Options{MaxText: maxLine}) {
			switch line := shorten(i.Line()); {
			case i.Kind == Prompt:
				return line, nil
			case i.Kind == Command && command == "":
				command = line
			case (i.Kind == Answer || i.Kind == Text || i.Kind == Instruction || i.Kind == Data) && text == "":
				text = line
			}
		}
		if n++; n == TitleMessages {
			break
		}
	}
	return cmp.Or(command, text, strings.Join(strings.Fields(sourceID), " ")), nil
}

// shorten cuts a line to the length of a title.
func shorten(line string) string {
	if utf8.RuneCountInString(line) <= titleLength {
		return line
	}
	return strings.TrimRight(string([]rune(line)[:titleLength-1]), " ") + "…"
}
