package chat

import (
	"context"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Approximate number and size of the messages of a page. The new ones are added in one commit. Reading any of them
// first checks the frame of the whole commit.
const (
	pageMessages = 250
	pageBytes    = 64 << 10
)

// flush places the messages of the page.
func (s *loading) flush(ctx context.Context) error {
	if len(s.page) == 0 {
		return nil
	}
	f := &placing{loading: s, inCommit: s.inPage}
	_, err := write.Of(s.store).Make(ctx, func(b *write.Batch, try write.Try) error { return f.fill(ctx, b, try) })
	if errors.Is(err, errIncomplete) {
		if err := f.complete(ctx); err != nil {
			return err
		}
		return s.flush(ctx)
	}
	if err != nil {
		return err
	}
	for _, m := range s.page {
		s.listed[m.ID] = f.placed[m.ID]
	}
	s.versions, s.problems = append(s.versions, f.versions...), append(s.problems, f.problems...)
	s.done.New += f.added
	s.done.Changed = s.done.Changed || f.added > 0
	s.page, s.bytes = nil, 0
	clear(s.inPage)
	return nil
}

// placing finds or adds the messages of a page, or new versions, in one state of the store and in one commit.
type placing struct {
	*loading
	inCommit map[string]*message // the messages of the commit, by id
	c        *openChat           // for reading only
	reader   *ThreadReader
	placer   *place.Placer
	wanted   *message // the message that is looked up

	placed       map[string]standing
	versions     []version
	problems     []error
	added        int
	needOriginal []*message // new messages whose original content was not asked for yet

	// final is set in the last transaction, in which no message waits.
	final bool
	// renewed maps earlier versions to later ones, in the last transaction.
	renewed map[structure.SpanRef]structure.SpanRef
}

// errIncomplete is returned if placing a page has to be repeated after complete.
var errIncomplete = errors.New("the page is not complete")

// complete reads the original content of new messages, and makes the thread keep its runs, so that they can be placed.
func (f *placing) complete(ctx context.Context) error {
	if f.added > 0 && !f.c.t.Keeps {
		if err := f.commit(ctx, f.underway, func(c *openChat) error { return c.keep(ctx) }); err != nil {
			return err
		}
	}
	if len(f.needOriginal) == 0 {
		return nil
	}
	messages := make([]Message, len(f.needOriginal))
	for i, m := range f.needOriginal {
		messages[i] = m.Message
	}
	contents, err := f.from.Said(ctx, messages)
	if err != nil {
		return err
	}
	for i, m := range f.needOriginal {
		if m.originalAsked = true; contents[i] == nil {
			continue
		}
		if m.content, err = f.fromOriginal(ctx, &m.Message, contents[i]); err != nil {
			return err
		}
		m.hasOriginal = true
	}
	return nil
}

// read starts reading a state of the store. If the chat was deleted in the meantime, the error is ErrNotFound, even
// if another one was created with its id.
func (f *placing) read(ctx context.Context, from backend.Reader, b *write.Batch, fresh bool) error {
	in := &state{store: f.store, from: from}
	t, err := in.thread(ctx, f.from.Chat.ID)
	if err == nil && t.Home() != f.home {
		err = noChat(f.from.Chat.ID)
	}
	if err != nil {
		return err
	}
	f.c, f.reader = &openChat{state: in, t: t}, in.reading(t)
	f.placer = place.New(ctx, write.Of(f.store), from, b, make(place.Contents), t, place.Rules{
		Fresh: fresh, Latest: true, ByContent: true,
		Same: func(_ *place.Message, version *structure.Span) (bool, error) {
			return f.same(ctx, f.wanted, version.Ref)
		},
	})
	return nil
}

func (f *placing) find(after structure.SpanRef, m *message) (place.Match, error) {
	f.wanted = m
	return f.placer.Find(after, &m.content)
}

// fill fills the commit of the page.
func (f *placing) fill(ctx context.Context, b *write.Batch, try write.Try) error {
	state, err := write.Of(f.store).Engine().Snapshot(ctx)
	if err != nil {
		return err
	}
	defer state.Close()
	b.Reset(f.underway)
	b.Durability = backend.Normal
	b.Places()
	*f = placing{loading: f.loading, inCommit: f.inCommit, placed: make(map[string]standing, len(f.page))}
	if err := f.read(ctx, state, b, try.Fresh); err != nil {
		return err
	}
	b.ExpectThread(f.c.t.ID, f.c.t)
	for _, m := range f.page {
		if f.placed[m.ID], err = f.place(ctx, m); err != nil {
			return err
		}
	}
	if len(f.needOriginal) > 0 || f.added > 0 && !f.c.t.Keeps {
		return errIncomplete
	}
	return nil
}

// place finds or adds a message. A message that differs from that in the store, or that follows such a message, waits
// for the last transaction.
func (f *placing) place(ctx context.Context, m *message) (standing, error) {
	skip := func(err error) (standing, error) {
		f.problems = append(f.problems, err)
		return standing{skipped: true}, nil
	}
	parent, known, err := f.parentOf(ctx, m)
	if err != nil {
		return standing{}, err
	}
	if parent.skipped {
		return skip(&Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrInvalid, Detail: "its parent was left out"})
	}
	found, err := f.find(parent.at, m)
	if err != nil {
		return standing{}, err
	}
	if found.How == place.Absent {
		if at, exists, err := f.findWithoutID(ctx, m); exists || err != nil {
			return standing{at: at}, err
		}
	}
	if !known {
		return skip(&Error{Subject: SubjectMessage, ID: string(m.ParentID), ChatID: m.ChatID, Err: ErrNotFound, Detail: "parent of " + m.ID})
	}
	isNew := found.How == place.Absent || found.How == place.Version
	switch {
	case isNew && f.from.Said != nil && !m.originalAsked:
		f.needOriginal = append(f.needOriginal, m)
	case !parent.waits && found.How.Has():
		return standing{at: found.Span}, nil
	case !parent.waits && (f.final || found.How == place.Absent):
		return f.addNew(ctx, parent.at, m, found)
	case f.listed[m.ID].waits: // the message was stated twice
	default:
		v := version{id: m.ID, parent: m.ParentID, was: found.Span}
		if isNew {
			v.message = m
		}
		f.versions = append(f.versions, v)
	}
	return standing{waits: true}, nil
}

