package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
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
		line["timestamp"] = generated{second: rapid.SampledFrom([]int{k, k, k / 2}).Draw(t, "second")}.rfc3339()
	}
	switch rapid.IntRange(0, 9).Draw(t, "parent") {
	case 0:
		line["parentUuid"] = nil
	case 1:
	case 2:
		line["parentUuid"] = rapid.SampledFrom([]string{"gone", fmt.Sprint("u", k), fmt.Sprint("u", rapid.IntRange(0, k).Draw(t, "above"))}).Draw(t, "parent")
	default:
		line["parentUuid"] = fmt.Sprint("u", k-1)
	}
	if rapid.IntRange(0, 9).Draw(t, "side") == 0 {
		line["isSidechain"] = true
		line["agentId"] = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "agent")
	}
	answer := fmt.Sprint("msg", k/3)
	switch rapid.IntRange(min(k, 1)^1, 9).Draw(t, "kind") { // the first line states the id
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
			got, err := c.Info(ctx)
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
			own[fmt.Sprintf("%s %s %d %.8s active=%v", info.SourceID, got.Metadata, len(entries), digest, c.ID() == info.Active)] = digest
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
	at      int  // lines that were read
	reached *int // the most lines that a reader has read
	placed  []importer.Line
	open    *importer.Growing
	o       importer.Options
}

func (f *follower) start(known int) {
	f.stop()
	o := f.o
	next := int64(known + 1)
	o.Placed = func(lines []importer.Line) {
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
	f.open = importer.Grow(f.store, f.name, o)
	if known > 0 {
		f.open.Known(int64(known), func(line int64) []lineage.SpanRef { return spansOf(f.placed[line-1]) })
	}
}

func spansOf(line importer.Line) []lineage.SpanRef {
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
func (f *follower) read(upTo int) (importer.Report, error) {
	r, err := f.open.Read(context.Background(), bytes.NewReader(bytes.Join(f.lines[f.at:upTo], nil)))
	f.at = upTo
	*f.reached = max(*f.reached, upTo)
	return r, err
}

func wholeFile(lines [][]byte) string { return string(bytes.Join(lines, nil)) }

// drawFollower draws a follower of a session.
func drawFollower(t *rapid.T, s *lineage.Store) *follower {
	format := rapid.SampledFrom([]string{"claude-code", "codex"}).Draw(t, "format")
	f := &follower{t: t, store: s, o: importer.Options{Format: format, Outlines: importer.KeepAll()}, reached: new(int)}
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
	from := f.at
	if from == 0 {
		from = *f.reached // a reader that starts reads all that the file has by now
	}
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
	once := func(s *lineage.Store) importer.Report {
		report, err := importer.Import(context.Background(), s, archive.Stream(f.name, strings.NewReader(wholeFile(f.lines))), importer.Options{Format: f.o.Format})
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

// Two readers of one file, each in its own process, store each message once.
func TestTwoGrowing(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s := openIn(t, fmt.Sprintf("%s/%d", dir, n))
		defer s.Close()
		one := drawFollower(t, s)
		engine := &meddling{Engine: write.Of(s).Engine()}
		two := &follower{t: t, store: lineage.New(engine), name: one.name, lines: one.lines, o: one.o, reached: one.reached}
		two.o.Outlines = importer.KeepAll()
		behind := func() bool { return one.open == nil || one.at < len(one.lines) }
		for behind() || two.open == nil || two.at < len(two.lines) {
			if behind() && rapid.Bool().Draw(t, "the first") {
				require.NoError(t, one.step(t, 5))
				continue
			}
			engine.left = rapid.IntRange(0, 3).Draw(t, "before commit")
			engine.meddle = func() {
				if behind() {
					require.NoError(t, one.step(t, 5))
				}
			}
			require.NoError(t, two.step(t, 5))
		}
		one.stop()
		two.stop()
		requireFollowed(t, one, dir, n)
		require.Len(t, two.placed, len(one.placed))
		for i := range one.placed {
			require.Equal(t, spansOf(one.placed[i]), spansOf(two.placed[i]), "line %d", i+1)
		}
	})
}

// A reader that fails between two commits is followed by one that continues, with what was placed or from the start.
func TestGrowingIsInterrupted(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s := openIn(t, fmt.Sprintf("%s/%d", dir, n))
		defer s.Close()
		f := drawFollower(t, s)
		if rapid.Bool().Draw(t, "large") { // several commits in a round
			for i, line := range f.lines {
				f.lines[i] = bytes.Replace(line, []byte(`"hi"`), fmt.Appendf(nil, `"%d %s"`, i, strings.Repeat("x", 30_000)), 1)
			}
		}
		for f.open == nil || f.at < len(f.lines) {
			f.store = lineage.New(&failing{write.Of(s).Engine(), rapid.IntRange(0, 6).Draw(t, "commits")})
			if f.open == nil || rapid.Bool().Draw(t, "restart") {
				f.start(len(f.placed) * rapid.IntRange(0, 1).Draw(t, "known"))
			}
			if err := f.step(t, len(f.lines)); err != nil {
				require.ErrorIs(t, err, errFull)
				_, err := f.open.Read(context.Background(), strings.NewReader("{}\n"))
				require.ErrorIs(t, err, errFull, "it reads no more")
				f.stop()
			}
		}
		f.stop()
		f.store = s
		requireFollowed(t, f, dir, n)
	})
}

