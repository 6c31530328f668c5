package embedded

// madeIDs remembers which ids that were made in this process the store got since it was
// opened, as far as they are among the last that were made: of others of these it is known
// that they are new. They are numbers that count up (structure.Made), and come nearly in
// their order.
type madeIDs struct {
	before uint64 // these were made before the store was opened
	last   uint64 // that the store got
	got    [madeWindow / 64]uint64
}

// madeWindow is how far behind the last an id may be.
const madeWindow = 1 << 12

func newMadeIDs(last uint64) madeIDs { return madeIDs{before: last, last: last} }

// isNew reports that the store certainly does not have the id of a number.
func (m *madeIDs) isNew(number uint64) bool {
	switch {
	case number > m.last:
		return true
	case number <= m.before || number+madeWindow <= m.last:
		return false
	}
	return m.got[number%madeWindow/64]&(1<<(number%64)) == 0
}

// add notes that the store has the id of a number.
func (m *madeIDs) add(number uint64) {
	if number > m.last {
		for n := max(m.last, number-min(number, madeWindow)) + 1; n <= number; n++ {
			m.got[n%madeWindow/64] &^= 1 << (n % 64)
		}
		m.last = number
	}
	if number+madeWindow > m.last {
		m.got[number%madeWindow/64] |= 1 << (number % 64)
	}
}
