package archive_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/structure"
)

// sessionFile draws the file of a session, by lines with their ends.
func sessionFile(t *rapid.T, format, id string, most int) (name string, lines [][]byte) {
	number := 0
	shape := map[string]func(*rapid.T, string, int) string{"claude-code": claudeLine, "codex": codexLine}[format]
	end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
	for k := range rapid.IntRange(1, most).Draw(t, "lines") {
		line := shape(t, id, k)
		if k > 0 && rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			line = rapid.SampledFrom([]string{"", " ", "{", "7", `{"type":"unknown"}`, "\x00\xff", `{"type":"user","message":{"role":"user"`}).Draw(t, "line")
		}
		if k == 0 && rapid.IntRange(0, 3).Draw(t, "mark") == 0 {
			line = "\xef\xbb\xbf" + line
		}
		lines = append(lines, []byte(line+end))
		number++
	}
	if rapid.IntRange(0, 3).Draw(t, "open") == 0 {
		last := &lines[number-1]
		*last = bytes.TrimSuffix(*last, []byte(end))
		if len(*last) == 0 {
			*last = []byte(" ")
		}
	}
	return id + ".jsonl", lines
}

func claudeLine(t *rapid.T, id string, k int) string {
	line := object{"sessionId": id, "uuid": fmt.Sprint("u", k), "cwd": "/w"}
	text := rapid.SampledFrom([]string{"hi", "yes", "ok", strings.Repeat("long ", 30)}).Draw(t, "text")
	if rapid.IntRange(0, 9).Draw(t, "has a time") > 0 {
		line["timestamp"] = generated{second: k}.rfc3339()
	}
	switch rapid.IntRange(0, 9).Draw(t, "parent") {
	case 0:
		line["parentUuid"] = nil
	case 1:
	case 2:
		line["parentUuid"] = rapid.SampledFrom([]string{"gone", fmt.Sprint("u", rapid.IntRange(0, max(k-1, 0)).Draw(t, "above"))}).Draw(t, "parent")
	default:
		line["parentUuid"] = fmt.Sprint("u", k-1)
	}
	if rapid.IntRange(0, 9).Draw(t, "side") == 0 {
		line["isSidechain"] = true
		line["agentId"] = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "agent")
	}
	answer := fmt.Sprint("msg", k/3)
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		line = object{"type": "summary", "summary": "title " + text[:2] + fmt.Sprint(k), "leafUuid": "u0"}
	case 1:
		line["type"], line["data"] = "progress", text
	case 2:
		line["type"], line["content"] = "system", text
	case 3:
		line["type"], line["message"] = "user", object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": answer, "content": text}}}
	case 4, 5, 6:
		line["type"], line["message"] = "assistant", object{"role": "assistant", "id": answer, "model": "m", "content": []object{{"type": "text", "text": text}}}
	default:
		line["type"], line["message"] = "user", object{"role": "user", "content": text}
	}
	b, _ := json.Marshal(line)
	return string(b)
}

func codexLine(t *rapid.T, id string, k int) string {
	line := object{"timestamp": generated{second: k}.rfc3339()}
	text := rapid.SampledFrom([]string{"hi", "yes", "ok"}).Draw(t, "text")
	said := object{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": text}}}
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case k == 0:
		line["type"], line["payload"] = "session_meta", object{"id": id, "cwd": "/w", "timestamp": line["timestamp"]}
	case kind == 0:
		line["type"], line["payload"] = "turn_context", object{"model": text}
	case kind == 1:
		line["type"], line["payload"] = "event_msg", object{"type": text}
	case kind == 2:
		line["type"], line["payload"] = "compacted", object{"message": text, "replacement_history": slices.Repeat([]object{said}, rapid.IntRange(0, 3).Draw(t, "replaced"))}
	case kind == 3:
		line["type"], line["payload"] = "response_item", object{"type": "function_call", "call_id": fmt.Sprint(k), "name": "f", "arguments": "{}"}
	default:
		line["type"], line["payload"] = "response_item", said
	}
	b, _ := json.Marshal(line)
	return string(b)
}

// heads returns what is said of all threads and where their contexts lead to, without names, times, and contexts that
// lead to a part of what another one does.
func heads(t require.TestingT, s *lineage.Store) []string {
	ctx := context.Background()
	var out []string
	for thread, err := range s.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info, err := thread.Info(ctx)
		require.NoError(t, err)
		about := make(map[string]json.RawMessage)
		_ = json.Unmarshal(info.Metadata, &about)
		delete(about, "_archive")
		metadata, err := json.Marshal(about)
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("thread %q %q %q %s", info.SourceID, info.Title, info.UserID, metadata))
		inner := make(map[structure.Digest]bool)
		own := make(map[string]structure.Digest)
		for c, err := range thread.Contexts(ctx) {
			require.NoError(t, err)
			is, err := c.Info(ctx)
			require.NoError(t, err)
			digest, err := c.Digest(ctx)
			require.NoError(t, err)
			entries, err := c.All(ctx)
			require.NoError(t, err)
			for _, e := range entries {
				at, err := s.View().Digest(ctx, e.Span)
				require.NoError(t, err)
				inner[at] = inner[at] || at != digest
			}
			own[fmt.Sprintf("%s %s %d %.8s active=%v", info.SourceID, is.Metadata, len(entries), digest, c.ID() == info.Active)] = digest
		}
		for about, digest := range own {
			if !inner[digest] || strings.HasSuffix(about, "active=true") {
				out = append(out, about)
			}
		}
	}
	slices.Sort(out)
	return out
}