// findWithoutID finds a message of the chat that was stored without an id of its own. Other content than that of m is a problem.
func (f *placing) findWithoutID(ctx context.Context, m *message) (at structure.SpanRef, exists bool, err error) {
	foreign, exists, err := f.c.findForeign(ctx, m.ID)
	if err != nil || !exists || foreign.Home != f.home {
		return structure.SpanRef{}, false, err
	}
	same, err := f.same(ctx, m, foreign.Span)
	if err == nil && !same {
		f.problems = append(f.problems, &Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrExists, Detail: "with other content; without an id of its own it has no versions"})
	}
	return foreign.Span, true, err
}

// addNew adds a new message, or a new version of one.
func (f *placing) addNew(ctx context.Context, after structure.SpanRef, m *message, found place.Match) (standing, error) {
	var err error
	if found.How == place.Absent {
		err = f.derive(ctx, m)
	} else {
		var follows bool
		if follows, err = f.comesAfter(after, found.Span); follows {
			f.problems = append(f.problems, &Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrInvalid, Detail: "it would follow itself"})
			return standing{waits: true}, nil
		}
		if err == nil && !m.hasOriginal {
			var was content.ID // it is derived from the previous version
			was, err = f.c.contentAt(ctx, found.Span)
			m.derive(was)
		}
	}
	if err != nil {
		return standing{}, err
	}
	at, err := f.placer.Add(after, &m.content, found)
	if found.How != place.Absent {
		f.renewed[found.Span] = at
	}
	f.added++
	return standing{at: at}, err
}

