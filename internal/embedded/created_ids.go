package embedded

// createdIDs knows of ids that this process created since the store was opened whether the store
// has them, so that a new id costs no lookup. Such ids are numbers that count up (structure.Made),
// and reach the store nearly in order: it remembers which of the last ones did.
type createdIDs struct {
	before uint64 // created before the store was opened
	last   uint64 // the greatest that the store has
	got    [createdWindow / 64]uint64
}

// createdWindow is how many ids before the last are remembered.
const createdWindow = 1 << 12

func newCreatedIDs(last uint64) createdIDs { return createdIDs{before: last, last: last} }

// isNew reports that the store certainly does not have the id of a number.
func (m *createdIDs) isNew(number uint64) bool {
	switch {
	case number > m.last:
		return true
	case number <= m.before || number+createdWindow <= m.last:
		return false
	}
	return m.got[number%createdWindow/64]&(1<<(number%64)) == 0
}

// add notes that the store has the id of a number.
func (m *createdIDs) add(number uint64) {
	if number > m.last {
		for n := max(m.last, number-min(number, createdWindow)) + 1; n <= number; n++ {
			m.got[n%createdWindow/64] &^= 1 << (n % 64)
		}
		m.last = number
	}
	if number+createdWindow > m.last {
		m.got[number%createdWindow/64] |= 1 << (number % 64)
	}
}
