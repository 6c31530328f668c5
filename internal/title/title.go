// Package title has the rule for the title under which a thread is shown.
package title

import (
	"cmp"
	"iter"
	"strings"
	"unicode/utf8"
)

// Message is the role and the text of a message.
type Message struct{ Role, Text string }

// few is the number of messages that are searched for the first one of a user.
const few = 4

// longest is the length of the start of a message, in characters.
const longest = 80

// Shown returns a title in one line: that of the thread, else the start of the first message of a
// user if it is among the first few with text, else of the first message with text, else the source
// id. It is empty if there is none of these. The history is read only for a thread without a title.
func Shown(title, sourceID string, history iter.Seq2[Message, error]) (string, error) {
	if title = line(title); title != "" {
		return title, nil
	}
	first, n := "", 0
	for m, err := range history {
		if err != nil {
			return "", err
		}
		text := start(m.Text)
		if text != "" && m.Role == "user" {
			return text, nil
		}
		first = cmp.Or(first, text)
		if n++; n == few {
			break
		}
	}
	return cmp.Or(first, line(sourceID)), nil
}

// line returns a text with its white space reduced to single spaces.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

func start(text string) string {
	const enough = 16 * longest
	if len(text) > enough {
		text = strings.ToValidUTF8(text[:enough], "") + "…"
	}
	text = line(text)
	if utf8.RuneCountInString(text) <= longest {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:longest-1]), " ") + "…"
}
