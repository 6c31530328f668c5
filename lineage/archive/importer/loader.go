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
	next    *filling
	applied bool  // a commit was applied
	total   added // by the commits that were applied
	hash    fieldHash
	// met maps the hash of a source id to the file in which the conversation was last met. copies
	// counts equal conversations without an id in the current file.
	met    map[uint64]uint32
	copies map[uint64]uint64
	number uint32        // of the file
	inFile int           // conversations in the file so far
	of     *archive.File // that the current conversation is from, nil for none
	seen
	tick    int
	created int64 // new messages

	// part is the size of the part of a conversation that is being loaded, partIn the commit that keeps it.
	part   int64
	partIn *filling
	open   *loading // the current conversation, which may continue
	// replaying is set while a commit is filled again: reports were made before.
	replaying bool

	// Of an input that grows: the lines that are known, and the nodes of the others if they are asked for.
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

// seen is the state of reading outside of conversations.
type seen struct {
	report Report
	format string
	file   string
	title  string // for an untitled conversation that is alone in the file
	read   int64
	files  *Files // nil if nothing is remembered
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
		s.format, s.file, s.title = e.Input.Format, e.Input.File, e.Input.Title
		if !slices.Contains(s.report.Formats, e.Input.Format) {
			s.report.Formats = append(s.report.Formats, e.Input.Format)
		}
	}
}

// filling is a commit being filled. It keeps what it was filled with, so that it can be filled again if others changed
// the store first.
type filling struct {
	*write.Batch
	loader   *loader
	added    added
	contents place.Contents
	placers  map[*threadState]*place.Placer
	fresh    bool  // see write.Try
	refused  error // why the last try was refused
	// state is what is read, nil before the first read. known counts what they placed in it.
	state    backend.Snapshot
	known    int
	items    []item
	retained int64 // bytes that items hold on to
	refilled bool  // others changed the store first
	// held is the conversation that continues in the next commit.
	held *loading
	// threads are those that the commit changes, firsts the ids of first messages in it.
	threads map[structure.ThreadID]bool
	firsts  map[string]bool
}

// item is a node that was added, or the end of a conversation if node is nil.
type item struct {
	*loading
	node *prepared
}

// added counts what a commit adds to a store, and the messages it shares.
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
	copy   *place.Copy // of the span of another thread that it was found to be a copy of
}

// given are lines whose nodes the store has: see Growing.Known.
type given struct {
	lines int64
	spans func(line int64) []structure.SpanRef
	ends  map[structure.RunID]uint64 // the last places of the runs of the spans
}
