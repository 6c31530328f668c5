// Package difference finds the messages that only one of two histories has.
package difference

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/lineage-store/lineage/lineage"
)

// Difference describes how two histories differ.
type Difference struct {
	// Common is the number of messages at the start that both share.
	Common uint64
	// A and B state, for each message after the common ones, whether only that history has it.
	A, B []bool
	// Same is the number of messages after the common ones that say the same in both.
	Same uint64
	// Cut is set if a history has more messages than were compared.
	Cut bool
}

// OnlyA returns the number of messages that only A has.
func (d *Difference) OnlyA() uint64 { return count(d.A) }

// OnlyB returns the number of messages that only B has.
func (d *Difference) OnlyB() uint64 { return count(d.B) }

func count(only []bool) (n uint64) {
	for _, m := range only {
		if m {
			n++
		}
	}
	return n
}

// Of compares two histories. It reads only what they do not share and, if most is not 0, at most that many messages
// of each.
func Of(ctx context.Context, store *lineage.Store, a, b lineage.SpanRef, most int) (*Difference, error) {
	common, err := store.CommonPrefix(ctx, a, b)
	if err != nil {
		return nil, err
	}
	d := &Difference{Common: common}
	saidA, err := d.said(ctx, store, a, most)
	if err != nil {
		return nil, err
	}
	saidB, err := d.said(ctx, store, b, most)
	if err != nil {
		return nil, err
	}
	d.A, d.B, d.Same = make([]bool, len(saidA)), make([]bool, len(saidB)), uint64(len(saidA))
	for _, part := range lcs.DiffLines(saidA, saidB) {
		for i := part.Start; i < part.End; i++ {
			d.A[i] = true
			d.Same--
		}
		for i := part.ReplStart; i < part.ReplEnd; i++ {
			d.B[i] = true
		}
	}
	return d, nil
}

// said returns a checksum for each message after the common ones. Messages that say the same have equal checksums. It
// holds 32 bytes for each message, regardless of the number of pieces.
func (d *Difference) said(ctx context.Context, store *lineage.Store, tip lineage.SpanRef, most int) (sums []string, err error) {
	sum := sha256.New()
	for e, err := range store.History(ctx, tip, lineage.Window{From: d.Common + 1}) {
		if err != nil {
			return nil, err
		}
		if most > 0 && len(sums) == most {
			d.Cut = true
			break
		}
		sum.Reset()
		fmt.Fprintf(sum, "%v %q %q %q %d %q", e.Kind, e.Role, e.Name, e.Document, e.Revision, e.Filename)
		sum.Write(e.Content[:])
		for _, p := range e.Pieces {
			sum.Write(p.Content[:])
		}
		sums = append(sums, string(sum.Sum(nil)))
	}
	return sums, nil
}
