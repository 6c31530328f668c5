package searchindex

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// indexUpdate has the changes that one window of the feed makes to the index. They are prepared from the store and the tables, and
// then written by one transaction.
type indexUpdate struct {
	index        *Index
	before, next meta // of the index
	stamp        int64
	feed         *derived.Window[Tx]

	blocks  map[content.ID]*structure.Block
	spans   []*structure.Span
	homes   map[structure.ThreadID]structure.Home // of threads that exist
	runs    map[string]int64                      // numbers, by key; 0 for those that are not indexed
	created []newRun
	lasts   map[string]uint64

	threads threadChanges
	tips    tipChanges

	gone     [][]byte                 // texts that are erased, with the marks of their content
	erased   []content.ID             // the content of these texts
	restored map[content.ID]bool      // content that was stored again
	mentions []mention                // of steps and summaries
	sources  map[searched.TextID]text // of texts that may be new
	order    []searched.TextID
	unread   []searched.TextID // new texts, the words of which are still to be found
	parser   query.Terms
	sorts    bool     // the transaction writes the last texts
	repeats  bool     // runs may have been written
	ids      [][]byte // new texts, and their words
	words    []string
	added    map[string]int32 // numbers of terms that were looked up or given
	terms    [][]byte         // new terms, and their numbers
	numbers  []int32
}

// newRun is a new run.
type newRun struct {
	key    string
	parent string // its key, "" if there is none
	after  uint64
	home   structure.Home
}

// mention says that a message or a summary has a text.
type mention struct {
	text searched.TextID
	run  string // its key
	seq  uint64
	head int
	kind structure.UsageKind
	role string
}

// text says where a text is found: a name, or content.
type text struct {
	name    string
	content content.ID
	kind    structure.UsageKind
}

// erasedMark is the reading of a row that marks content as erased, whether or not it is indexed.
const erasedMark form.Reading = 0xfe

func (w *indexUpdate) mention(m mention, from text) {
	w.mentions = append(w.mentions, m)
	if _, known := w.sources[m.text]; !known {
		w.sources[m.text] = from
		w.order = append(w.order, m.text)
	}
}

// threadChanges are changes of threads.
type threadChanges struct {
	seen  []structure.ThreadID // in the order of the commits
	known map[structure.ThreadID]bool

	gone   [][]byte // deleted; the thread may exist again
	kept   [][]byte // those that keep their runs from now on, or no longer
	ids    [][]byte
	number []int64
	user   [][]byte
	keeps  []bool
}

func (t *threadChanges) saw(id structure.ThreadID) {
	if t.known == nil {
		t.known = make(map[structure.ThreadID]bool)
	}
	if !id.IsZero() && !t.known[id] {
		t.known[id] = true
		t.seen = append(t.seen, id)
	}
}

// tip is a step that a context, checkpoint or summary points to.
type tip struct {
	key    string
	thread structure.ThreadID // zero outside threads
	run    string             // its key
	seq    uint64
	owner  []byte // of a summary
}

// tipChanges are changes of tips: those with the keys, and those of the owners, are replaced.
type tipChanges struct {
	keys   map[string]bool
	owners map[string]bool
	are    []tip
}

func (t *tipChanges) init() {
	t.keys, t.owners = make(map[string]bool), make(map[string]bool)
}
