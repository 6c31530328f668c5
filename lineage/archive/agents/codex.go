package agents

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/message"
)

// Codex reads Codex rollouts: a file of JSON lines per session.
func Codex() archive.Format {
	return archive.Format{
		Name: "codex", Grows: true,
		Tried: "published sessions, and one that Codex 0.171.0 wrote and resumed; those of before September 2025: documents",
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(3) {
				if isBareHeader(line) {
					return true
				}
				if !rawjson.Has(line, "type", "payload") {
					continue
				}
				switch rawjson.Str(rawjson.Get(line, "type")) {
				case "session_meta", "turn_context", "response_item", "event_msg", "compacted":
					return true
				}
			}
			return false
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				r := rollout{sessionReader: newSessionReader(in, yield)}
				r.about.agent = "codex"
				r.readLines(ctx, r.line)
			}
		},
	}
}

// rollout is the state of reading a session of Codex.
type rollout struct {
	sessionReader
	restart bool // the next message begins a history
	bare    bool // see isBareHeader
	forked  bool // it is known which session this one was forked from
	hasItem bool // an item was read
	// base, when not nil, returns the messages of the session that this one was forked from. missing is the reason
	// why they cannot be read.
	base    func(rolloutBase) ([]archive.Node, error)
	missing error
}

func (r *rollout) line(raw []byte, at archive.Position) error {
	if !rawjson.Has(raw, "type", "payload") {
		return r.bareLine(raw, at)
	}
	created := archive.ParseTime(rawjson.Get(raw, "timestamp"))
	payload := rawjson.Get(raw, "payload")
	if created.After(r.part.Updated) {
		r.part.Updated = created
	}
	kind := rawjson.Str(rawjson.Get(raw, "type"))
	switch kind {
	case "session_meta":
		if r.id == "" && rawjson.IsObject(payload) {
			r.meta(payload, at)
			if r.part.Created.IsZero() {
				r.part.Created = created
			}
			return nil
		}
		r.copiedFrom(rawjson.Str(rawjson.Get(payload, "id")))
	case "turn_context":
		if model := rawjson.Str(rawjson.Get(payload, "model")); model != "" {
			r.about.model, r.part.Model = model, model
		}
	case "response_item":
		if rawjson.IsObject(payload) {
			r.item(payload, besidePayload(raw), created, at)
			return nil
		}
	case "compacted":
		r.compacted(payload, created, at)
	}
	r.log(kind, "", "", raw, created, at)
	if kind == "token_usage_record" || kind == "event_msg" && rawjson.Str(rawjson.Get(payload, "type")) == "token_count" {
		r.part.Nodes[len(r.part.Nodes)-1].Model = r.about.model // the model whose tokens the record counts
	}
	return nil
}

// item adds a message, a call or a result.
func (r *rollout) item(item, metadata []byte, created time.Time, at archive.Position) {
	n := rolloutItem(item, r.about.model)
	n.Created, n.At, n.Root, n.Metadata = created, at, r.restart, metadata
	r.restart, r.hasItem = false, true
	r.part.Nodes = append(r.part.Nodes, n)
}

// copiedFrom reads the header of another session. A fork by copy begins with the lines of the session that it was forked from, and
// so with the header of that one, which may be a fork itself. Older versions of Codex state nowhere else what was forked.
func (r *rollout) copiedFrom(session string) {
	if r.hasItem || session == "" || session == r.id {
		return
	}
	if !r.forked {
		r.forked, r.part.ForkedFrom = true, session
	}
	r.about.copied = session
}

// isBareHeader reports whether a line, possibly truncated, is the header of a session that Codex wrote before September 2025:
// its lines are items without a time or anything else around them.
func isBareHeader(line []byte) bool {
	return rawjson.Has(line, "id", "timestamp") && !rawjson.Has(line, "type") && (rawjson.Has(line, "instructions") || rawjson.Has(line, "git")) &&
		uuid.Validate(rawjson.Str(rawjson.Get(line, "id"))) == nil
}

// bareLine reads a line of a session with a bare header. Newer sessions may have states between their lines.
func (r *rollout) bareLine(raw []byte, at archive.Position) error {
	switch {
	case r.id == "" && isBareHeader(raw):
		r.bare = true
		r.meta(raw, at)
		r.part.Updated = r.part.Created
	case rawjson.Has(raw, "record_type"):
		r.log(rawjson.Str(rawjson.Get(raw, "record_type")), "", "", raw, time.Time{}, at)
	case !r.bare:
		return archive.Malformed("not a line of a rollout")
	default:
		r.bareItem(raw, at)
	}
	return nil
}

