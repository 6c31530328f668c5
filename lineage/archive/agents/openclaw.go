package agents

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// OpenClaw reads what OpenClaw keeps of its sessions in files: those of versions without a database, in the form of pi,
// and cold archives, to which the records of old sessions are moved from the database.
func OpenClaw() archive.Format {
	return archive.Format{
		Name: "openclaw-jsonl", Grows: true, Bare: true,
		Tried:  "sessions that OpenClaw 2026.7.35 wrote, and cold archives of 2026.9.6",
		Detect: isOpenClaw,
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := newOpenClawSession(in, yield)
				s.readLines(ctx, s.line)
			}
		},
	}
}

// OpenClawStated is what the database of OpenClaw states of a session beside its records.
type OpenClawStated struct {
	ID, Title string
	// ForkedFrom is the id of the session whose beginning was copied.
	ForkedFrom string
	// Metadata has other fields.
	Metadata rawjson.Object
}

// ReadOpenClaw yields the parts of a session whose records are not in a file.
func ReadOpenClaw(ctx context.Context, in *archive.Input, stated OpenClawStated, records iter.Seq2[archive.Item, error]) iter.Seq2[*archive.Conversation, error] {
	return func(yield func(*archive.Conversation, error) bool) {
		s := newOpenClawSession(in, yield)
		s.stated, s.title, s.part.ForkedFrom = stated, stated.Title, stated.ForkedFrom
		s.named(stated.ID)
		s.about.more.Join(&stated.Metadata)
		s.readItems(records, s.line)
	}
}

// openClawSession is the state of reading a session of OpenClaw. Its records are those of pi, and more: a "leaf" moves
// the end of the session to an earlier entry, a "reset" begins a new window of what the model gets, and an entry with
// the mode "side" does not continue the session.
type openClawSession struct {
	piSession
	stated OpenClawStated
	headed bool
	// name is the id that OpenClaw uses. It may be one that a person has chosen.
	name string
	// cold is set for a cold archive.
	cold bool
	// led is set after a "leaf". Then leaf is the entry at the end of the session, and next the one that the program
	// names as the parent of what it adds. They may differ: entries with that parent follow the leaf.
	led        bool
	leaf, next string
}

func newOpenClawSession(in *archive.Input, yield func(*archive.Conversation, error) bool) openClawSession {
	s := openClawSession{piSession: newPiSession("openclaw", in, yield)}
	s.sharedIDs = true // a fork has the entries of the other session with their ids
	return s
}

// isOpenClaw reports whether a file is a cold archive, or has entries that OpenClaw adds to those of pi.
func isOpenClaw(h archive.Head) bool {
	for i, line := range h.Lines(20) {
		kind := rawjson.Str(rawjson.Get(line, "customType"))
		if i == 0 && isColdHeader(line) || rawjson.Str(rawjson.Get(line, "type")) == "custom" && (kind == "model-snapshot" || strings.HasPrefix(kind, "openclaw")) {
			return true
		}
	}
	return false
}

// isColdHeader reports whether a line is the first of a cold archive.
func isColdHeader(line []byte) bool {
	return rawjson.Str(rawjson.Get(line, "kind")) == "header" && rawjson.Has(line, "sessionId", "generation")
}

// ColdEvent returns the row of the database that a line of a cold archive has: an event. It returns nil for other
// lines, which are indexes that OpenClaw makes from the events.
func ColdEvent(line []byte) []byte {
	if rawjson.Str(rawjson.Get(line, "kind")) != "event" {
		return nil
	}
	return rawjson.Get(line, "row")
}

// line reads a line: a record, or a row of a cold archive.
func (s *openClawSession) line(raw []byte, at archive.Position) error {
	if !s.cold {
		if s.stated.ID != "" || s.headed || s.begun() || !isColdHeader(raw) {
			s.record(raw, at)
			return nil
		}
		s.cold = true
		s.named(rawjson.Str(rawjson.Get(raw, "sessionId")))
		return nil
	}
	row := ColdEvent(raw)
	if row == nil {
		return nil
	}
	event := s.in.Item([]byte(rawjson.Str(rawjson.Get(row, "event_json"))), at)
	if err := event.Valid(); err != nil {
		return err
	}
	if !rawjson.IsObject(event.Raw) {
		return archive.Malformed("not an object")
	}
	s.record(event.Raw, at)
	return nil
}

// record reads a record.
func (s *openClawSession) record(raw []byte, at archive.Position) {
	r := piRecord(raw, at)
	if r.kind == "session" && !s.headed {
		s.header(raw, at)
		return
	}
	s.began(string(raw))
	side := rawjson.Str(rawjson.Get(raw, "appendMode")) == "side"
	if r.kind == "leaf" {
		s.moved(&r, raw)
		return
	}
	if s.led && r.hasParent && !side && r.Parent == s.next {
		r.Parent = s.leaf
	}
	end := s.entry(&r, raw)
	if s.stated.Title != "" {
		s.title = s.stated.Title
	}
	if !side {
		s.part.Current = end
	}
	if r.ID != "" {
		if s.next = r.ID; !side && openClawEntries[r.kind] {
			s.leaf = r.ID
		}
	}
}

// openClawEntries are the kinds of records that OpenClaw knows as entries of a session.
var openClawEntries = map[string]bool{
	"message": true, "thinking_level_change": true, "model_change": true, "compaction": true, "reset": true, "branch_summary": true,
	"custom": true, "custom_message": true, "label": true, "session_info": true,
}

// header reads the header.
func (s *openClawSession) header(raw []byte, at archive.Position) {
	id, fork := s.id, s.part.ForkedFrom
	s.id = ""
	s.piSession.header(raw, at)
	s.headed = true
	own := s.id
	s.id = id
	if s.name == "" { // else that is its id, whatever the header has
		s.named(own)
	}
	if at := rawjson.Str(rawjson.Get(raw, "timestamp")); at != "" {
		s.began(at + " " + rawjson.Str(rawjson.Get(raw, "cwd")))
	}
	// The database states "sqlite:AGENT:SESSION:PATH" in place of a path.
	if fields := strings.SplitN(rawjson.Str(rawjson.Get(raw, "parentSession")), ":", 4); len(fields) == 4 && fields[0] == "sqlite" {
		s.part.ForkedFrom = fields[2]
	}
	s.part.ForkedFrom = cmp.Or(fork, s.part.ForkedFrom)
}

// named sets the id that OpenClaw uses.
func (s *openClawSession) named(id string) {
	if s.name = id; len(id) == uuidLength && uuid.Validate(id) == nil {
		s.id = id
	}
}

const uuidLength = 36

// began completes an id that a person has chosen by how the session began: in its header, or in its first record if
// that does not tell. All forms of a session have the same.
func (s *openClawSession) began(kind string) {
	if s.id == "" && s.name != "" {
		s.id = archive.ChosenID(s.name, kind)
	}
}

// moved reads a record that moves the end of the session to an earlier entry, or to the start.
func (s *openClawSession) moved(r *lineRecord, raw []byte) {
	to := rawjson.Get(raw, "targetId")
	target, none := rawjson.Str(to), string(to) == "null"
	_, isRecord := s.standIn[target]
	if !none && (target == "" || !s.known[target] && !isRecord) { // OpenClaw ignores it
		s.logRecord(r, raw)
		return
	}
	r.Parent = target
	s.logRecord(r, raw)
	s.led, s.leaf, s.next = true, target, target
	if next := rawjson.Get(raw, "appendParentId"); next != nil {
		s.next = rawjson.Str(next)
	}
	s.part.Current = s.resolve(target)
}
