package importer

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// loader turns conversations into commits.
type loader struct {
	ctx     context.Context
	writer  *write.Writer
	engine  backend.Engine
	options Options
	next    *commitDraft
	applied bool  // a commit was applied
	total   added // by the commits that were applied
	hash    fieldHash
	// outlines are Options.Outlines, or the loader's own.
	outlines *Outlines
	// met maps the hash of a source id to the number of the file in which the conversation was last seen. copies
	// counts equal conversations without an id in the current file.
	met    map[uint64]uint32
	copies map[uint64]uint64
	number uint32        // of the current file
	inFile int           // conversations in the current file so far
	source *archive.File // the current conversation's file, nil for none
	seen
	tick    int
	created int64 // new messages

	open *loading // the current conversation, which may continue in the next part
	// replaying is set while a commit is filled again. Repairs were reported before.
	replaying bool

	// For an input that grows: the known lines, and the nodes of the others if Options.Placed wants them.
	grows  bool
	given  given
	keep   bool
	placed []item
}

// repair reports a repair.
func (l *loader) repair(d *archive.Damage) {
	if !l.replaying {
		l.report.repair(d)
	}
}

// seen is the state of reading apart from the current conversation.
type seen struct {
	report Report
	format string
	bare   bool // Format.Bare
	file   string
	title  string // for an untitled conversation that is alone in its file
	read   int64
	files  *Files // nil if files are not recorded
}

// take records an event that is not a conversation.
func (s *seen) take(e archive.Event) {
	s.read = e.Read
	if e.Damage != nil || e.Ignored != "" || e.Input != nil && e.Input.Beside {
		s.files.leftOut(e.File)
	}
	switch {
	case e.Unchanged != nil:
		s.report.Unchanged++
	case e.Damage != nil:
		s.report.skip(e.Damage)
	case e.Repair != nil:
		s.report.repair(e.Repair)
	case e.Ignored != "":
		if s.report.IgnoredCount++; s.report.IgnoredCount <= archive.MaxReported {
			s.report.Ignored = append(s.report.Ignored, e.Ignored)
		}
	case e.Input != nil:
		s.format, s.bare, s.file, s.title = e.Input.Format, e.Input.Bare, e.Input.File, e.Input.Title
		if !slices.Contains(s.report.Formats, e.Input.Format) {
			s.report.Formats = append(s.report.Formats, e.Input.Format)
		}
	}
}

// commitDraft is the commit being filled. It keeps its items so that it can be filled again when another process has
// changed the store first.
type commitDraft struct {
	*write.Batch
	loader   *loader
	added    added
	contents place.Contents
	placers  map[*threadState]*place.Placer
	fresh    bool  // see write.Try
	refused  error // why the last attempt was refused
	// state is the snapshot in use, nil before the first read. known counts the messages looked up in it.
	state    backend.Snapshot
	known    int
	items    []item
	retained int64 // bytes that items keep in memory, without the part of a conversation that is being loaded
	partial  bool  // items have nodes of that part
	refilled bool  // another process changed the store first
	// held is the conversation that continues in the next commit.
	held *loading
	// threads are the threads that the commit changes. firsts are the ids of first messages in it.
	threads map[structure.ThreadID]bool
	firsts  map[string]bool
}

// item is an added node, or the end of a conversation if node is nil.
type item struct {
	*loading
	node *prepared
}

// added counts what a commit adds to the store, and the messages that it shares.
type added struct {
	conversations, messages, shared int64
	bytes                           int64 // of new content
}

func (a *added) add(more added) {
	a.conversations += more.conversations
	a.messages += more.messages
	a.shared += more.shared
	a.bytes += more.bytes
}

// prepared is a node ready to be stored.
type prepared struct {
	*archive.Node
	place.Message
	index  int32 // in loading.nodes
	parent int32
	copy   *place.Copy // the span of another thread that the node is a copy of
}

// given are the lines whose nodes are in the store: see Growing.Known.
type given struct {
	lines int64
	spans func(line int64) []structure.SpanRef
	ends  map[structure.RunID]uint64 // by run, the last place of the known spans
}
