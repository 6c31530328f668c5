package index

import (
	"bytes"
	"iter"
)

// Difference is a key with entries that differ between two sequences.
type Difference struct {
	Key       []byte
	Was, Is   []byte // nil where there is no entry
	Gone, New bool   // only the first sequence has the key, only the second
}

// Differences yields the keys whose entries differ between two sequences that are in order. It ends with the first error
// of one of them.
func Differences(was, now iter.Seq2[Entry, error]) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		nextWas, stopWas := iter.Pull2(was)
		defer stopWas()
		nextIs, stopIs := iter.Pull2(now)
		defer stopIs()
		a, aErr, aOK := nextWas()
		b, bErr, bOK := nextIs()
		for aOK || bOK {
			if aErr == nil {
				aErr = bErr
			}
			if aErr != nil {
				yield(Difference{}, aErr)
				return
			}
			order := bytes.Compare(a.Key, b.Key)
			if !bOK {
				order = -1
			} else if !aOK {
				order = 1
			}
			d := Difference{}
			switch {
			case order < 0:
				d = Difference{Key: a.Key, Was: a.Value, Gone: true}
			case order > 0:
				d = Difference{Key: b.Key, Is: b.Value, New: true}
			case !bytes.Equal(a.Value, b.Value):
				d = Difference{Key: a.Key, Was: a.Value, Is: b.Value}
			}
			if d.Key != nil && !yield(d, nil) {
				return
			}
			if order <= 0 {
				a, aErr, aOK = nextWas()
			}
			if order >= 0 {
				b, bErr, bOK = nextIs()
			}
		}
	}
}
