package embedded

// createdIDs records which ids created by this process since the store was opened are in the store, so that a new id
// needs no lookup. Such ids are ascending numbers (structure.Made) and reach the store nearly in order, so only a
// window below the last one is recorded.
type createdIDs struct {
	before uint64 // last number created before the store was opened
	last   uint64 // the greatest one in the store
	got    [createdWindow / 64]uint64
}

// createdWindow is the number of ids below the last that are remembered.
const createdWindow = 1 << 12

func newCreatedIDs(last uint64) createdIDs { return createdIDs{before: last, last: last} }

// isNew reports that the store does not have the id. false means that this is unknown.
func (m *createdIDs) isNew(number uint64) bool {
	switch {
	case number > m.last:
		return true
	case number <= m.before || number+createdWindow <= m.last:
		return false
	}
	return m.got[number%createdWindow/64]&(1<<(number%64)) == 0
}

// add records that the store has an id.
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