// The files of several sessions and their subagents, read by a reader each in any order, become what an import of all
// of them makes.
func TestGrowingFilesOfOneConversation(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s := openIn(t, fmt.Sprintf("%s/%d", dir, n))
		defer s.Close()
		whole := openIn(t, fmt.Sprintf("%s/%d whole", dir, n))
		defer whole.Close()
		ids := regexp.MustCompile(`"u(\d+)"`)
		outlines := importer.KeepAll()
		var all []*follower
		var files []file
		for i, id := range []string{"s", "t"} {
			f := &follower{t: t, store: s, o: importer.Options{Format: "claude-code", Outlines: outlines}, reached: new(int)}
			f.name, f.lines = sessionFile(t, "claude-code", id, 20)
			all = append(all, f)
			agent := &follower{t: t, store: s, o: f.o, reached: new(int), name: fmt.Sprintf("agent-%d.jsonl", i)}
			for k, line := range longSession(0, rapid.IntRange(1, 12).Draw(t, "lines of the agent")) {
				line = bytes.ReplaceAll(line, []byte(`"s"`), fmt.Appendf(nil, "%q", id))
				line = ids.ReplaceAll(line, []byte(`"a$1"`))
				agent.lines = append(agent.lines, bytes.Replace(line, []byte("{"), fmt.Appendf(nil, `{"agentId":"own%d","n":%d,`, i, k), 1))
			}
			all = append(all, agent)
		}
		for _, f := range all {
			files = append(files, file{f.name, []byte(wholeFile(f.lines))})
		}
		for open := slices.Clone(all); len(open) > 0; {
			i := rapid.IntRange(0, len(open)-1).Draw(t, "file")
			require.NoError(t, open[i].step(t, 8))
			if open[i].at == len(open[i].lines) {
				open[i].stop()
				open = slices.Delete(open, i, i+1)
			}
		}
		_, err := importer.Import(context.Background(), whole, archive.Stream("z", bytes.NewReader(zipped(t, files...))), importer.Options{Format: "claude-code"})
		require.NoError(t, err)
		require.Equal(t, heads(t, whole), heads(t, s))
		for _, f := range all {
			require.Len(t, f.placed, len(f.lines), f.name)
		}
	})
}

