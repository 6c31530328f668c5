package archives_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	messages "github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

var bg = context.Background()

// pair is a member of a packed object; ext is a packed object of a class.
type (
	pair struct {
		key   string
		value any
	}
	object []pair
	ext    struct {
		module, class string
		value         any
		method        string
	}
)

// pack packs a value as LangGraph does.
func pack(b []byte, v any) []byte {
	length := func(n int, small, fix byte, limit int, wide byte) {
		switch {
		case n < limit:
			b = append(b, fix|byte(n))
		case n < 1<<8 && small != 0:
			b = append(b, small, byte(n))
		case n < 1<<16:
			b = binary.BigEndian.AppendUint16(append(b, wide), uint16(n))
		default:
			b = binary.BigEndian.AppendUint32(append(b, wide+1), uint32(n))
		}
	}
	switch v := v.(type) {
	case nil:
		return append(b, 0xc0)
	case bool:
		if v {
			return append(b, 0xc3)
		}
		return append(b, 0xc2)
	case int:
		return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(v))
	case string:
		length(len(v), 0xd9, 0xa0, 32, 0xda)
		return append(b, v...)
	case []byte:
		return append(binary.BigEndian.AppendUint32(append(b, 0xc6), uint32(len(v))), v...)
	case []any:
		length(len(v), 0, 0x90, 16, 0xdc)
		for _, e := range v {
			b = pack(b, e)
		}
		return b
	case object:
		length(len(v), 0, 0x80, 16, 0xde)
		for _, m := range v {
			b = pack(pack(b, m.key), m.value)
		}
		return b
	case ext:
		inner := pack(nil, []any{v.module, v.class, v.value, v.method})
		return append(append(binary.BigEndian.AppendUint32(append(b, 0xc9), uint32(len(inner))), 5), inner...)
	}
	panic(fmt.Sprintf("%T", v))
}

func message(class, id, content string, more ...pair) ext {
	kinds := map[string]string{"HumanMessage": "human", "AIMessage": "ai", "ToolMessage": "tool", "SystemMessage": "system"}
	m := object{
		{"content", content}, {"additional_kwargs", object{}}, {"response_metadata", object{}}, {"type", kinds[class]}, {"name", nil}, {"id", id},
	}
	return ext{"langchain_core.messages." + kinds[class], class, slices.Concat(m, more), "model_validate_json"}
}

const graphSchema = `CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
	parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,
	idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));`

// checkpoint is a row of a LangGraph file.
type checkpoint struct {
	thread, namespace, id, parent string
	messages                      []any
	more                          object // other channels
	kind                          string // default msgpack
	raw                           []byte // overrides the other fields
}

func (c checkpoint) ts() string { return "2025-03-01T10:00:0" + c.id[len(c.id)-1:] + ".123456+00:00" }

func execute(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	for _, s := range statements {
		_, err := db.Exec(s)
		require.NoError(t, err)
	}
}

func addCheckpoints(t testing.TB, path string, checkpoints ...checkpoint) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	for _, c := range checkpoints {
		raw := c.raw
		if raw == nil {
			channels := object{{"messages", c.messages}}
			raw = pack(nil, object{
				{"v", 4}, {"ts", c.ts()}, {"id", c.id}, {"channel_values", slices.Concat(channels, c.more)},
				{"channel_versions", object{{"messages", "00000000000000000000000000000002.0.5"}}}, {"versions_seen", object{}},
			})
		}
		kind := c.kind
		if kind == "" {
			kind = "msgpack"
		}
		var parent any
		if c.parent != "" {
			parent = c.parent
		}
		_, err := db.Exec(`INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)`, c.thread, c.namespace, c.id, parent, kind, raw, []byte(`{"source":"loop","step":1}`))
		require.NoError(t, err)
	}
}

// graphFile creates a LangGraph file whose name has special characters for URLs.
func graphFile(t testing.TB, checkpoints ...checkpoint) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "check points#1%20.sqlite")
	execute(t, address(path), graphSchema)
	addCheckpoints(t, address(path), checkpoints...)
	return path
}

// address returns the driver's URL for a path.
func address(path string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}

func headOf(t testing.TB, path string) archive.Head {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return archive.Head{Bytes: b[:min(len(b), archive.HeadSize)]}
}

func allFormats() []archive.Format { return slices.Concat(formats.All(), archives.Formats()) }

func imported(t testing.TB, s *lineage.Store, path string) importer.Report {
	t.Helper()
	r, err := importer.Import(bg, s, archive.Path(path), importer.Options{Formats: allFormats()})
	require.NoError(t, err)
	return r
}

// importedAgain imports an imported file: nothing may be added.
func importedAgain(t testing.TB, s *lineage.Store, path string) {
	t.Helper()
	before, err := s.View().Head(bg)
	require.NoError(t, err)
	r := imported(t, s, path)
	require.Zero(t, r.NewMessages)
	require.Zero(t, r.NewConversations)
	after, err := s.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, before, after, "importing again made commits")
}

// answered is a stored tool result for the call call_1.
const answered = `tool: {"content":"3 °C","tool_call_id":"call_1"}` + "\n"

// requireCallID requires that a tool result names its call.
func requireCallID(t testing.TB, e *lineage.Entry) {
	t.Helper()
	said := messages.Decode(e.Body, e.Type, e.Role)
	require.Len(t, said, 1)
	require.Equal(t, "call_1", said[0].Parts[0].CallID)
	require.Equal(t, "3 °C", said[0].Parts[0].OutputText())
}

// said returns the histories of a thread's branches as text, by name.
func said(t testing.TB, s *lineage.Store, thread string) map[string]string {
	t.Helper()
	th, err := s.FindThread(bg, thread)
	require.NoError(t, err)
	branches, err := th.Branches(bg)
	require.NoError(t, err)
	out := make(map[string]string)
	for _, b := range branches {
		text := ""
		for e, err := range s.History(bg, b.Head, lineage.Window{}) {
			require.NoError(t, err)
			switch e.Kind {
			case lineage.Message:
				text += e.Role + ": " + string(e.Body) + "\n"
			case lineage.Asset:
				text += "file " + e.Filename + ": " + string(e.Body) + "\n"
			}
		}
		name := b.Name
		if b.Active {
			name += "*"
		}
		out[name] = text
	}
	return out
}
