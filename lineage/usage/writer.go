package usage

import (
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/structure"
)

// writer applies a window in a transaction.
type writer struct {
	*derivedfile.Writer
	forms *form.Reader

	pending  []sighting              // sightings to store
	ofRun    map[int64][]*sighting   // the window's sightings of a run, in order
	fresh    map[answerKey]*sighting // the last ones with a key that no earlier window has
	added    []*sighting             // those at positions that are visible already
	reaches  map[int64]int64         // the last visible step of a run
	models   map[modelName]int64
	sessions map[structure.ThreadID]string
	counters map[int64][]counter // of a run, in order: those that the window adds
	totals   map[totalKey]*sums  // changes of the totals
	starts   []int64
	firstRow int64 // the number of the first row of sightings that the window adds
}

type modelName struct{ name, provider, tier string }

// counter is the counter of a session at a step of a run.
type counter struct {
	seq   int64
	total *message.Tokens
}