// latestVersion returns the latest version of the message at a span.
func (f *placing) latestVersion(at structure.SpanRef) structure.SpanRef {
	for {
		to, earlier := f.renewed[at]
		if !earlier {
			return at
		}
		at = to
	}
}

// comesAfter reports whether a message at a span is in the history after a version of another message, if every message on the
// way is replaced by its latest version. It returns false if the parent of that version is the message at the span.
func (f *placing) comesAfter(at, version structure.SpanRef) (bool, error) {
	after, err := f.placer.Before(version)
	if err != nil || f.latestVersion(after) == at {
		return false, err
	}
	seen := make(map[structure.SpanRef]bool)
	for !at.IsZero() && at != version && !seen[at] {
		seen[at] = true
		if after, err = f.placer.Before(at); err != nil {
			return false, err
		}
		at = f.latestVersion(after)
	}
	return !at.IsZero(), nil
}

// parentOf returns where the parent of a message is, and whether it exists. The parent of a root is the empty position.
func (f *placing) parentOf(ctx context.Context, m *message) (standing, bool, error) {
	id := string(m.ParentID)
	if id == "" {
		return standing{}, true, nil
	}
	parent, listed := f.placed[id]
	if !listed {
		parent, listed = f.listed[id]
	}
	if listed && !(f.final && parent.at.IsZero()) {
		parent.at = f.latestVersion(parent.at)
		return parent, true, nil
	}
	at, known, err := f.c.find(ctx, id, f.home.Thread)
	return standing{at: f.latestVersion(at)}, known, err
}

// derive sets the content that a new message was derived from. If that does not exist, it is left out.
func (f *placing) derive(ctx context.Context, m *message) error {
	from := m.Origin.DerivedFrom
	if m.hasOriginal || from == "" {
		return nil
	}
	id, err := f.c.source(ctx, from)
	if other := f.inCommit[from]; other != nil && isMissing(err) {
		id, err = other.content.Usages[0].Content, nil
	}
	if isMissing(err) {
		f.problems = append(f.problems, &Error{Subject: SubjectMessage, ID: from, ChatID: m.ChatID, Err: ErrNotFound, Detail: m.ID + " was derived from it"})
		err = nil
	}
	m.derive(id)
	return err
}

// same reports whether a message equals the one at a span although their bytes differ. Erased content counts as
// equal.
func (f *placing) same(ctx context.Context, m *message, at structure.SpanRef) (bool, error) {
	step, err := f.c.step(ctx, at, backend.PathOptions{Bodies: true})
	if err != nil {
		return false, err
	}
	known, err := f.reader.message(ctx, step, m.ID)
	known.ChatID, known.ParentID = m.ChatID, m.ParentID
	if u := &step.Span.Usages[0]; err == nil && !u.MetadataContent.IsZero() {
		var metadata []byte
		if metadata, err = f.reader.messages.Metadata(ctx, u); metadata == nil {
			known.Type = m.Type // it was erased
		}
	}
	erased := string(known.Data) == "null" || slices.ContainsFunc(step.Blocks, (*structure.Block).Gone)
	return erased || m.Same(known), err
}

// fromOriginal returns a message to place, made from its original content. It gets the id that it has in the chat.
func (s *loading) fromOriginal(ctx context.Context, m *Message, statement *Said) (place.Message, error) {
	out := place.Message{ID: m.ID, Usages: slices.Clone(statement.Usages)}
	id, _ := sourceOf(out.Usages)
	for i := range out.Usages {
		u := &out.Usages[i]
		if id != m.ID {
			u.SourceID, u.Lookup = "", 0
		}
		for _, id := range u.Named(nil) {
			c, err := s.contentOf(ctx, statement, *id)
			if err != nil {
				return out, err
			}
			if c != nil {
				out.Contents = append(out.Contents, *c)
			}
		}
	}
	if id != m.ID {
		out.Usages[0].SourceID = m.ID
	}
	return out, nil
}
