package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Entries. A commit in an entry is in the binary form of package structure.
const (
	entryHistory = 1  // commit: blocks, span sets and spans
	entryRun     = 2  // a piece of a run; its spans follow
	entryBody    = 3  // commit: a large block; its chunks follow
	entryChunks  = 4  // commit: chunks
	entryLeft    = 5  // commit: description of an omitted block
	entryLeftKey = 6  // key of an omitted chunk
	entryErased  = 7  // commit: description of an erased block
	entryFacts   = 8  // commit: threads, and contexts each with its reflog and summaries
	entryNames   = 9  // commit: a thread's branches and checkpoints, and the thread
	entryValues  = 10 // records of values, see merging
)

// kindsOf lists the kinds of records that each entry with a commit may have.
var kindsOf = map[byte][]structure.Kind{
	entryHistory: {structure.KindBlock, structure.KindSpanSet, structure.KindSpan},
	entryBody:    {structure.KindBlock},
	entryChunks:  {structure.KindChunk},
	entryLeft:    {structure.KindBlock},
	entryErased:  {structure.KindBlock},
	entryFacts:   {structure.KindThread, structure.KindContext, structure.KindReflog, structure.KindSummary, structure.KindRemnant},
	entryNames:   {structure.KindBranch, structure.KindCheckpoint, structure.KindThread},
	entryValues:  {structure.KindValue},
}

// decodedEntry is an entry of a bundle, decoded.
type decodedEntry struct {
	tag    byte
	piece  runPiece
	key    content.Key
	commit *structure.Commit
	facts  []fact
}

// block returns the only record of a commit of one block.
func (e *decodedEntry) block() *structure.Block { return e.commit.Records[0].(*structure.Block) }

// fact is a thread, a context with its reflog and summaries, or a remnant.
type fact struct {
	owner   structure.Owner // of the values of the thread or context; zero for a remnant
	thread  *structure.Thread
	remnant *structure.Remnant
	theirs
}

// decode decodes an entry and checks its form.
func (r *reader) decode(tag byte, b []byte) (*decodedEntry, error) {
	e := &decodedEntry{tag: tag}
	ok := true
	switch tag {
	case entryRun:
		if e.piece, ok = decodePiece(b); !ok {
			return nil, r.corrupt("malformed piece of a run")
		}
		return e, nil
	case entryLeftKey:
		if len(b) != len(e.key) {
			return nil, r.corrupt("malformed key")
		}
		e.key = content.Key(b)
		return e, nil
	}
	kinds, known := kindsOf[tag]
	if !known {
		return nil, r.corrupt("entry of unknown kind %d", tag)
	}
	var err error
	e.commit, err = structure.DecodeSmallCommit(b, maxRecords)
	if errors.Is(err, backend.ErrNewerFormat) || errors.Is(err, backend.ErrOlderFormat) {
		return nil, err
	}
	if err != nil {
		return nil, r.corrupt("%v", err)
	}
	if len(e.commit.Records) == 0 {
		return nil, r.corrupt("an empty commit")
	}
	for _, record := range e.commit.Records {
		if !slices.Contains(kinds, record.Kind()) {
			return nil, r.corrupt("a %v in an entry of kind %d", record.Kind(), tag)
		}
	}
	return e, r.checkForm(e)
}

// checkForm checks the records of a commit.
func (r *reader) checkForm(e *decodedEntry) (err error) {
	records := e.commit.Records
	switch e.tag {
	case entryHistory:
		for _, record := range records {
			if b, ok := record.(*structure.Block); ok && b.Gone() {
				return r.corrupt("block %v has no bytes", b.ID)
			}
		}
	case entryBody, entryLeft, entryErased:
		if b := e.block(); len(records) != 1 || !b.Gone() && (b.Size != 0 || e.tag == entryBody) {
			return r.corrupt("a malformed description")
		}
	case entryFacts:
		e.facts, err = r.facts(records)
	case entryNames:
		return r.names(records)
	case entryValues:
		for _, record := range records {
			if v := record.(*structure.Value); v.JSON != nil && !json.Valid(v.JSON) {
				return r.corrupt("value %v is not JSON", v.Name())
			}
		}
	}
	return err
}

// facts groups records into threads, and contexts with their reflog and summaries.
func (r *reader) facts(records []structure.Record) (facts []fact, err error) {
	var last *fact
	for _, record := range records {
		var context structure.ContextID
		switch record := record.(type) {
		case *structure.Thread:
			if !record.Active.IsZero() || record.ID.IsZero() {
				return nil, r.corrupt("thread %v before its contexts", record.ID)
			}
			facts = append(facts, fact{owner: structure.Owner{Scope: structure.ThreadScope, Thread: record.ID}, thread: record})
			last = nil
			continue
		case *structure.Remnant:
			if record.ID.IsZero() || record.ID == record.Parent {
				return nil, r.corrupt("a deleted context %v below %v", record.ID, record.Parent)
			}
			facts = append(facts, fact{owner: structure.Owner{Scope: structure.ContextScope, Context: record.ID}, remnant: record})
			last = nil
			continue
		case *structure.Context:
			if record.ID.IsZero() || record.ID == record.Parent {
				return nil, r.corrupt("a context %v below %v", record.ID, record.Parent)
			}
			facts = append(facts, fact{owner: structure.Owner{Scope: structure.ContextScope, Context: record.ID}, theirs: theirs{Context: record}})
			last = &facts[len(facts)-1]
			continue
		case *structure.Reflog:
			if context = record.Context; last != nil {
				last.reflog = append(last.reflog, record)
			}
		case *structure.Summary:
			if context = record.Context; last != nil {
				last.summaries = append(last.summaries, record)
			}
		}
		if last == nil || last.ID != context {
			return nil, r.corrupt("a %v of context %v does not follow it", record.Kind(), context)
		}
	}
	return facts, nil
}

// names checks that the last record is a thread and that the others are names in it.
func (r *reader) names(records []structure.Record) error {
	last := len(records) - 1
	t, ok := records[last].(*structure.Thread)
	if !ok {
		return r.corrupt("names without their thread")
	}
	for _, record := range records[:last] {
		var thread structure.ThreadID
		switch record := record.(type) {
		case *structure.Branch:
			thread = record.Thread
		case *structure.Checkpoint:
			thread = record.Thread
		}
		if thread != t.ID {
			return r.corrupt("a name of thread %v is among those of thread %v", thread, t.ID)
		}
	}
	return nil
}

// each calls f for each entry.
func (r *reader) each(ctx context.Context, f func(*decodedEntry) error) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		tag, b, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e, err := r.decode(tag, b)
		if err == nil {
			err = f(e)
		}
		if err != nil {
			return err
		}
	}
}

// theirs is a context of the bundle. Its ids are replaced by those in the store.
type theirs struct {
	*structure.Context
	parent    structure.ContextID // id in the bundle
	reflog    []*structure.Reflog
	summaries []*structure.Summary
}

// rename gives a context another id.
func (t *theirs) rename(id structure.ContextID) {
	t.ID = id
	for _, r := range t.reflog {
		r.Context = id
	}
	for _, s := range t.summaries {
		s.Context = id
	}
}

func empty(b *write.Batch) bool {
	records, _ := b.Size()
	return records == 0
}

func full(b *write.Batch) bool {
	records, bytes := b.Size()
	return bytes+recordBytes*records >= commitBytes || records >= commitRecords
}

// Limits of a commit in a bundle. The store that imports the bundle applies it as one commit, and reading a message
// decodes its whole commit.
const (
	commitBytes   = 192 << 10
	commitRecords = 2048
	recordBytes   = 128 // estimate of a record without bodies and metadata
)