// People continue, rename and delete what a reader brings in, between its rounds.
func TestGrowingBesidesPeople(t *testing.T) {
	ctx := context.Background()
	lines := longSession(0, 10)
	open := func(t *testing.T) (*follower, *lineage.Thread, *lineage.Context) {
		f := &follower{t: t, store: storetest.New(t), name: "s.jsonl", lines: lines, reached: new(int)}
		f.start(0)
		t.Cleanup(f.stop)
		_, err := f.read(4)
		require.NoError(t, err)
		thread, err := f.store.FindThread(ctx, "s")
		require.NoError(t, err)
		main, err := thread.BranchContext(ctx, lineage.MainBranch)
		require.NoError(t, err)
		return f, thread, main
	}
	text := func(t *testing.T, c *lineage.Context) (all []string) {
		entries, err := c.All(ctx)
		require.NoError(t, err)
		for _, e := range entries {
			var message struct{ Content string }
			if json.Unmarshal(e.Body, &message) != nil {
				message.Content = e.Excerpt()
			}
			all = append(all, strings.TrimPrefix(message.Content, "message "))
		}
		return all
	}
	t.Run("continued", func(t *testing.T) {
		f, thread, main := open(t)
		_, err := main.Extend(ctx, lineage.User("mine"))
		require.NoError(t, err)
		for _, to := range []int{6, 7} {
			_, err = f.read(to)
			require.NoError(t, err)
		}
		require.Equal(t, []string{"0", "1", "2", "3", "mine"}, text(t, main))
		active, err := thread.Active(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, text(t, active))
		branches, err := thread.Branches(ctx)
		require.NoError(t, err)
		require.Len(t, branches, 2)
	})
	t.Run("renamed", func(t *testing.T) {
		f, thread, main := open(t)
		require.NoError(t, thread.NameBranch(ctx, "theirs", main))
		_, err := f.read(7)
		require.NoError(t, err)
		require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, text(t, main))
		branches, err := thread.Branches(ctx)
		require.NoError(t, err)
		require.Len(t, branches, 1)
		require.Equal(t, "theirs", branches[0].Name)
	})
	t.Run("deleted", func(t *testing.T) {
		f, thread, _ := open(t)
		require.NoError(t, thread.Delete(ctx))
		placed := len(f.placed)
		report, err := f.read(7)
		require.ErrorIs(t, err, importer.ErrDeleted)
		require.ErrorIs(t, err, lineage.ErrConflict)
		require.Zero(t, report.NewMessages)
		require.Len(t, f.placed, placed)
		f.start(placed) // the program is started again
		_, err = f.read(7)
		require.ErrorIs(t, err, importer.ErrDeleted)
		_, err = f.store.FindThread(ctx, "s")
		require.ErrorIs(t, err, lineage.ErrNotFound)
	})
	t.Run("deleted in a round", func(t *testing.T) {
		var large [][]byte
		for _, line := range longSession(0, 130) { // several pauses, a commit each
			large = append(large, bytes.Replace(line, []byte(`"message `), []byte(`"`+strings.Repeat("x", 100_000)), 1))
		}
		for left := 2; ; left++ {
			s := storetest.New(t)
			engine := &meddling{Engine: write.Of(s).Engine(), left: left}
			f := &follower{t: t, store: lineage.New(engine), name: "s.jsonl", lines: large, reached: new(int), o: importer.Options{Format: "claude-code"}}
			placed := 0
			engine.meddle = func() {
				placed = len(f.placed)
				thread, err := s.FindThread(ctx, "s")
				require.NoError(t, err)
				require.NoError(t, thread.Delete(ctx))
			}
			f.start(0)
			_, err := f.read(len(large))
			f.stop()
			if engine.left > 0 {
				require.NoError(t, err)
				require.Greater(t, left, 3)
				return
			}
			require.ErrorIs(t, err, importer.ErrDeleted, "before commit %d", left)
			require.Equal(t, placed, len(f.placed))
		}
	})
	t.Run("collected", func(t *testing.T) {
		f, thread, main := open(t)
		first, err := main.All(ctx)
		require.NoError(t, err)
		require.NoError(t, main.MoveTo(ctx, first[1].Span, "no"))
		_, err = f.store.Collect(ctx, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
		require.NoError(t, err)
		f.start(len(f.placed))
		_, err = f.read(7)
		require.ErrorIs(t, err, importer.ErrStale)
		f.placed = nil
		f.start(0)
		_, err = f.read(7)
		require.NoError(t, err)
		active, err := thread.Active(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, text(t, active))
	})
}

