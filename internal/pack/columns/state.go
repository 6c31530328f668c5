package columns

import "github.com/lineage-store/lineage/structure"

// Fields with numbers.
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
	fieldLength // one for each kind of text
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
	symbolFrame = iota // flags of a frame
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
	symbolExtra
	symbolFlag
	symbolPresent
	symbolSmall
	symbolThread
	symbolIDs     // one for each kind of id
	symbolTexts   = symbolIDs + kinds
	symbolContent = symbolTexts + texts // one for each kind of name
	symbolRecent  = symbolContent + nameKinds
	symbols       = symbolRecent + nameKinds
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
	maxRecent   = 200 // size of a text up to which it is remembered
)

// Columns of the records of a chapter: one per field, one per symbol, and these.
const (
	columnSymbols = fields
	columnKind    = columnSymbols + symbols + iota - 1
	columnRole
	columnBytes // incompressible, such as hashes
	columns
)

// coderState is the state that the coding of records depends on. It is empty at the start of a
// chapter, so that a chapter can be read without earlier ones.
type coderState struct {
	texts [texts]mru
	at    progress
}

func newState(nextID uint32, nextBody uint64) *coderState {
	return &coderState{at: progress{seqs: map[uint32]uint64{}, threads: map[uint32]*structure.Thread{}, nextID: nextID, nextBody: nextBody}}
}

// progress is what the coder of a record knows from the records before it.
type progress struct {
	millis      int64 // of the commit
	when        int64 // the last coded time
	run         uint32
	seq         uint64
	ids         [kinds][recentIDs]uint32
	seqs        map[uint32]uint64            // last coded place of each run
	threads     map[uint32]*structure.Thread // as last stated
	nextID      uint32
	incarnation uint64
	nextBody    uint64
	names       [nameKinds]recentContents
}

// mru has the most recently used texts of a kind.
type mru [recentTexts]string

func (m *mru) find(s string) int {
	for i := range m {
		if m[i] == s {
			return i
		}
	}
	return -1
}

// front moves the i-th text to the front.
func (m *mru) front(i int) {
	s := m[i]
	copy(m[1:i+1], m[:i])
	m[0] = s
}

func (m *mru) push(s string) {
	if len(s) <= maxRecent {
		copy(m[1:], m[:len(m)-1])
		m[0] = s
	}
}

// maxRecords limits the number of records of a commit, and of usages of a span.
const maxRecords = 1 << 26

// maxBody is the largest size of a body or payload.
const maxBody = 1 << 30
