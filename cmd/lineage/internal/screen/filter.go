package screen

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/plain"
)

// Filter is a writer that removes characters that control a terminal. Newlines and tabs stay, as do the styles of
// Paint and the line of a Progress. It is safe for concurrent use.
type Filter struct {
	replace func(rune) string

	mu   sync.Mutex
	to   io.Writer
	rest []byte // start of a character or sequence that the next Write completes
}

// NewFilter returns a filter that shows symbols for control characters.
func NewFilter(to io.Writer) *Filter { return &Filter{to: to, replace: plain.Picture} }

// NewJSONFilter returns a filter for JSON. The values of its strings do not change.
func NewJSONFilter(to io.Writer) *Filter { return &Filter{to: to, replace: plain.Escape} }

// Write implements io.Writer.
func (f *Filter) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := p
	if len(f.rest) > 0 {
		text = append(f.rest, p...)
	}
	clean, n := filter(text, f.replace, false)
	f.rest = bytes.Clone(text[n:])
	if _, err := f.to.Write(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the start of a character that was not completed.
func (f *Filter) Flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	clean, _ := filter(f.rest, f.replace, true)
	f.rest = nil
	_, err := f.to.Write(clean)
	return err
}

// Unpaint returns a painted text without its styles.
func Unpaint(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, mark)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(after, markEnd)
	}
}

// mark and markEnd enclose a control sequence of this program on its way to a Filter. The mark is random, so that
// stored text cannot contain it.
var mark = markEnd + rand.Text()

const markEnd = "\xff"

func control(sequence string) string { return mark + sequence + markEnd }

// filter returns the filtered form of the first n bytes of text. If the text is not final, it leaves an incomplete
// character or control sequence at its end.
func filter(text []byte, replace func(rune) string, final bool) (clean []byte, n int) {
	clean = make([]byte, 0, len(text)+64)
	for n < len(text) {
		b := text[n]
		if b >= ' ' && b < 0x7f || b == '\n' || b == '\t' {
			clean = append(clean, b)
			n++
			continue
		}
		if !final && (!utf8.FullRune(text[n:]) || startsMark(text[n:])) {
			break
		}
		if sequence, ok := marked(text[n:]); ok {
			clean = append(clean, sequence...)
			n += len(mark) + len(sequence) + len(markEnd)
			continue
		}
		r, size := utf8.DecodeRune(text[n:])
		if plain.Hidden(r) || r == utf8.RuneError && size == 1 {
			clean = append(clean, replace(r)...)
		} else {
			clean = append(clean, text[n:n+size]...)
		}
		n += size
	}
	return clean, n
}

// marked returns the control sequence with which a text starts. ok is false if there is none.
func marked(text []byte) (sequence []byte, ok bool) {
	if !bytes.HasPrefix(text, []byte(mark)) {
		return nil, false
	}
	sequence, _, ok = bytes.Cut(text[len(mark):], []byte(markEnd))
	return sequence, ok
}

// startsMark reports whether text is the start of a marked control sequence.
func startsMark(text []byte) bool {
	if len(text) < len(mark) {
		return strings.HasPrefix(mark, string(text))
	}
	_, whole := marked(text)
	return !whole && bytes.HasPrefix(text, []byte(mark))
}
