package sqladapter

import (
	"encoding/json"
	"sync"
)

// renderer renders statements for a database, and converts their arguments.
type renderer struct {
	dialect Dialect
	syntax  Syntax
	escaped bool // texts are written as escapeText does
	trace   func(sql string)
	texts   sync.Map // rendering → string
}

type rendering struct {
	statement Statement
	n         int
}

// text returns a rendered statement, cached, and traces it.
func (r *renderer) text(s Statement, n int) (string, error) {
	key := rendering{s, n}
	text, ok := r.texts.Load(key)
	if !ok {
		var err error
		if text, err = r.syntax.Render(s, n); err != nil {
			return "", err
		}
		r.texts.Store(key, text)
	}
	if r.trace != nil {
		r.trace(text.(string))
	}
	return text.(string), nil
}

// arguments converts arguments for the driver: JSON, given as json.RawMessage, is passed as text.
func (r *renderer) arguments(args []any) []any {
	changed := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			if r.escaped {
				arg = escapeText(v)
			}
		case json.RawMessage:
			arg = string(v)
			if r.escaped {
				arg = escapeJSON(string(v))
			}
		}
		if r.syntax.Argument != nil {
			arg = r.syntax.Argument(arg)
		}
		changed[i] = arg
	}
	return changed
}
