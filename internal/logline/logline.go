// Package logline formats log records as single lines for people.
package logline

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// New returns a logger that calls write with a line for each record of at least the level: the
// message, the error under the key "err", and the other attributes in parentheses. Calls do not
// overlap.
func New(level slog.Level, write func(line string)) *slog.Logger {
	var mu sync.Mutex
	return slog.New(&handler{level: level, write: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		write(line)
	}})
}

type handler struct {
	level slog.Level
	write func(line string)
	group string     // of later attributes, each element followed by a dot
	attrs attributes // of earlier calls of WithAttrs
}

// attributes are the parts of a line after its message.
type attributes struct {
	err    string
	others []string
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	f := h.attrs.clone()
	r.Attrs(func(a slog.Attr) bool {
		f.add(h.group, a)
		return true
	})
	line := r.Message
	if f.err != "" {
		line += ": " + f.err
	}
	if len(f.others) > 0 {
		line += " (" + strings.Join(f.others, ", ") + ")"
	}
	h.write(line)
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = h.attrs.clone()
	for _, a := range attrs {
		next.attrs.add(h.group, a)
	}
	return &next
}

func (h *handler) WithGroup(name string) slog.Handler {
	next := *h
	if name != "" {
		next.group += name + "."
	}
	return &next
}

func (f attributes) clone() attributes { return attributes{err: f.err, others: slices.Clone(f.others)} }

func (f *attributes) add(group string, a slog.Attr) {
	value := a.Value.Resolve()
	switch {
	case value.Kind() == slog.KindGroup:
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range value.Group() {
			f.add(group, inner)
		}
	case a.Equal(slog.Attr{}):
	case group == "" && a.Key == "err":
		f.err = value.String()
	default:
		f.others = append(f.others, group+a.Key+"="+value.String())
	}
}
