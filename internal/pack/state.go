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
	symbolForm
	symbolRef
	symbolSpan
	symbolUsage
	symbolUsageCommon
	symbolUsageOther
	symbolUsageRare
	symbolContent
	symbolExtra
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

// Columns of the records of a chapter: one for each field, one for each symbol, and these.
const (
	columnSymbols = fields
	columnKind    = columnSymbols + symbols + iota - 1
	columnRole
	columnBytes // that nothing foretells, such as hashes
	columns
)

// state is what the coding of a chapter's records depends on. It is empty where the
// chapter begins, so that a chapter is read without those before it.
type state struct {
	texts [texts]mru
	at    progress
}

func newState(nextID uint32, nextBody uint64) *state {
	return &state{at: progress{seqs: map[uint32]uint64{}, threads: map[uint32]*structure.Thread{}, nextID: nextID, nextBody: nextBody}}
}

// progress is where the coding stands.
type progress struct {
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
