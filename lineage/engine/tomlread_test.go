package engine_test

import (
	"fmt"
	"strconv"
	"strings"
)

// readTOML reads the part of TOML that renderers use and refuses everything else, including
// duplicate keys. Strings are returned as string, other scalars as tomlLiteral.
func readTOML(text string) (map[string]any, error) {
	r := &tomlReader{rest: text}
	table := r.document()
	return table, r.err
}

type tomlLiteral string

// tomlReader reads nothing after an error.
type tomlReader struct {
	rest string
	err  error
}

func (r *tomlReader) fail(why string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s before %.40q", why, r.rest)
	}
	r.rest = ""
}

func (r *tomlReader) document() map[string]any {
	root := map[string]any{}
	at := root
	headers := map[string]bool{}
	for r.rest != "" {
		switch {
		case r.take("\n"):
			continue
		case r.take("[["):
			at = r.place(root, r.path(), true)
			r.expect("]]")
		case r.take("["):
			at = r.place(root, r.path(), false)
			r.expect("]")
			id := fmt.Sprintf("%p", at)
			if headers[id] {
				r.fail("table defined twice")
			}
			headers[id] = true
		default:
			r.pair(at)
		}
		if r.rest != "" {
			r.expect("\n")
		}
	}
	return root
}

// place finds or creates the table at path; an element of a list is always created.
func (r *tomlReader) place(root map[string]any, path []string, element bool) map[string]any {
	at := root
	for i, name := range path {
		isLast := i == len(path)-1
		switch next := at[name].(type) {
		case nil:
			made := map[string]any{}
			at[name] = made
			if isLast && element {
				at[name] = []any{made}
			}
			at = made
		case map[string]any:
			if isLast && element {
				r.fail("list over a table")
			}
			at = next
		case []any:
			if isLast && element {
				next = append(next, map[string]any{})
				at[name] = next
			} else if isLast {
				r.fail("table over a list")
			}
			inner, ok := next[len(next)-1].(map[string]any)
			if !ok {
				r.fail("table in a list of values")
				return at
			}
			at = inner
		default:
			r.fail("table over a value")
			return at
		}
	}
	return at
}

func (r *tomlReader) pair(table map[string]any) {
	key := r.key()
	if _, ok := table[key]; ok {
		r.fail("key defined twice")
	}
	r.expect(" = ")
	table[key] = r.value()
}

func (r *tomlReader) path() []string {
	path := []string{r.key()}
	for r.take(".") {
		path = append(path, r.key())
	}
	return path
}

func (r *tomlReader) key() string {
	if strings.HasPrefix(r.rest, `"`) {
		return r.quoted()
	}
	return r.run(func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
	})
}

func (r *tomlReader) value() any {
	switch {
	case r.take("\"\"\"\n"):
		return r.until(`"""`, true)
	case strings.HasPrefix(r.rest, `"`):
		return r.quoted()
	case r.take("["):
		list := []any{}
		for !r.take("]") && r.err == nil {
			if len(list) > 0 {
				r.expect(", ")
			}
			list = append(list, r.value())
		}
		return list
	case r.take("{"):
		table := map[string]any{}
		for !r.take("}") && !r.take(" }") && r.err == nil {
			if len(table) > 0 {
				r.expect(",")
			}
			r.expect(" ")
			r.pair(table)
		}
		return table
	}
	return tomlLiteral(r.run(func(c byte) bool { return !strings.ContainsRune(" ,]}\n", rune(c)) }))
}

func (r *tomlReader) quoted() string {
	r.expect(`"`)
	return r.until(`"`, false)
}

// until reads the rest of a basic string, up to the first unescaped quote.
func (r *tomlReader) until(end string, lines bool) string {
	var b strings.Builder
	for !r.take(end) && r.err == nil {
		switch {
		case r.take(`\\`):
			b.WriteByte('\\')
		case r.take(`\"`):
			b.WriteByte('"')
		case r.take(`\n`):
			b.WriteByte('\n')
		case r.take(`\r`):
			b.WriteByte('\r')
		case r.take(`\t`):
			b.WriteByte('\t')
		case r.take(`\u`):
			if len(r.rest) < 4 {
				r.fail("short escape")
				break
			}
			code, err := strconv.ParseUint(r.rest[:4], 16, 32)
			if err != nil {
				r.fail("bad escape")
				break
			}
			b.WriteRune(rune(code))
			r.rest = r.rest[4:]
		case r.rest == "" || r.rest[0] == '\\' || r.rest[0] == 0x7f || r.rest[0] < ' ' && !(lines && r.rest[0] == '\n'):
			r.fail("bad string")
		default:
			b.WriteByte(r.rest[0])
			r.rest = r.rest[1:]
		}
	}
	return b.String()
}

func (r *tomlReader) run(in func(byte) bool) string {
	n := 0
	for n < len(r.rest) && in(r.rest[n]) {
		n++
	}
	if n == 0 {
		r.fail("nothing")
		return ""
	}
	got := r.rest[:n]
	r.rest = r.rest[n:]
	return got
}

func (r *tomlReader) take(prefix string) bool {
	rest, ok := strings.CutPrefix(r.rest, prefix)
	if ok {
		r.rest = rest
	}
	return ok
}

func (r *tomlReader) expect(prefix string) {
	if !r.take(prefix) {
		r.fail("expected " + prefix)
	}
}
