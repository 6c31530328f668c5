package usage

import "github.com/lineage-store/lineage/lineage/message"

// answerKey identifies the copies of an answer.
type answerKey [16]byte

// sighting is an occurrence of an answer in a span.
type sighting struct {
	key      answerKey
	keyed    bool // has a key
	run, seq int64
	part     int64
	time     int64 // in milliseconds, -1 if it is unknown
	figures
	same *sighting // the one before it with the same key, in a window
}

// figures are the numbers that a sighting states.
type figures struct {
	model int64
	known uint8
	sums
}

// before orders the sightings of an answer by time, then by position.
func (s *sighting) before(o *sighting) bool {
	switch {
	case s.time != o.time:
		return s.time < o.time
	case s.run != o.run:
		return s.run < o.run
	case s.seq != o.seq:
		return s.seq < o.seq
	}
	return s.part < o.part
}

// counted is an answer as it is counted: at the position and time of its first sighting, with the figures of its last
// one.
type counted struct {
	run, seq, time int64
	figures
}

// choose returns how an answer is counted, given its visible sightings. ok is false if there are none.
func choose(all []sighting) (c counted, ok bool) {
	if len(all) == 0 {
		return c, false
	}
	first, last := &all[0], &all[0]
	for i := range all {
		if all[i].before(first) {
			first = &all[i]
		}
		if last.before(&all[i]) {
			last = &all[i]
		}
	}
	return counted{first.run, first.seq, first.time, last.figures}, true
}

// input returns the input of a request, of all kinds. For a record of several requests it is the mean.
func (f *figures) input() int64 {
	t := message.MakeTokens(f.tokens, f.known)
	input, _ := t.Sums()
	return input / max(f.covers, 1)
}