// bareItem adds an item that has no time, or keeps it in the log if it is of an unknown type.
func (r *rollout) bareItem(raw []byte, at archive.Position) {
	switch kind := rawjson.Str(rawjson.Get(raw, "type")); {
	case kind == "message" || message.ItemRole(kind) != "":
		r.item(raw, nil, time.Time{}, at)
		r.about.cwd = cmp.Or(r.about.cwd, bareFolder(raw))
	default:
		r.log(kind, "", "", raw, time.Time{}, at)
	}
}

// bareFolder returns the working directory that Codex states to the model in an item, empty if it does not. A bare header does
// not have it.
func bareFolder(item []byte) string {
	for part := range rawjson.Elements(rawjson.Get(item, "content")) {
		text := strings.TrimSpace(rawjson.Str(rawjson.Get(part, "text")))
		if !strings.HasPrefix(text, "<environment_context>") {
			continue
		}
		_, dir, stated := strings.Cut(text, "<cwd>")
		if dir, _, ends := strings.Cut(dir, "</cwd>"); stated && ends {
			return strings.TrimSpace(dir)
		}
		_, dir, _ = strings.Cut(text, "\nCurrent working directory: ")
		dir, _, _ = strings.Cut(dir, "\n")
		return strings.TrimSpace(dir)
	}
	return ""
}

// besidePayload returns what a line states of its item besides the payload. The ordinal is left out: it is the number of
// the line.
func besidePayload(raw []byte) []byte {
	var rest rawjson.Object
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "timestamp", "type", "payload", "ordinal":
		default:
			rest.Add(m)
		}
	}
	return rest.Bytes()
}

// meta reads the metadata of a session.
func (r *rollout) meta(payload []byte, at archive.Position) {
	base := rolloutBase{}
	defer func() { r.begins(base, at) }() // when the id is known
	for m := range rawjson.Members(payload) {
		switch m.Key {
		case "id":
			r.id = rawjson.Str(m.Value)
		case "cwd":
			r.about.cwd = rawjson.Str(m.Value)
		case "cli_version":
			r.about.version = rawjson.Str(m.Value)
		case "git":
			r.about.gitBranch = rawjson.Str(rawjson.Get(m.Value, "branch"))
			r.field(m, at)
		case "timestamp":
			r.part.Created = archive.ParseTime(m.Value)
		case "forked_from_id":
			r.part.ForkedFrom = rawjson.Str(m.Value)
			r.forked = r.part.ForkedFrom != ""
			r.field(m, at)
		case "history_base":
			base = rolloutBaseOf(m.Value)
			r.field(m, at)
		default:
			r.field(m, at)
		}
	}
}

// compacted continues the history from the replacement made by a compaction. The previous history remains as a
// branch.
func (r *rollout) compacted(payload []byte, created time.Time, at archive.Position) {
	history := rawjson.Get(payload, "replacement_history")
	root := true
	for item := range rawjson.Elements(history) {
		if !rawjson.IsObject(item) {
			continue
		}
		n := rolloutItem(item, r.about.model)
		n.Created, n.At, n.Root = created, at, root
		root = false
		r.part.Nodes = append(r.part.Nodes, n)
	}
	if !root {
		return
	}
	if text := rawjson.Get(payload, "message"); rawjson.IsString(text) {
		n := archive.Node{Role: "system", Name: "compacted", Created: created, At: at}
		n.Body, n.Type = archive.TextBody(text)
		r.part.Nodes = append(r.part.Nodes, n)
	}
}

// rolloutItem reads a message, a call or a result.
func rolloutItem(payload []byte, model string) archive.Node {
	kind := rawjson.Str(rawjson.Get(payload, "type"))
	n := archive.Node{Role: cmp.Or(message.ItemRole(kind), "assistant"), Name: kind}
	if kind == "message" || kind == "" && rawjson.Has(payload, "role") {
		n.Role, n.Name = rawjson.Str(rawjson.Get(payload, "role")), ""
	}
	if n.Role == "assistant" {
		n.Model = model
	}
	n.Give(payload)
	return n
}

