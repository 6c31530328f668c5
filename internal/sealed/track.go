package sealed

import (
	"cmp"
	"slices"
)

const (
	// minSeries is the least length of a series.
	minSeries = 3
	// maxSkips limits the uses between two of a series.
	maxSkips = 8
	// maxSequence limits the subjects of a sequence.
	maxSequence = 4 << 10
	// A sequence ends before it has more pieces than perUse for each use of each of its subjects, and fewPieces. This limits
	// how many pieces a lookup reads in vain.
	perUse    = 4
	fewPieces = 64
	// About what entries take, in quarters of a byte.
	useCost, pieceCost, pointerCost = 20, 28, 16
)

// use is an entry of uses. Entries with larger numbers are kept as they are.
type use struct {
	subject  uint32 // its place in subjects
	commit   uint32 // more than the base
	place    uint32
	position uint32
	run      uint32 // its place in the dictionary
	number   uint16
	series   bool
}

// subjectPlaces is where a subject is in a track.
type subjectPlaces struct {
	at    [maxSubjectPointers]uint32
	count uint8
}

// trackStep is a subject of a track. Its place and position are those of the first subject plus these.
type trackStep struct {
	subject         uint32
	number          uint16
	begins          bool   // nothing follows from the step before
	place, position uint32 // they may wrap around
	uses            uint32 // in series
	starts          uint32 // series that start here
	sequence        uint32 // plus 1; 0 for none
}

// series is uses that follow a track.
type series struct {
	first  uint32 // use, in order
	at     uint32 // in the track
	length uint32
}

// track is subjects in an order in which uses often follow each other. The longest strings of uses decide it.
type track struct {
	uses     []use
	base     uint64   // of the commits of uses
	number   uint32   // of the first sequence
	order    []uint32 // the uses by commit and place
	pointers []subjectPlaces
	followed []uint32 // of each of these uses, its step plus 1, or 0
	steps    []trackStep
	series   []series
}

func (t *track) at(i uint32) *use { return &t.uses[t.order[i]] }

// build finds the series.
func (t *track) build() {
	t.order = make([]uint32, len(t.uses))
	for i := range t.order {
		t.order[i] = uint32(i)
	}
	slices.SortFunc(t.order, func(a, b uint32) int {
		x, y := &t.uses[a], &t.uses[b]
		return cmp.Or(cmp.Compare(x.commit, y.commit), cmp.Compare(x.place, y.place), cmp.Compare(a, b))
	})
	t.followed = make([]uint32, len(t.order))
	type text struct{ first, end uint32 }
	var texts []text // uses of one run in a commit
	for i, n := uint32(0), uint32(len(t.order)); i < n; {
		end := i + 1
		for end < n && t.at(end).commit == t.at(i).commit && t.at(end).run == t.at(i).run {
			end++
		}
		if end-i >= minSeries {
			texts = append(texts, text{i, end})
		}
		i = end
	}
	slices.SortStableFunc(texts, func(a, b text) int { return cmp.Compare(b.end-b.first, a.end-a.first) })
	for _, x := range texts {
		t.follow(x.first, x.end)
	}
}

// follow adds the series of consecutive uses of a run, and steps where there are none yet.
func (t *track) follow(i, end uint32) {
	last := end // the use of the last step, if that step and the last series are of this text
	for i < end {
		u := t.at(i)
		places := &t.pointers[u.subject]
		var at, length, next uint32
		for _, p := range places.at[:places.count] {
			if n, after := t.match(p, i, end, false); n > length {
				at, length, next = p, n, after
			}
		}
		switch {
		case length >= minSeries:
			t.match(at, i, end, true)
			t.series = append(t.series, series{i, at, length})
			i, last = next, end
		case places.count < maxSubjectPointers:
			s := trackStep{subject: u.subject, number: u.number, begins: last == end}
			if n := len(t.steps); last != end {
				s.place = t.steps[n-1].place + u.place - t.at(last).place
				s.position = t.steps[n-1].position + u.position - t.at(last).position
				t.series[len(t.series)-1].length++
			} else {
				t.series = append(t.series, series{i, uint32(n), 1})
			}
			places.at[places.count] = uint32(len(t.steps))
			places.count++
			t.steps = append(t.steps, s)
			t.followed[i] = uint32(len(t.steps))
			i, last = i+1, i
		default:
			if i++; last != end && i-last > maxSkips {
				last = end
			}
		}
	}
}

