package archive

import (
	"context"
	"errors"
	"iter"
	"slices"
)

// detect returns the format of an input.
func detect(formats []Format, in *Input) (Format, bool) {
	if in.format != "" {
		i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == in.format })
		return formats[i], true
	}
	// The first items may be a header or conversations without messages.
	for head, tries, ok := in.Head(), 0, true; ok && tries < detectTries; head, ok = head.rest() {
		for _, f := range formats {
			if f.Detect != nil && f.Detect(head) {
				return f, true
			}
		}
		tries++
	}
	return Format{}, false
}

// detectTries is the number of items examined to detect the format.
const detectTries = 64

// Conversations yields the conversations that the format reads from an input. Texts in them are valid UTF-8. Nothing follows
// an error that is no *Damage.
func (f Format) Conversations(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		if f.Large {
			in.inMemory = LargeItem
		}
		for c, err := range f.Read(ctx, in) {
			if cause := context.Cause(ctx); err != nil && cause != nil {
				yield(nil, cause) // the error is a consequence
				return
			}
			if err == nil {
				c.Identify("")
				c.clean()
			}
			var damage *Damage
			if err == nil || errors.As(err, &damage) {
				if !yield(c, err) {
					return
				}
				continue
			}
			yield(nil, err)
			return
		}
	}
}
