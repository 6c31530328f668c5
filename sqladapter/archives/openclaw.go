package archives

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/zframe"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/agents"
)

// openClaw reads the sessions in the database of an agent of OpenClaw. A session is a list of events: the lines that
// older versions wrote to a file. The database also has credentials and a copy of the agent's state, so only the tables
// and columns named here are read, where OpenClaw has the file.
func openClaw() archive.Format {
	return archive.Format{
		Name:  "openclaw",
		Tried: "databases of OpenClaw 2026.9.6",
		Detect: func(h archive.Head) bool {
			named := h.Name == "openclaw-agent.sqlite" && h.IsSQLite()
			return named || mentions(h, "transcript_events", "session_windows")
		},
		Read: func(ctx context.Context, in *archive.Input) conversations {
			return readInPlace(ctx, in, func(r reader) error {
				if !openClawEvents.in(r.database) {
					return fmt.Errorf("%w: no table of events", archive.ErrMalformed)
				}
				c := openClawReader{reader: r, unpack: zframe.NewDecoder(maxOpenClawEvent)}
				defer c.unpack.Close()
				return c.sessions(ctx)
			})
		},
	}
}

// Columns that change with each message without saying anything of the session are not among these.
var (
	openClawEvents  = table{"transcript_events", []string{"session_id", "seq", "event_json", "created_at"}, []string{"event_zstd", "event_utf8_bytes"}}
	openClawWindows = table{"session_windows", []string{"session_id", "session_key"}, []string{
		"previous_session_id", "reason", "created_at", "ended_at", "chat_type", "channel", "model_provider", "model", "agent_harness_id", "parent_session_key", "spawned_by",
	}}
	openClawNodes = table{"session_nodes", []string{"session_key"}, []string{
		"created_at", "created_via", "parent_session_key", "spawned_by", "fork_source_session_key", "fork_source_session_id", "fork_source_entry_id",
		"label", "display_name", "category", "archived_at",
	}}
)

// openClawCold has the sessions whose events were moved to a file, or by a backup to a blob.
var openClawCold = table{"session_transcript_cold_archives", []string{"session_id", "storage", "archive_blob"}, nil}

// maxOpenClawEvent is the size in bytes of the largest event that OpenClaw compresses.
const maxOpenClawEvent = 4 << 20

// maxOpenClawKey is the size in bytes of the longest id of a session that is read.
const maxOpenClawKey = 512

type openClawReader struct {
	reader
	cold   map[string]bool // sessions whose events are in a blob
	unpack *zstd.Decoder
	rows   []archive.Row // of the session, not yielded yet
	size   int           // in bytes of these rows
}

