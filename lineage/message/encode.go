package message

import (
	"errors"
	"fmt"
	"slices"
)

// ErrUnknownDialect is returned for a dialect that is not in Dialects.
var ErrUnknownDialect = errors.New("unknown dialect of messages")

// Encode writes a history in a dialect, in a form that the API accepts, and reports losses. If no call of the last
// turn has a result, the calls are kept, because the caller is about to answer them.
func Encode(to Dialect, history []Message) (*Encoded, error) {
	if !slices.Contains(Dialects(), to) {
		return nil, fmt.Errorf("%w %q", ErrUnknownDialect, to)
	}
	e := &encoder{to: to, messages: history}
	if to == Text {
		for i := range history {
			if len(history[i].Parts) > 0 {
				e.items = append(e.items, quote(history[i].String()))
			}
		}
		return e.encoded(), nil
	}
	e.collect()
	e.pair()
	e.express()
	e.identify()
	if to == UI {
		e.ui()
		return e.encoded(), nil
	}
	turns := e.turns()
	e.closeCalls(turns)
	switch to {
	case OpenAI:
		e.chat(turns)
	case Responses:
		e.responses(turns)
	case Anthropic:
		e.anthropic(turns)
	}
	return e.encoded(), nil
}
