package page

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// errRequest is matched by the errors of requests that cannot be answered.
var errRequest = errors.New("request refused")

// refusal is an errRequest for people: sentences that state what is wrong and what would be right.
type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == errRequest }

func refuse(sentences string, about ...any) error { return refusal(fmt.Sprintf(sentences, about...)) }

func notPosition(text string) error {
	return refuse("%.40q is no position: messages are counted from 1.", text)
}

func notDate(text string) error { return refuse("%.40q is no date: 2026-01-31 is one.", text) }

// sentence formats an error as a sentence.
func sentence(err error) string {
	var refused refusal
	if errors.As(err, &refused) {
		return string(refused)
	}
	text := strings.TrimRight(err.Error(), ".")
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:] + "."
}

// errMoved is returned for an action on something that has changed since it was displayed.
var errMoved = errors.New("changed after the page was loaded")