// match returns how many uses follow the track from a step on, and the use after the last of them. Between them may be uses of
// subjects that get no more pointers. It notes the step of each use, if mark is true.
func (t *track) match(from, i, end uint32, mark bool) (length, next uint32) {
	firstStep, firstUse := &t.steps[from], t.at(i)
	step := from
	for next = i; i < end && step < uint32(len(t.steps)) && i-next <= maxSkips; i++ {
		s, u := &t.steps[step], t.at(i)
		if length > 0 && s.begins {
			break
		}
		follows := s.subject == u.subject && s.number == u.number &&
			s.place-firstStep.place == u.place-firstUse.place && s.position-firstStep.position == u.position-firstUse.position
		if !follows {
			if length == 0 || t.pointers[u.subject].count < maxSubjectPointers {
				break
			}
			continue
		}
		step, length, next = step+1, length+1, i+1
		if mark {
			t.followed[i] = step
		}
	}
	return length, next
}

// dropShort gives up short series.
func (t *track) dropShort() {
	t.series = slices.DeleteFunc(t.series, func(s series) bool {
		if s.length >= minSeries {
			return false
		}
		for i := s.first; s.length > 0; i++ {
			if t.followed[i] > 0 {
				t.followed[i] = 0
				s.length--
			}
		}
		return true
	})
}

// cut cuts the track into sequences, and the series into the pieces of these. It returns the first step of each sequence.
// Series that save nothing are given up.
func (t *track) cut(mixed int) (pieces []piece, sequences []uint32) {
	t.dropShort()
	ends := make([]uint32, len(t.steps)+1)
	for _, s := range t.series {
		t.steps[s.at].starts++
		ends[s.at+s.length]++
	}
	uses := uint32(0)
	for i := range t.steps {
		uses += t.steps[i].starts - ends[i]
		t.steps[i].uses = uses
	}
	left, saved := len(t.uses), 0
	for first := uint32(0); first < uint32(len(t.steps)); {
		end := t.sequence(first)
		if uses, saves := t.saved(first, end); saves > 0 {
			left, saved = left-uses, saved+saves
			sequences = append(sequences, first)
			for i := first; i < end; i++ {
				t.steps[i].sequence = uint32(len(sequences))
			}
		}
		first = end
	}
	if saved <= left*mixed {
		*t = track{pointers: make([]subjectPlaces, len(t.pointers))}
		return nil, nil
	}
	for _, s := range t.series {
		for n := uint32(0); n < s.length; {
			at := s.at + n
			sequence := t.steps[at].sequence
			end := n + 1
			for end < s.length && t.steps[s.at+end].sequence == sequence {
				end++
			}
			if sequence > 0 {
				start := sequences[sequence-1]
				u, from, to, zero := t.at(s.first), &t.steps[s.at], &t.steps[at], &t.steps[start]
				pieces = append(pieces, piece{
					sequence: t.number + sequence - 1, first: uint16(at - start), length: uint16(end - n), commit: t.base + uint64(u.commit), run: u.run,
					place:    uint64(u.place+to.place-from.place) + useBias - uint64(to.place-zero.place),
					position: uint64(u.position+to.position-from.position) + useBias - uint64(to.position-zero.position),
				})
			}
			n = end
		}
	}
	for i, step := range t.followed {
		t.at(uint32(i)).series = step > 0 && t.steps[step-1].sequence > 0
	}
	return pieces, sequences
}

// sequence returns the end of the sequence that begins with a step.
func (t *track) sequence(first uint32) (end uint32) {
	start := &t.steps[first]
	pieces, least := start.uses, start.uses
	for end = first + 1; end < uint32(len(t.steps)) && end-first < maxSequence; end++ {
		s, before := &t.steps[end], &t.steps[end-1]
		pieces += s.starts
		least = min(least, s.uses)
		if s.begins || s.uses == 0 || (s.uses == 1) != (before.uses == 1) || pieces > perUse*least+fewPieces ||
			s.place-start.place >= maxStep || s.position-start.position >= maxStep {
			break
		}
	}
	return end
}

// saved returns the number of uses in a sequence, and the space that the sequence saves, in the unit of useCost.
func (t *track) saved(first, end uint32) (uses, saved int) {
	pieces := t.steps[first].uses
	for i := first; i < end; i++ {
		uses += int(t.steps[i].uses)
		if i > first {
			pieces += t.steps[i].starts
		}
	}
	return uses, uses*useCost - int(pieces)*pieceCost - int(end-first)*pointerCost
}

// pointersOf returns the pointers of a subject.
func (t *track) pointersOf(subject uint32, sequences []uint32) (all []pointer) {
	places := &t.pointers[subject]
	for _, at := range places.at[:places.count] {
		s := &t.steps[at]
		if s.sequence == 0 {
			continue
		}
		start := sequences[s.sequence-1]
		all = append(all, pointer{
			sequence: uint64(t.number + s.sequence - 1), offset: uint64(at - start), number: uint64(s.number),
			place: uint64(s.place - t.steps[start].place), position: uint64(s.position - t.steps[start].position),
		})
	}
	return all
}