// follower follows one input as a program does that is stopped and started again.
type follower struct {
	t       require.TestingT
	store   *lineage.Store
	name    string
	lines   [][]byte
	at      int // lines that were read
	reached int // the most
	placed  []archive.Line
	open    *archive.Growing
	o       archive.Options
}

func (f *follower) start(known int) {
	f.stop()
	o := f.o
	next := int64(known + 1)
	o.Placed = func(lines []archive.Line) {
		for _, line := range lines {
			require.Equal(f.t, next, line.Number)
			require.Equal(f.t, f.lines[next-1], line.Raw)
			for _, n := range line.Nodes {
				require.False(f.t, n.Span.IsZero())
				require.Equal(f.t, line.Number, n.At.Line)
			}
			if next <= int64(len(f.placed)) {
				require.Equal(f.t, spansOf(f.placed[next-1]), spansOf(line), "line %d", next)
			} else {
				f.placed = append(f.placed, line)
			}
			next++
		}
	}
	f.at = 0
	f.open = archive.Grow(f.store, f.name, o)
	if known > 0 {
		f.open.Known(int64(known), func(line int64) []lineage.SpanRef { return spansOf(f.placed[line-1]) })
	}
}

func spansOf(line archive.Line) []lineage.SpanRef {
	out := []lineage.SpanRef{}
	for _, n := range line.Nodes {
		out = append(out, n.Span)
	}
	return out
}

func (f *follower) stop() {
	if f.open != nil {
		f.open.Close()
	}
	f.open = nil
}

// read reads up to a line.
func (f *follower) read(upTo int) (archive.Report, error) {
	r, err := f.open.Read(context.Background(), bytes.NewReader(bytes.Join(f.lines[f.at:upTo], nil)))
	f.at = upTo
	f.reached = max(f.reached, upTo)
	return r, err
}

func wholeFile(lines [][]byte) string { return string(bytes.Join(lines, nil)) }

// drawFollower draws a follower of a session.
func drawFollower(t *rapid.T, s *lineage.Store) *follower {
	format := rapid.SampledFrom([]string{"claude-code", "codex"}).Draw(t, "format")
	f := &follower{t: t, store: s, o: archive.Options{Format: format}}
	f.name, f.lines = sessionFile(t, format, "s", 40)
	return f
}

// step reads some lines, or stops and starts again.
func (f *follower) step(t *rapid.T, most int) error {
	if f.open == nil || rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
		known := 0
		if len(f.placed) > 0 && rapid.Bool().Draw(t, "known") {
			known = rapid.IntRange(0, len(f.placed)).Draw(t, "known lines")
		}
		t.Logf("start, known %d", known)
		f.start(known)
	}
	from := max(f.at, f.reached) // a reader that starts again reads all that the file has by now
	to := rapid.IntRange(from, min(from+most, len(f.lines))).Draw(t, "to")
	if !bytes.HasSuffix(bytes.Join(f.lines[:to], nil), []byte("\n")) {
		to = len(f.lines)
	}
	t.Logf("lines %d to %d", f.at+1, to)
	_, err := f.read(to)
	return err
}

// A session that is read in any pieces, by readers that are closed and opened again, is stored like its whole file.
func TestGrowingIsTheWhole(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		parts := openIn(t, fmt.Sprintf("%s/%d parts", dir, n))
		defer parts.Close()
		f := drawFollower(t, parts)
		for i, line := range f.lines {
			t.Logf("%d %s", i+1, line)
		}
		most := rapid.SampledFrom([]int{1, 3, len(f.lines)}).Draw(t, "most")
		for f.open == nil || f.at < len(f.lines) {
			require.NoError(t, f.step(t, most))
			if rapid.IntRange(0, 9).Draw(t, "collect") == 0 {
				counts(t, parts)
			}
		}
		f.stop()
		requireFollowed(t, f, dir, n)
	})
}

// requireFollowed requires that the store is that of an import of the whole file, and that all lines were placed.
func requireFollowed(t *rapid.T, f *follower, dir string, n int) {
	whole := openIn(t, fmt.Sprintf("%s/%d whole", dir, n))
	defer whole.Close()
	once := func(s *lineage.Store) archive.Report {
		report, err := archive.Import(context.Background(), s, archive.Stream(f.name, strings.NewReader(wholeFile(f.lines))), archive.Options{Format: f.o.Format})
		require.NoError(t, err)
		return report
	}
	once(whole)
	require.Equal(t, heads(t, whole), heads(t, f.store))
	stats, err := whole.Stats(context.Background())
	require.NoError(t, err)
	if stats.Spans > 0 {
		require.Len(t, f.placed, len(f.lines))
	}
	again := once(f.store)
	require.Zero(t, again.NewMessages)
	require.Zero(t, again.NewConversations)
	require.Equal(t, heads(t, whole), heads(t, f.store))
	a, b := counts(t, whole), counts(t, f.store)
	require.Equal(t, a.Spans, b.Spans)
	require.Equal(t, a.Blocks, b.Blocks)
	for finding, err := range f.store.Verify(context.Background(), lineage.VerifyOptions{}) {
		require.NoError(t, err)
		require.Fail(t, "finding", "%+v", finding)
	}
}