// rolloutBase is the position in another session's file at which a session of Codex was forked by reference.
type rolloutBase struct {
	session string
	// ordinal is the number of the first line after the fork, offset where that line begins; -1 if not stated.
	ordinal, offset int64
}

// maxBases limits the chain of sessions that were forked from one another.
const maxBases = 64

func rolloutBaseOf(raw []byte) rolloutBase {
	number := func(key string) int64 {
		n, err := strconv.ParseInt(string(rawjson.Get(raw, key)), 10, 64)
		if err != nil || n < 0 {
			return -1
		}
		return n
	}
	return rolloutBase{rawjson.Str(rawjson.Get(raw, "thread_id")), number("end_ordinal_exclusive"), number("end_byte_offset")}
}

// begins adds the messages of the other session up to the fork. They equal the messages in that session's file, so
// the store has them once.
func (r *rollout) begins(base rolloutBase, at archive.Position) {
	if base.session == "" {
		return
	}
	if r.base == nil {
		left := r.in.MaxItem()
		r.base = func(earlier rolloutBase) ([]archive.Node, error) { return r.baseNodes(earlier, nil, &left) }
	}
	r.part.ForkedFrom, r.forked = base.session, true
	nodes, err := r.base(base)
	if err != nil {
		r.missing = err
		at.Inside = "history_base"
		if errors.Is(err, errNoBase) || errors.Is(err, errShort) {
			err = &archive.ElsewhereError{SourceID: base.session, Err: err}
		} else {
			err = archive.Malformed("its beginning is only in session %s: %v; it begins here", base.session, err)
		}
		r.part.Skip(at, err)
		return
	}
	for i := range nodes {
		nodes[i].At = at
	}
	r.part.Nodes = append(r.part.Nodes, nodes...)
}

// errShort is returned when the file of the other session ends before the fork.
var errShort = errors.New("its file does not have that part")

// baseNodes returns the messages of a session up to a line, preceded by those of the sessions that it was forked
// from. left is the number of bytes that may still be read, over all of them.
func (r *rollout) baseNodes(base rolloutBase, before []string, left *int64) ([]archive.Node, error) {
	if slices.Contains(before, base.session) || base.session == r.id || len(before) == maxBases {
		return nil, archive.Malformed("session %s begins in itself", base.session)
	}
	file, err := openRollout(r.in, base.session)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	origin := rollout{sessionReader: newSessionReader(r.in, r.yield), base: func(earlier rolloutBase) ([]archive.Node, error) {
		return r.baseNodes(earlier, append(before, base.session), left)
	}}
	complete, err := r.readBase(file, base, left, func(raw []byte) {
		_ = origin.line(raw, archive.Position{}) // damage is reported when that file is read
	})
	if err != nil {
		return nil, err
	}
	if origin.missing != nil {
		return nil, origin.missing
	}
	if origin.id != base.session {
		return nil, errNoBase // the file belongs to another session
	}
	if !complete {
		return nil, errShort
	}
	return slices.DeleteFunc(origin.part.Nodes, func(n archive.Node) bool { return n.Aside != "" }), nil
}

// readBase calls line for each object in the lines of a session before a fork. complete is set if the file has all of these lines.
func (r *rollout) readBase(file io.Reader, base rolloutBase, left *int64, line func(raw []byte)) (complete bool, err error) {
	lines := bufio.NewReaderSize(io.LimitReader(file, *left+1), 64<<10)
	offset, last := int64(0), int64(-1) // of the lines before
	for base.offset < 0 || offset < base.offset {
		raw, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return false, fmt.Errorf("session %s: %w", base.session, err)
		}
		offset += int64(len(raw))
		if *left -= int64(len(raw)); *left < 0 {
			return false, archive.TooLarge("beginning of a session", r.in.MaxItem()-*left, r.in.MaxItem())
		}
		if at := rawjson.SkipSpace(raw, 0); rawjson.Check(raw) == nil && rawjson.IsObject(raw[at:]) {
			raw = raw[at:]
			if n, numbered := strconv.ParseInt(string(rawjson.Get(raw, "ordinal")), 10, 64); numbered == nil {
				if base.ordinal >= 0 && n >= base.ordinal {
					return true, nil
				}
				last = n
			}
			line(raw)
		}
		if err == io.EOF {
			break
		}
	}
	if base.offset >= 0 {
		return offset == base.offset, nil
	}
	return base.ordinal >= 0 && last == base.ordinal-1, nil
}