// What a reader cannot read, or cannot read as it grows, is an error, and lines are kept until the session has an id.
func TestGrowingOddInputs(t *testing.T) {
	ctx := context.Background()
	message := `{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"a"}}` + "\n"
	summary := `{"type":"summary","summary":"t","leafUuid":"1"}` + "\n"
	grow := func(t *testing.T, name string, o importer.Options) (read func(string) (importer.Report, error), g *importer.Growing, s *lineage.Store) {
		s = storetest.New(t)
		g = importer.Grow(s, name, o)
		t.Cleanup(g.Close)
		return func(text string) (importer.Report, error) { return g.Read(ctx, strings.NewReader(text)) }, g, s
	}
	t.Run("unknown", func(t *testing.T) {
		read, _, _ := grow(t, "s.jsonl", importer.Options{})
		_, err := read("")
		require.NoError(t, err)
		_, err = read("notes\n")
		require.ErrorIs(t, err, archive.ErrUnknownFormat)
	})
	t.Run("no lines", func(t *testing.T) {
		read, _, _ := grow(t, "s.jsonl", importer.Options{})
		_, err := read(oneConversation)
		require.ErrorIs(t, err, archive.ErrCannotGrow)
	})
	t.Run("one object", func(t *testing.T) {
		read, _, s := grow(t, "s.json", importer.Options{})
		_, err := read(`{"loglines":[` + strings.TrimSpace(message) + `]}`)
		require.NoError(t, err)
		_, err = s.FindThread(ctx, "s")
		require.NoError(t, err)
		_, err = read(message)
		require.ErrorIs(t, err, archive.ErrCannotGrow)
	})
	t.Run("ignores pauses", func(t *testing.T) {
		o := importer.Options{Formats: []archive.Format{{
			Name: "rash", Grows: true, Detect: func(archive.Head) bool { return true },
			Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
				return func(yield func(*archive.Conversation, error) bool) {
					c := &archive.Conversation{SourceID: "c"}
					for item := range in.Lines(ctx) {
						if !item.Pause {
							c.Nodes = append(c.Nodes, archive.Node{Role: "user", Body: item.Raw})
						}
					}
					yield(c, nil)
				}
			},
		}}}
		read, _, _ := grow(t, "c", o)
		report, err := read("a\nb\n")
		require.NoError(t, err)
		require.EqualValues(t, 2, report.NewMessages)
		_, err = read("c\n")
		require.ErrorIs(t, err, archive.ErrCannotGrow)
	})
	t.Run("lines that are JSON", func(t *testing.T) {
		var valid []bool
		read, _, _ := grow(t, "s.jsonl", importer.Options{Placed: func(placed []importer.Line) {
			for _, l := range placed {
				valid = append(valid, l.Valid)
			}
		}})
		_, err := read(message + "{\"broken\n" + "\n 7 \n" + summary)
		require.NoError(t, err)
		require.Equal(t, []bool{true, false, false, true, true}, valid)
	})
	t.Run("without an id", func(t *testing.T) {
		var lines []importer.Line
		o := importer.Options{Placed: func(placed []importer.Line) { lines = append(lines, placed...) }, Metadata: []byte(`{"machine":"m"}`)}
		read, g, s := grow(t, "s.jsonl", o)
		_, err := read(summary)
		require.NoError(t, err)
		require.Empty(t, lines)
		require.Empty(t, g.Session())
		_, err = read(message)
		require.NoError(t, err)
		require.Equal(t, "s", g.Session())
		require.Len(t, lines, 2)
		require.Len(t, lines[0].Nodes, 1)
		thread, err := s.FindThread(ctx, "s")
		require.NoError(t, err)
		info, err := thread.Info(ctx)
		require.NoError(t, err)
		require.Equal(t, "t", info.Title)
		require.Contains(t, string(info.Metadata), `"machine":"m"`)
		// An import that knows nothing of the machine leaves it there.
		importText(t, s, "s.jsonl", summary+message+strings.Replace(message, `"1"`, `"2"`, 1), importer.Options{})
		again, err := thread.Info(ctx)
		require.NoError(t, err)
		require.Contains(t, string(again.Metadata), `"machine":"m"`)
	})
	t.Run("never an id", func(t *testing.T) {
		for _, taken := range []bool{false, true} {
			read, g, _ := grow(t, "s.jsonl", importer.Options{Limits: archive.Limits{Item: 1000}, Placed: func([]importer.Line) {}})
			var err error
			for range 30 {
				if _, err = read(summary); err != nil {
					break
				}
				if taken {
					require.Len(t, g.Unplaced(), 1)
				}
			}
			var limit *archive.LimitError
			require.ErrorAs(t, err, &limit)
			require.Equal(t, "item", limit.Limit)
		}
	})
	t.Run("an id after the lines were taken", func(t *testing.T) {
		record := `{"type":"permission-mode","permissionMode":"plan"}` + "\n"
		read, g, s := grow(t, "s.jsonl", importer.Options{Placed: func([]importer.Line) {}})
		_, err := read(summary + record)
		require.NoError(t, err)
		require.Len(t, g.Unplaced(), 2)
		_, err = read(message)
		require.ErrorIs(t, err, importer.ErrStale)
		_, err = s.FindThread(ctx, "s")
		require.ErrorIs(t, err, lineage.ErrNotFound)
		again := importer.Grow(s, "s.jsonl", importer.Options{Placed: func([]importer.Line) {}})
		defer again.Close()
		again.Known(2, func(int64) []lineage.SpanRef { return nil })
		_, err = again.Read(ctx, strings.NewReader(summary+record+message))
		require.ErrorIs(t, err, importer.ErrStale)
	})
	t.Run("too long a line", func(t *testing.T) {
		var lines []importer.Line
		read, _, _ := grow(t, "s.jsonl", importer.Options{Limits: archive.Limits{Item: 1000}, Placed: func(placed []importer.Line) { lines = append(lines, placed...) }})
		report, err := read(message + strings.Repeat("x", 2000) + "\n" + strings.Replace(message, `"1"`, `"2"`, 1))
		require.NoError(t, err)
		require.EqualValues(t, 1, report.SkippedCount)
		require.EqualValues(t, 2, report.NewMessages)
		require.Len(t, lines, 3)
		require.Nil(t, lines[1].Raw)
		require.Empty(t, lines[1].Nodes)
	})
	t.Run("fails", func(t *testing.T) {
		read, g, s := grow(t, "s.jsonl", importer.Options{})
		_, err := read(message)
		require.NoError(t, err)
		broken := errors.New("broken")
		_, err = g.Read(ctx, io.MultiReader(strings.NewReader(strings.Replace(message, `"1"`, `"2"`, 1)+`{"half`), iotest.ErrReader(broken)))
		require.ErrorIs(t, err, broken)
		_, err = read(message)
		require.ErrorIs(t, err, broken)
		requireSound(t, s)
	})
	t.Run("cancelled", func(t *testing.T) {
		_, g, _ := grow(t, "s.jsonl", importer.Options{Format: "claude-code"})
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		_, err := g.Read(cancelled, strings.NewReader(message))
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("closed", func(t *testing.T) {
		read, g, _ := grow(t, "s.jsonl", importer.Options{})
		_, err := read(message)
		require.NoError(t, err)
		g.Close()
		_, err = read(message)
		require.Error(t, err)
	})
	t.Run("metadata that is no object", func(t *testing.T) {
		read, _, _ := grow(t, "s.jsonl", importer.Options{Metadata: []byte("7")})
		_, err := read(message)
		require.ErrorIs(t, err, archive.ErrMalformed)
	})
}

// Lines without any message are given out in pieces, so that they take bounded memory.
func TestGrowingManyBlankLines(t *testing.T) {
	most, all := 0, 0
	g := importer.Grow(storetest.New(t), "s.jsonl", importer.Options{Format: "claude-code", Placed: func(lines []importer.Line) { most, all = max(most, len(lines)), all+len(lines) }})
	defer g.Close()
	_, err := g.Read(context.Background(), strings.NewReader(string(longSession(0, 1)[0])+strings.Repeat("\n", 150_000)))
	require.NoError(t, err)
	require.Equal(t, 150_001, all)
	require.Less(t, most, 100_000)
}

// Each sample of a format that grows is stored alike if it is read line by line.
func TestSamplesGrow(t *testing.T) {
	inputs := make(map[string]int)
	err := filepath.WalkDir("../testdata", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		f := &follower{t: t, store: storetest.New(t), name: filepath.ToSlash(path), lines: slices.Collect(bytes.Lines(b)), reached: new(int)}
		f.start(0)
		defer f.stop()
		report, err := f.read(min(10, len(f.lines)))
		if errors.Is(err, archive.ErrCannotGrow) {
			return nil
		}
		require.NoError(t, err, path)
		format := report.Formats[0]
		for f.at < len(f.lines) {
			if f.at == 20 { // started again
				f.start(len(f.placed))
				_, err = f.read(20)
				require.NoError(t, err, path)
			}
			_, err := f.read(f.at + 1)
			require.NoError(t, err, path)
		}
		if f.open.Session() == "" {
			return nil
		}
		require.Len(t, f.placed, len(f.lines), path)
		whole := storetest.New(t)
		_, err = importer.Import(t.Context(), whole, archive.Stream(f.name, bytes.NewReader(b)), importer.Options{})
		require.NoError(t, err)
		require.Equal(t, heads(t, whole), heads(t, f.store), path)
		inputs[format]++
		return nil
	})
	require.NoError(t, err)
	for _, format := range formats.All() {
		require.Equal(t, format.Grows, inputs[format.Name] > 0, format.Name)
	}
	t.Log(inputs)
}

