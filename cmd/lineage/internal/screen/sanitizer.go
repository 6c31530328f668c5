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

// Sanitizer is a writer that removes characters that control a terminal. Newlines and tabs stay, as do the styles of
// Paint and the line of a Progress. It is safe for concurrent use.
type Sanitizer struct {
	replace func(rune) string

	mu   sync.Mutex
	to   io.Writer
	rest []byte // start of a character or sequence that the next Write completes
}

// NewSanitizer returns a Sanitizer that shows symbols for control characters.
func NewSanitizer(to io.Writer) *Sanitizer { return &Sanitizer{to: to, replace: plain.Picture} }

// NewJSONSanitizer returns a Sanitizer for JSON. The values of its strings do not change.
func NewJSONSanitizer(to io.Writer) *Sanitizer { return &Sanitizer{to: to, replace: plain.Escape} }

// Write implements io.Writer.
func (s *Sanitizer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := p
	if len(s.rest) > 0 {
		text = append(s.rest, p...)
	}
	clean, n := sanitize(text, s.replace, false)
	s.rest = bytes.Clone(text[n:])
	if _, err := s.to.Write(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the start of a character that was not completed.
func (s *Sanitizer) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clean, _ := sanitize(s.rest, s.replace, true)
	s.rest = nil
	_, err := s.to.Write(clean)
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

// mark and markEnd enclose a control sequence of this program on its way to a Sanitizer. The mark is random, so that
// stored text cannot contain it.
var mark = markEnd + rand.Text()

const markEnd = "\xff"

func control(sequence string) string { return mark + sequence + markEnd }

// sanitize returns the clean form of the first n bytes of text. If the text is not final, it leaves an incomplete
// character or control sequence at its end.
func sanitize(text []byte, replace func(rune) string, final bool) (clean []byte, n int) {
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