// sessions reads all sessions, in the order in which they were created. It lists their ids first, so that no query
// stays open longer than one session takes.
func (r *openClawReader) sessions(ctx context.Context) error {
	created := make(map[string]int64)
	if r.has(openClawWindows.name, "session_id", "created_at") {
		err := r.rowsOf(ctx, `SELECT session_id AS id, created_at AS at FROM session_windows WHERE octet_length(session_id) <= ?1`, func(v row) error {
			created[v.text("id")], _ = v["at"].(int64)
			return nil
		})
		if err != nil {
			return err
		}
	}
	var ids []string
	err := r.rowsOf(ctx, `SELECT DISTINCT session_id AS id FROM transcript_events WHERE octet_length(session_id) <= ?1`, func(v row) error {
		ids = append(ids, v.text("id"))
		return nil
	})
	if err != nil {
		return err
	}
	if openClawCold.in(r.database) {
		r.cold = make(map[string]bool)
		err := r.rowsOf(ctx, `SELECT session_id AS id FROM session_transcript_cold_archives WHERE octet_length(session_id) <= ?1 AND storage = 'sqlite'
			AND session_id NOT IN (SELECT session_id FROM transcript_events WHERE session_id IS NOT NULL)`, func(v row) error {
			id := v.text("id")
			ids, r.cold[id] = append(ids, id), true
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(created[a], created[b]), strings.Compare(a, b)) })
	for _, id := range slices.Compact(ids) {
		if err := r.session(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf calls visit for the rows of a query of ids.
func (r *openClawReader) rowsOf(ctx context.Context, query string, visit func(row) error) error {
	return r.reader.rows(ctx, maxOpenClawKey, query, nil, func(v row) error {
		if err := r.in.Expand(rowBytes, r.database.size); err != nil {
			return err
		}
		return visit(v)
	})
}

// session reads a session.
func (r *openClawReader) session(ctx context.Context, id string) error {
	r.rows, r.size = nil, 0
	session, err := r.about(ctx, id)
	if err != nil {
		return err
	}
	var failed error
	found := false
	events := r.events
	if r.cold[id] {
		events = r.coldEvents
	}
	for c, err := range agents.ReadOpenClaw(ctx, r.in, session, events(ctx, id, &failed)) {
		if failed != nil {
			break
		}
		if err == nil {
			found = found || c.More || c.Says()
			if !found { // nobody has said anything in it yet
				break
			}
			c.Rows, r.rows, r.size = r.rows, nil, 0
		}
		if !r.yield(c, err) {
			return errStopped
		}
	}
	return failed
}

// about reads what the tables of sessions state of a session.
func (r *openClawReader) about(ctx context.Context, id string) (agents.OpenClawStated, error) {
	stated := agents.OpenClawStated{ID: cleanText([]byte(id))}
	window, err := r.one(ctx, &openClawWindows, "session_id", id)
	if err != nil || window == nil {
		return stated, err
	}
	node, err := r.one(ctx, &openClawNodes, "session_key", window.text("session_key"))
	if err != nil {
		return stated, err
	}
	state := func(key string, values ...string) {
		if value := cmp.Or(values...); value != "" {
			stated.Metadata.SetText(key, cleanText([]byte(value)))
		}
	}
	state("sessionKey", window.text("session_key"))
	state("channel", window.text("channel"))
	state("previousSession", window.text("previous_session_id"))
	state("reason", window.text("reason"))
	state("spawnedBy", window.text("spawned_by"), node.text("spawned_by"))
	state("parentSessionKey", window.text("parent_session_key"), node.text("parent_session_key"))
	name := node.text("display_name")
	if strings.HasSuffix(window.text("session_key"), ":"+name) { // OpenClaw has not found one yet
		name = ""
	}
	stated.Title = cleanText([]byte(cmp.Or(node.text("label"), name)))
	stated.ForkedFrom = cleanText([]byte(node.text("fork_source_session_id")))
	return stated, nil
}

// one reads the row of a table with a key, nil if there is none.
func (r *openClawReader) one(ctx context.Context, t *table, column, key string) (found row, err error) {
	if !t.in(r.database) || len(key) > maxOpenClawKey {
		return nil, nil
	}
	r.begin()
	query := `SELECT ` + r.list(t.name, append(slices.Clone(t.needed), t.columns...)...) + ` FROM ` + t.name + ` WHERE ` + quoted(column) + ` = ? LIMIT 1`
	err = r.each(ctx, query, []any{key}, func(v row) error {
		found = v
		r.keep(t, key, v)
		return nil
	})
	if isLimit(err) && r.stopped == nil { // it is too large, and tells nothing that is needed
		return nil, nil
	}
	return found, err
}

// keep keeps a row, if the caller asked for rows.
func (r *openClawReader) keep(t *table, key string, v row) {
	if r.in.WantsRows() {
		key = cleanText([]byte(key))
		var columns []string
		for _, c := range append(slices.Clone(t.needed), t.columns...) {
			if _, there := v[c]; there {
				columns = append(columns, c)
			}
		}
		kept := archive.Row{Key: t.name + " " + key, JSON: rowJSON(t.name, key, columns, v)}
		r.rows, r.size = append(r.rows, kept), r.size+len(kept.JSON)
	}
}

// events yields the events of a session. An event that cannot be read is a *Damage. failed is set to an error that ends
// reading.
func (r *openClawReader) events(ctx context.Context, id string, failed *error) iter.Seq2[archive.Item, error] {
	return func(yield func(archive.Item, error) bool) {
		t := &openClawEvents
		query := `SELECT ` + r.list(t.name, append(slices.Clone(t.needed), t.columns...)...) + ` FROM transcript_events WHERE session_id = ? ORDER BY seq`
		err := r.eachItem(ctx, query, []any{id}, func(v row) error {
			key := id + "/" + v.text("seq")
			at := r.next("event " + key)
			text, err := r.event(v)
			if r.stopped != nil {
				return r.stopped
			}
			if err == nil {
				if !r.said(key, text, v, at, yield) {
					return errStopped
				}
				return nil
			}
			if !yield(archive.Item{}, &archive.Damage{At: at, Err: err}) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			*failed = err
			yield(archive.Item{}, err) // what was read is not the end of the session
		}
	}
}

// said keeps and yields an event. Its text is kept as OpenClaw wrote it: an erasure must find it, and the row does not
// change when OpenClaw compresses or moves it.
func (r *openClawReader) said(key string, text []byte, v row, at archive.Position, yield func(archive.Item, error) bool) bool {
	delete(v, "event_zstd")
	delete(v, "event_utf8_bytes")
	v["event_json"] = string(text)
	r.keep(&openClawEvents, key, v)
	return yield(r.in.Item(bytes.TrimSpace(text), at), nil)
}

// coldEvents yields the events of a session that are in a blob: a compressed file of lines.
func (r *openClawReader) coldEvents(ctx context.Context, id string, failed *error) iter.Seq2[archive.Item, error] {
	return func(yield func(archive.Item, error) bool) {
		query := `SELECT ` + r.list(openClawCold.name, openClawCold.needed...) + ` FROM session_transcript_cold_archives WHERE session_id = ? LIMIT 1`
		var packed []byte
		at := r.next("cold archive of " + id)
		err := r.each(ctx, query, []any{id}, func(v row) error {
			packed, _ = v["archive_blob"].([]byte)
			return nil
		})
		switch {
		case err != nil:
		case len(packed) == 0:
			err = fmt.Errorf("%w: it has no bytes", archive.ErrMalformed)
		default:
			err = r.coldLines(ctx, id, packed, yield)
		}
		switch {
		case err == nil || errors.Is(err, errStopped):
		case r.stopped != nil || context.Cause(ctx) != nil:
			*failed = err
			yield(archive.Item{}, err)
		default:
			yield(archive.Item{}, &archive.Damage{At: at, Err: err})
		}
	}
}

// coldLines yields the events in a compressed file of lines.
func (r *openClawReader) coldLines(ctx context.Context, id string, packed []byte, yield func(archive.Item, error) bool) error {
	unpacked, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxOpenClawWindow))
	if err != nil {
		return err
	}
	defer unpacked.Close()
	lines := bufio.NewScanner(r.in.Expanded(unpacked, int64(len(packed))))
	lines.Buffer(nil, int(min(r.in.MaxItem(), maxOpenClawCold)))
	for lines.Scan() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		at := r.next("cold archive of " + id)
		if err := r.take(int64(len(lines.Bytes()))); err != nil {
			return err
		}
		if err := r.in.Item(lines.Bytes(), at).Valid(); err != nil {
			if !yield(archive.Item{}, &archive.Damage{At: at, Err: err}) {
				return errStopped
			}
			continue
		}
		event := agents.ColdEvent(lines.Bytes())
		if event == nil {
			continue
		}
		seq, _ := strconv.ParseInt(string(rawjson.Get(event, "seq")), 10, 64)
		created, _ := strconv.ParseInt(string(rawjson.Get(event, "created_at")), 10, 64)
		v := row{"session_id": id, "seq": seq, "created_at": created}
		if !r.said(id+"/"+v.text("seq"), []byte(rawjson.Str(rawjson.Get(event, "event_json"))), v, at, yield) {
			return errStopped
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", archive.ErrMalformed, err)
	}
	return nil
}

// maxOpenClawCold is the size in bytes of the largest cold archive that OpenClaw makes, before compression. It compresses them with
// the defaults of zstd, whose window is smaller than maxOpenClawWindow.
const (
	maxOpenClawCold   = 64 << 20
	maxOpenClawWindow = 8 << 20
)

// event returns the text of an event.
func (r *openClawReader) event(v row) ([]byte, error) {
	if err := r.takeRow(v); err != nil {
		return nil, err
	}
	if text, ok := v["event_json"].(string); ok {
		return []byte(text), nil
	}
	packed, ok := v["event_zstd"].([]byte)
	size, stated := v["event_utf8_bytes"].(int64)
	if v["event_json"] != nil || !ok || !stated {
		return nil, fmt.Errorf("%w: it is neither a text nor a compressed one", archive.ErrMalformed)
	}
	if size < 1 || size > maxOpenClawEvent {
		return nil, archive.TooLarge("event", size, maxOpenClawEvent)
	}
	if err := r.take(size); err != nil {
		return nil, err
	}
	text, err := zframe.Expand(r.unpack, packed, int(size))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", archive.ErrMalformed, err)
	}
	return text, nil
}