// longSession returns lines of a session with a subagent, records and a branch.
func longSession(from, to int) [][]byte {
	var lines [][]byte
	for k := from; k < to; k++ {
		line := object{"sessionId": "s", "uuid": fmt.Sprint("u", k), "parentUuid": fmt.Sprint("u", k-1), "timestamp": generated{second: k}.rfc3339(), "type": "user",
			"message": object{"role": "user", "content": fmt.Sprint("message ", k)}}
		switch {
		case k == 0:
			line["parentUuid"] = nil
		case k%10 == 8:
			line["type"] = "progress"
		case k%10 == 9:
			line["isSidechain"], line["agentId"], line["parentUuid"] = true, "x", fmt.Sprint("u", max(k-10, 0))
		case k%10 == 0:
			line["parentUuid"] = fmt.Sprint("u", k-2)
		}
		b, _ := json.Marshal(line)
		lines = append(lines, append(b, '\n'))
	}
	return lines
}

// A round costs what its lines cost: the messages before are not read again, neither by a reader that is open nor by
// one that is opened with Known.
func TestGrowingCostsWhatIsNew(t *testing.T) {
	costs := make(map[string][]int64)
	for _, size := range []int{1_000, 8_000} {
		s := storetest.New(t)
		counting := backendtest.NewCounting(write.Of(s).Engine())
		f := &follower{t: t, store: lineage.New(counting), name: "s.jsonl", lines: longSession(0, size+8), reached: new(int)}
		read := func(to int) {
			report, err := f.read(to)
			require.NoError(t, err)
			require.Empty(t, report.Repaired)
			require.Empty(t, report.Skipped)
		}
		f.start(0)
		read(size)
		for k := range 2 {
			costs["open"] = append(costs["open"], counting.Cost(func() { read(size + 3*k + 3) }))
		}
		f.start(size + 6)
		costs["again"] = append(costs["again"], counting.Cost(func() { read(size + 8) }))
		costs["nothing"] = append(costs["nothing"], counting.Cost(func() { read(size + 8) }))
		f.stop()
	}
	t.Log(costs)
	for name, costs := range costs {
		require.LessOrEqual(t, slices.Max(costs), slices.Min(costs)+20, "%s %v", name, costs)
		require.Less(t, slices.Max(costs), int64(150), name)
	}
}

