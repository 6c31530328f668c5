package follow

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// taking decides which conversations of a file are stored.
type taking struct {
	ctx    context.Context
	store  *lineage.Store
	choice *Choice
	// conversations are the source ids that were stored before: those of the run.
	conversations map[string]bool
	// ids are the source ids of the conversations whose project is followed, and stored those that are stored.
	ids, stored []string
	taken       map[string]bool
	// alone is set if the file has a single conversation: if that is left out, reading stops.
	alone bool
	// path is the path of the file, and agent its agent. resumed has, for its conversations, the branches of threads that they
	// are, or nil.
	path, agent string
	resumed     map[string]*continuing
	// known is the project of the first conversation, if it is known in advance.
	known string
	// local, if not empty, distinguishes the conversations from those of other machines: see archive.Conversation.
	local string
	// project is that of a left-out conversation. deleted is set if a conversation was deleted.
	project string
	deleted bool
	err     error // of the store
	// rows, when not nil, records the rows of a part of a stored conversation.
	rows func(c *archive.Conversation) error
}

// formats wraps the readers of formats, so that they yield only what is stored.
func (t *taking) formats(formats []archive.Format) []archive.Format {
	t.taken = make(map[string]bool)
	wrapped := slices.Clone(formats)
	for i := range wrapped {
		read := wrapped[i].Read
		wrapped[i].Read = func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				for c, err := range read(ctx, in) {
					if err == nil {
						c, err = t.stores(c)
					}
					if c == nil && err == nil {
						continue
					}
					if !yield(c, err) {
						return
					}
				}
			}
		}
	}
	return wrapped
}

// stores returns a part of a conversation as it is stored, or nil if it is left out. The error stops reading.
func (t *taking) stores(c *archive.Conversation) (*archive.Conversation, error) {
	c.Identify(t.local)
	if !t.take(c) {
		if t.alone && t.err == nil {
			return nil, errLeftOut
		}
		return nil, t.err
	}
	if continued := t.resumed[c.SourceID]; continued != nil {
		continued.adapt(c)
	}
	if t.rows != nil && len(c.Rows) > 0 {
		if t.err = t.rows(c); t.err != nil {
			return nil, t.err
		}
		c.Rows = nil
	}
	return c, nil
}

// take reports whether a part of a conversation is stored.
func (t *taking) take(c *archive.Conversation) bool {
	take, known := t.taken[c.SourceID]
	if !known {
		take = t.decide(c.SourceID, cmp.Or(projectOf(c), t.known))
		t.taken[c.SourceID] = take
	}
	return take
}

// decide reports whether a conversation is stored.
func (t *taking) decide(id, project string) bool {
	if t.choice.leavesOut(project) {
		t.project = project
		return false
	}
	if id != "" {
		t.ids = append(t.ids, id)
	}
	resumed, err := t.continues(id)
	switch {
	case err != nil:
	case resumed != nil:
		_, err = t.store.Thread(t.ctx, resumed.Thread)
	case t.conversations[id]:
		_, err = ThreadOf(t.ctx, t.store, id)
	}
	if errors.Is(err, lineage.ErrNotFound) {
		t.deleted = true
		return false
	}
	if err != nil {
		t.err = err
		return false
	}
	t.stored = append(t.stored, id)
	return true
}

// errLeftOut stops reading a file of which nothing is stored.
var errLeftOut = errors.New("left out")

// outcome returns the error of an import. A file without conversations is not an error.
func (t *taking) outcome(err error) error {
	if t.err != nil {
		return t.err
	}
	if errors.Is(err, errLeftOut) || errors.Is(err, archive.ErrNothingFound) || errors.Is(err, archive.ErrUnknownFormat) {
		return nil
	}
	return err
}

// lost records that the threads of the file were deleted.
func (t *taking) lost() { t.stored, t.deleted = nil, true }

// leftOut returns why the whole file is left out, or "".
func (t *taking) leftOut() LeftOutReason {
	switch {
	case len(t.stored) > 0:
		return ""
	case t.deleted:
		return Deleted
	case t.project != "":
		return OtherProject
	}
	return ""
}

// projectOf returns the working directory of a conversation, or "" if it is unknown.
func projectOf(c *archive.Conversation) string {
	return rawjson.Str(rawjson.Get(c.Metadata, archive.KeyProject))
}

// continues returns what a session continues, or nil if it is a separate conversation.
func (t *taking) continues(session string) (*continuing, error) {
	if continued, known := t.resumed[session]; known {
		return continued, nil
	}
	continued, err := t.findContinued(session)
	if err != nil {
		return nil, err
	}
	if t.resumed == nil {
		t.resumed = make(map[string]*continuing)
	}
	t.resumed[session] = continued
	return continued, nil
}

// branchOf returns the thread that a session is a branch of, zero if it is its own.
func (t *taking) branchOf(session string) (thread lineage.ThreadID) {
	if continued := t.resumed[session]; continued != nil {
		thread = continued.Thread
	}
	return thread
}

// findContinued returns the history that a session continues, if lineage resume made it and the place is still there, else nil.
func (t *taking) findContinued(session string) (*continuing, error) {
	r, err := FindResumed(t.ctx, t.store, session)
	if r == nil || err != nil {
		return nil, err
	}
	if r, err = r.in(t.path, t.agent); r == nil || err != nil {
		return nil, err
	}
	_, err = t.store.Thread(t.ctx, r.Thread)
	deleted := errors.Is(err, lineage.ErrNotFound)
	if err != nil && !deleted {
		return nil, err
	}
	if deleted || r.Suffix == "" && r.Lines == 0 { // the session may be a thread, by an import or a file with another history
		if _, err := t.store.FindThread(t.ctx, session); !errors.Is(err, lineage.ErrNotFound) {
			return nil, err
		}
	}
	if !deleted {
		if _, err := t.store.Span(t.ctx, r.At); errors.Is(err, lineage.ErrNotFound) {
			return nil, nil // its branch was deleted
		} else if err != nil {
			return nil, err
		}
	}
	return &continuing{Resumed: r, written: make(map[string]bool)}, nil
}
