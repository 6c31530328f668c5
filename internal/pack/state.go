package pack

import "github.com/lineage-store/lineage/structure"

// Fields that hold numbers.
const (
	fieldGap = iota
	fieldTail
	fieldTime
	fieldRecords
	fieldOffset
	fieldSegment
	fieldSize
	fieldTreeSize
	fieldBlockWhen
	fieldUsageWhen
	fieldWhen
	fieldSeq
	fieldUsages
	fieldBack
	fieldBody
	fieldRevision
	fieldIDs
	fieldIncarnation
	fieldCount
	fieldParts
	fieldVersion
	fieldExtras
	fieldLength // and one for each kind of text
	fields      = fieldLength + texts
)

// Kinds of text.
const (
	textType = iota
	textUser
	textModel
	textSource
	textRole
	textName
	textDocument
	textFile
	textUsageSource
	textUsageMetadata
	textThread
	textThreadUser
	textTitle
	textThreadMetadata
	textPrompt
	textOverrideModel
	textOverrides
	textContextMetadata
	textBranch
	textBranchSource
	textCheckpoint
	textReason
	textExtra
	textOther
	texts
)

// Small symbols, of up to 16 values each.
const (
	symbolFrame = iota // what is unusual about a frame
	symbolLag
	symbolWhenBlock
	symbolWhenUsage
	symbolWhen
	symbolOrigin
	symbolOriginHas
	symbolBy
	symbolPiece
	symbolRare
	symbolForm
	symbolRef
	symbolSpan
	symbolUsage
	symbolUsageHas
	symbolUsageMore
	symbolContent
	symbolFlag
	symbolPresent
	symbolSmall
	symbolThread
	symbolIDs   // one for each kind of id
	symbolTexts = symbolIDs + kinds
	symbols     = symbolTexts + texts
)

// Kinds of id.
const (
	idThread = iota
	idContext
	idRun
	idSet
	idOther
	kinds
)

const (
	recentIDs   = 8
	recentTexts = 8
	mostRecent  = 200 // bytes of a text that is remembered
)

// state is what the coding of records has learned. The one at the end of the
// first chapter begins every other.
type state struct {
	numbers [fields]*number // until it learns, that of the state that this goes on from
	own     [fields]bool
	memory  *[fields]number // of its own
	symbols [symbols][16]prob
	records [16][16]prob // kind of a record, given that of the one before
	roles   [16][16]prob // what a message's role is, given the one before
	texts   [texts]mru

	at progress
}

// progress is where the coding stands. It begins anew with each chapter, but for the
// time, which begins as the first chapter ended.
type progress struct {
	kind, role  int
	millis      int64 // the commit's
	when        int64 // the time that was stated last
	run         uint32
	seq         uint64
	ids         [kinds][recentIDs]uint32
	seqs        map[uint32]uint64            // the last place stated of each run
	threads     map[uint32]*structure.Thread // as stated last
	nextID      uint32
	incarnation uint64
	nextBody    uint64
}

// mru remembers the texts of a kind that were used last.
type mru [recentTexts]string

func (m *mru) find(s string) int {
	for i := range m {
		if m[i] == s {
			return i
		}
	}
	return -1
}

// front moves the i-th to the front.
func (m *mru) front(i int) {
	s := m[i]
	copy(m[1:i+1], m[:i])
	m[0] = s
}

func (m *mru) push(s string) {
	if len(s) <= mostRecent {
		copy(m[1:], m[:len(m)-1])
		m[0] = s
	}
}

func newState() *state {
	s := new(state)
	n := new(number)
	n.init()
	for i := range s.numbers {
		s.numbers[i] = n
	}
	start := prob{probStart, probStart}
	for _, table := range []([]([16]prob)){s.symbols[:], s.records[:], s.roles[:]} {
		for i := range table {
			for k := range table[i] {
				table[i][k] = start
			}
		}
	}
	return s
}

// begin returns a state that goes on from this one with another chapter.
func (s *state) begin(nextID uint32, nextBody uint64) *state {
	return s.beginIn(new(state), nextID, nextBody)
}

// beginIn is begin in the memory of a state that is not needed any more.
func (s *state) beginIn(next *state, nextID uint32, nextBody uint64) *state {
	memory := next.memory
	*next = *s
	next.own, next.memory = [fields]bool{}, memory
	next.at = progress{
		seqs: map[uint32]uint64{}, threads: map[uint32]*structure.Thread{}, nextID: nextID, nextBody: nextBody, millis: s.at.millis, when: s.at.when,
	}
	return next
}

// number returns the model of a field, to learn.
func (s *state) number(field int) *number {
	if !s.own[field] {
		if s.memory == nil {
			s.memory = new([fields]number)
		}
		s.memory[field] = *s.numbers[field]
		s.numbers[field], s.own[field] = &s.memory[field], true
	}
	return s.numbers[field]
}