// Reading the file of a subagent costs what is in it, however many files the session has.
func TestManyFilesOfOneThread(t *testing.T) {
	s := storetest.New(t)
	counting := backendtest.NewCounting(write.Of(s).Engine())
	o := importer.Options{Format: "claude-code", Outlines: importer.NewOutlines()}
	file := func(k int) int64 {
		var lines bytes.Buffer
		for i := range 4 {
			line, _ := json.Marshal(object{"sessionId": "s", "isSidechain": true, "agentId": fmt.Sprint("x", k), "uuid": fmt.Sprintf("%d-%d", k, i), "parentUuid": fmt.Sprintf("%d-%d", k, i-1),
				"timestamp": generated{second: k}.rfc3339(), "type": "user", "message": object{"role": "user", "content": fmt.Sprintf("%d %d", k, i)}})
			lines.Write(append(line, '\n'))
		}
		return counting.Cost(func() {
			g := importer.Grow(lineage.New(counting), fmt.Sprintf("agent-%d.jsonl", k), o)
			defer g.Close()
			report, err := g.Read(t.Context(), &lines)
			require.NoError(t, err)
			require.EqualValues(t, 4, report.NewMessages)
			// Somebody else writes meanwhile.
			_, err = s.CreateThread(t.Context(), lineage.ThreadOptions{})
			require.NoError(t, err)
		})
	}
	var costs []int64
	for k := range 1_000 {
		if cost := file(k); k == 200 || k == 999 {
			costs = append(costs, cost)
		}
	}
	t.Log(costs)
	require.LessOrEqual(t, costs[1], costs[0]+5)
	require.Less(t, costs[1], int64(100))
}

// Starting again on a session of which all but some lines are known.
func BenchmarkGrowingAgain(b *testing.B) {
	size := campaign.BenchMessages(b, 100_000)
	f := &follower{t: b, store: storetest.New(b), name: "s.jsonl", lines: longSession(0, size), reached: new(int)}
	f.start(0)
	_, err := f.read(size)
	require.NoError(b, err)
	defer f.stop()
	text := bytes.Join(f.lines, nil)
	b.SetBytes(int64(len(text)))
	for name, known := range map[string]int{"known": size, "unknown": 0} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g := importer.Grow(f.store, "s.jsonl", importer.Options{Format: "claude-code"})
				if known > 0 {
					g.Known(int64(known), func(line int64) []lineage.SpanRef { return spansOf(f.placed[line-1]) })
				}
				_, err := g.Read(context.Background(), bytes.NewReader(text))
				require.NoError(b, err)
				g.Close()
			}
		})
	}
}

func BenchmarkGrowing(b *testing.B) {
	for _, size := range []int{1_000, campaign.BenchMessages(b, 100_000)} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f := &follower{t: b, store: storetest.New(b), name: "s.jsonl"}
			g := importer.Grow(f.store, "s.jsonl", importer.Options{Format: "claude-code", Placed: func([]importer.Line) {}})
			defer g.Close()
			read := func(lines [][]byte) {
				_, err := g.Read(context.Background(), bytes.NewReader(bytes.Join(lines, nil)))
				require.NoError(b, err)
			}
			read(longSession(0, size))
			b.ReportAllocs()
			for b.Loop() {
				read(longSession(size, size+3))
				size += 3
			}
		})
	}
}
