//test:race

package follow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func TestMain(m *testing.M) {
	campaign.Checks(15) // each opens stores and follows files
	saveTime = hangs    // the machine may be slow
	goleak.VerifyTestMain(m)
}

func memory(t testing.TB) *lineage.Store {
	store, err := lineage.OpenMemory(t.Context(), lineage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// once runs once, and returns the events.
func once(t testing.TB, store *lineage.Store, o Options) (events []Event) {
	t.Helper()
	settle(t, o.Environment.Home)
	o.Once = true
	o.Events = func(e Event) { events = append(events, e) }
	require.NoError(t, Run(t.Context(), store, o))
	return events
}

// settle lets files be old enough for their times to be relied on.
func settle(t testing.TB, dir string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if at := time.Now().Add(-settleTime); err == nil && info.ModTime().After(at) {
			err = os.Chtimes(path, at, at)
		}
		return err
	}))
}

func of(events []Event, kind Kind) (some []Event) {
	for _, e := range events {
		if e.Kind == kind {
			some = append(some, e)
		}
	}
	return some
}

func TestOnceReadsWhatIsNew(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, line(id, "a", "", "user", "one")+line(id, "b", "a", "assistant", "two"))
	events := once(t, store, h.options())
	read := of(events, Read)
	require.Len(t, read, 1)
	require.Equal(t, int64(2), read[0].Messages)
	require.Equal(t, []string{id}, read[0].Conversations)
	require.Equal(t, []string{"one", "two"}, texts(t, store, id))

	require.Empty(t, of(once(t, store, h.options()), Read), "an unchanged file is not read")

	h.append(t, path, line(id, "c", "b", "user", "three"))
	read = of(once(t, store, h.options()), Read)
	require.Len(t, read, 1)
	require.Equal(t, int64(1), read[0].Messages)
	require.Equal(t, []string{"one", "two", "three"}, texts(t, store, id))

	thread, err := store.FindThread(t.Context(), id)
	require.NoError(t, err)
	info, err := thread.Info(t.Context())
	require.NoError(t, err)
	var meta struct {
		Agent   string `json:"agent"`
		Machine string `json:"machine"`
	}
	require.NoError(t, json.Unmarshal(info.Metadata, &meta))
	require.Equal(t, "a machine", meta.Machine)
}

// A file that changed just before it was read is not read again by the next run, unless it has changed.
func TestOnceReadsNewFilesOnce(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	now := func(text string) (read []Event) {
		h.write(t, path, text)
		o := h.options()
		o.Once, o.Events = true, func(e Event) { read = append(read, e) }
		require.NoError(t, Run(t.Context(), store, o))
		require.Len(t, of(read, Read), 1)
		return of(once(t, store, h.options()), Read)
	}
	lines := line(id, "a", "", "user", "one")
	require.Empty(t, now(lines))
	require.Empty(t, now(line(id, "a", "", "user", "two")), "as many bytes as before")
	require.Empty(t, now(lines+line(id, "b", "a", "assistant", "three")))
}

func TestOtherMachineReadsForItself(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	once(t, store, h.options())
	o := h.options()
	o.Machine.ID = strings.Repeat("cd", machineSize)
	read := of(once(t, store, o), Read)
	require.Len(t, read, 1)
	require.Zero(t, read[0].Messages, "the store has them")
}

// Sessions are found where other versions of their agents keep them, and so are those of subagents.
func TestFoldersOfVersions(t *testing.T) {
	id, name := session(1)
	for path, text := range map[string]string{
		".config/claude/projects/-work/" + name: line(id, "a", "", "user", "one"),
		".copilot/session-state/" + id + ".jsonl": `{"type":"session.start","data":{"sessionId":"` + id + `","context":{"cwd":"/src/app"}},"id":"1","timestamp":"2025-11-01T10:00:00Z","parentId":null}` + "\n" +
			`{"type":"user.message","data":{"content":"one"},"id":"2","timestamp":"2025-11-01T10:00:01Z","parentId":"1"}` + "\n",
		".gemini/tmp/p/chats/of/" + id + ".jsonl": `{"sessionId":"` + id + `","projectHash":"p","startTime":"2026-05-01T10:00:00Z","lastUpdated":"2026-05-01T10:00:00Z","kind":"subagent"}` + "\n" +
			`{"id":"m","timestamp":"2026-05-01T10:00:01Z","type":"user","content":"one"}` + "\n",
		".copilot/history-session-state/session_" + id + "_1760259600000.json": "{\n  \"sessionId\": \"" + id + "\",\n  \"startTime\": \"2025-10-12T09:00:00.000Z\",\n" +
			"  \"chatMessages\": [\n    {\n      \"role\": \"user\",\n      \"content\": \"one\"\n    }\n  ],\n  \"timeline\": []\n}",
		".codex/sessions/rollout-2025-04-20-" + id + ".json": "{\n  \"session\": {\n    \"timestamp\": \"2025-04-20T10:00:00.000Z\",\n    \"id\": \"" + id + "\"\n  },\n" +
			"  \"items\": [\n    {\n      \"type\": \"message\",\n      \"role\": \"user\",\n      \"content\": \"one\"\n    }\n  ]\n}",
	} {
		t.Run(path, func(t *testing.T) {
			h, store := newHome(t), memory(t)
			h.write(t, h.path(path), text)
			once(t, store, h.options())
			requireExport(t, store, h, h.path(path), text)
			require.Equal(t, []string{"one"}, texts(t, store, id))
			listed, err := List(t.Context(), store, h.options())
			require.NoError(t, err)
			i := slices.IndexFunc(listed, func(l Listing) bool { return l.Files > 0 })
			require.GreaterOrEqual(t, i, 0)
			require.Empty(t, listed[i].Problems)
			require.Zero(t, listed[i].Unread)
		})
	}
	h, store := newHome(t), memory(t)
	h.write(t, h.path(".config/claude/projects/-work", name), line(id, "a", "", "user", "one"))
	o := h.options()
	o.Environment.Getenv = func(variable string) string {
		return map[string]string{"CLAUDE_CONFIG_DIR": h.path(".claude-work")}[variable]
	}
	require.Empty(t, of(once(t, store, o), Read), "another folder was named")
}

// A later version of Copilot CLI takes a session of the first versions over into an event, and removes its file.
func TestSessionsThatCopilotTookOver(t *testing.T) {
	id, _ := session(1)
	document := func(said int) string {
		messages := []json.RawMessage{[]byte(`{"role":"system","content":"Be brief."}`)}
		for n := range said {
			call := fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"bash","arguments":"{}"}}]}`, n)
			messages = append(messages, fmt.Appendf(nil, `{"role":"user","content":"said %d"}`, n), call, fmt.Appendf(nil, `{"role":"tool","tool_call_id":"c%d","content":"done"}`, n))
		}
		text, err := json.MarshalIndent(map[string]any{"sessionId": id, "startTime": "2025-10-12T09:00:00.000Z", "chatMessages": messages, "timeline": []any{
			map[string]any{"id": "t", "timestamp": "2025-10-12T09:00:01.000Z", "type": "info", "text": "Welcome"},
		}}, "", "  ")
		require.NoError(t, err)
		return string(text)
	}
	event := func(n int, kind, parent string, data any) string {
		text, err := json.Marshal(map[string]any{"type": kind, "id": fmt.Sprint("e", n), "parentId": parent, "timestamp": fmt.Sprintf("2025-11-20T10:00:%02d.000Z", n), "data": data})
		require.NoError(t, err)
		return string(text) + "\n"
	}
	events := event(1, "session.start", "", map[string]any{"sessionId": id}) +
		event(2, "session.import_legacy", "e1", map[string]any{"legacySession": json.RawMessage(document(2)), "sourceFile": "f"}) +
		event(3, "session.resume", "e2", map[string]any{}) + event(4, "user.message", "e3", map[string]any{"content": "said later"})
	for name, before := range map[string]bool{"its file was read": true, "its file was not read": false} {
		t.Run(name, func(t *testing.T) {
			h, store := newHome(t), memory(t)
			file := h.path(".copilot", "history-session-state", "session_"+id+"_1760259600000.json")
			if before {
				for n := range 2 {
					h.write(t, file, document(n+1))
					once(t, store, h.options())
				}
				require.NoError(t, os.Remove(file))
			}
			path := h.path(".copilot", "session-state", id+".jsonl")
			h.write(t, path, events)
			once(t, store, h.options())
			requireExport(t, store, h, path, events)
			thread, err := store.FindThread(t.Context(), id)
			require.NoError(t, err)
			branches, err := thread.Branches(t.Context())
			require.NoError(t, err)
			require.Len(t, branches, 1)
			main, err := thread.Active(t.Context())
			require.NoError(t, err)
			entries, err := main.All(t.Context())
			require.NoError(t, err)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name)
			}
			require.Equal(t, []string{"system", "user", "assistant", "bash", "user", "assistant", "bash", "user"}, names)
		})
	}
}

// The first Codex wrote its whole session at each save, with the time of the save, and at first with a new id and so to a new file.
func TestDocumentsOfCodex(t *testing.T) {
	h, store := newHome(t), memory(t)
	document := func(id string, said int) string {
		var items []json.RawMessage
		for n := range said {
			items = append(items, fmt.Appendf(nil, `{"type":"message","role":"user","content":"said %d"}`, n))
		}
		of := map[string]any{"session": map[string]any{"timestamp": fmt.Sprintf("2025-04-20T10:00:%02d.000Z", said), "id": id, "instructions": "Be brief."}, "items": items}
		text, err := json.MarshalIndent(of, "", "  ")
		require.NoError(t, err)
		return string(text)
	}
	var said []string
	written := make(map[string]string)
	save := func(id string, n int) {
		path := h.path(".codex", "sessions", "rollout-2025-04-20-"+id+".json")
		written[path] = document(id, n)
		h.write(t, path, written[path])
		once(t, store, h.options())
	}
	for n := range 5 {
		said = append(said, fmt.Sprint("said ", n))
		id, _ := session(1)
		save(id, n+1)
		require.Equal(t, said, texts(t, store, id))
		again, _ := session(n + 2)
		save(again, n+1)
		require.Equal(t, said, texts(t, store, again))
	}
	for path, want := range written {
		requireExport(t, store, h, path, want)
	}
	stats, err := store.View().Stats(t.Context())
	require.NoError(t, err)
	require.Positive(t, stats.Spans)
}

func TestFollowsGrowingFiles(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, line(id, "a", "", "user", "one"))
	f := start(t, store, h.options())
	defer f.stop(t)
	h.append(t, path, line(id, "b", "a", "assistant", "two"))
	h.caughtUp(t, f)
	require.Equal(t, []string{"one", "two"}, texts(t, store, id))
	h.append(t, path, line(id, "c", "b", "user", "three")[:20])
	h.caughtUp(t, f)
	h.append(t, path, line(id, "c", "b", "user", "three")[20:])
	h.caughtUp(t, f)
	require.Equal(t, []string{"one", "two", "three"}, texts(t, store, id))
}

func TestLastLineWithoutItsEndIsReadWhenTheFileIsQuiet(t *testing.T) {
	h, store, clock := newHome(t), memory(t), newClock()
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	o := h.options()
	o.Clock = clock
	h.write(t, path, line(id, "a", "", "user", "one"))
	f := start(t, store, o)
	defer f.stop(t)
	h.append(t, path, strings.TrimSuffix(line(id, "b", "a", "assistant", "two"), "\n"))
	h.caughtUp(t, f)
	require.Equal(t, []string{"one"}, texts(t, store, id))
	clock.advance(lineWait + time.Second)
	h.caughtUp(t, f)
	require.Equal(t, []string{"one", "two"}, texts(t, store, id))
	h.append(t, path, "\n"+line(id, "c", "b", "user", "three"))
	h.caughtUp(t, f)
	require.Equal(t, []string{"one", "two", "three"}, texts(t, store, id))
}

// After a power loss, the end of a file may be zero bytes. The agent appends its next line to them.
func TestLineAfterZeroBytes(t *testing.T) {
	for _, zeros := range []string{"\x00", strings.Repeat("\x00", 5_000), "\x00\x00\n\x00"} {
		store, h := memory(t), newHome(t)
		id, name := session(1)
		path := filepath.Join(h.project(), name)
		text := line(id, "1", "", "user", "before") + zeros + line(id, "2", "1", "user", "after") + line(id, "3", "2", "user", "last")
		h.write(t, path, text)
		once(t, store, h.options())
		require.Equal(t, []string{"before", "after", "last"}, texts(t, store, id))
		requireExport(t, store, h, path, text)
	}
}

func TestFoldersThatAppearAndGo(t *testing.T) {
	h, store := newHome(t), memory(t)
	f := start(t, store, h.options())
	defer f.stop(t)
	for i := range 3 {
		id, name := session(i)
		path := h.path(".claude", "projects", "-new", name)
		h.write(t, path, line(id, "a", "", "user", "one"))
		f.await(t, func(e Event) bool { return e.Kind == Read && e.Path == path })
		if i == 1 {
			require.NoError(t, os.RemoveAll(h.path(".claude", "projects", "-new")))
		} else {
			require.NoError(t, os.RemoveAll(h.path(".claude")))
		}
		f.await(t, func(e Event) bool { return e.Kind == Gone && e.Path == path })
		require.Equal(t, []string{"one"}, texts(t, store, id), "the store keeps it")
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	outside := h.path("outside", name)
	h.write(t, outside, line(id, "a", "", "user", "one"))
	require.NoError(t, os.MkdirAll(h.project(), 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(h.project(), name)))
	require.NoError(t, os.Symlink(filepath.Dir(outside), h.path(".claude", "projects", "-linked")))
	failed := of(once(t, store, h.options()), Failed)
	require.Len(t, failed, 2)
	for _, e := range failed {
		require.ErrorIs(t, e.Err, archive.ErrRefused)
	}
	require.Nil(t, texts(t, store, id))

	// The user may have put the agent's folder elsewhere.
	require.NoError(t, os.Rename(h.path(".claude"), h.path("moved")))
	require.NoError(t, os.Symlink(h.path("moved"), h.path(".claude")))
	id, name = session(2)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	once(t, store, h.options())
	require.Equal(t, []string{"one"}, texts(t, store, id))
}

// A folder that is a link is reported once, by each of two followers that begin at the same time, and listed with what to do. Chosen, it is
// followed, and no problem.
func TestLinkIsReportedOnce(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	h.write(t, h.path("outside", "-work", name), line(id, "a", "", "user", "one"))
	require.NoError(t, os.MkdirAll(h.project(), 0o700))
	link := h.path(".claude", "projects", "-linked")
	require.NoError(t, os.Symlink(h.path("outside", "-work"), link))
	require.NoError(t, os.Symlink(h.project(), h.path(".claude", "projects", "-again")))
	require.NoError(t, os.Symlink(h.path("nowhere"), h.path(".claude", "projects", "-nowhere")))
	runs := []*following{start(t, store, h.options()), start(t, store, h.options())}
	for _, f := range runs {
		f.stop(t)
		failed := of(f.all, Failed)
		require.LessOrEqual(t, len(failed), 1)
		for _, e := range failed {
			require.Equal(t, link, e.Path)
		}
	}
	require.Len(t, of(runs[0].all, Failed), 1)
	require.Empty(t, of(once(t, store, h.options()), Failed))
	listed := func(o Options) []Problem {
		all, err := List(t.Context(), store, o)
		require.NoError(t, err)
		return all[0].Problems
	}
	require.Len(t, listed(h.options()), 1)
	require.Contains(t, listed(h.options())[0].Error, "--from "+h.path("outside", "-work"))

	chosen := h.options()
	chosen.From = []string{h.path("outside")}
	require.Empty(t, listed(chosen))
	require.Empty(t, of(once(t, store, chosen), Failed))
	require.Equal(t, []string{"one"}, texts(t, store, id))
	require.Len(t, of(once(t, store, h.options()), Failed), 1, "it is no longer chosen")
	require.NoError(t, os.Remove(link))
	require.Empty(t, of(once(t, store, h.options()), Failed))
	require.NoError(t, os.Symlink(h.path("outside", "-work"), link))
	require.Len(t, of(once(t, store, h.options()), Failed), 1, "it is another link")
}

// Followers of different agents keep the errors of each other's folders.
func TestFollowersKeepErrorsOfFolders(t *testing.T) {
	h, store := newHome(t), memory(t)
	folders := map[string]string{"claude-code": h.path(".claude", "projects"), "pi": h.path(".pi", "agent", "sessions")}
	require.NoError(t, os.MkdirAll(h.path("outside"), 0o700))
	var runs []*following
	for agent, folder := range folders {
		require.NoError(t, os.MkdirAll(folder, 0o700))
		require.NoError(t, os.Symlink(h.path("outside"), filepath.Join(folder, "link")))
		o := h.options()
		o.Agents = []string{agent}
		runs = append(runs, start(t, store, o))
	}
	for _, f := range runs {
		f.stop(t)
		require.Len(t, of(f.all, Failed), 1)
	}
	require.Empty(t, of(once(t, store, h.options()), Failed))
	require.NoError(t, os.Remove(filepath.Join(folders["pi"], "link")))
	once(t, store, h.options())
	errs, err := keptFor(store, h.options().Machine).folderErrors(t.Context())
	require.NoError(t, err)
	require.Len(t, errs, 1)
	require.Contains(t, errs, filepath.Join(folders["claude-code"], "link"))
}

// A folder that cannot be read is reported again if it could be read in between.
func TestFolderFailsAgain(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("root and Windows read every folder")
	}
	h, store := newHome(t), memory(t)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	other := h.path(".claude", "projects", "-other")
	require.NoError(t, os.Mkdir(other, 0o700))
	f := start(t, store, h.options())
	for range 2 {
		require.NoError(t, os.Chmod(other, 0))
		f.await(t, func(e Event) bool { return e.Kind == Failed && e.Path == other })
		require.NoError(t, os.Chmod(other, 0o700))
		h.caughtUp(t, f)
	}
	f.stop(t)
}

func TestProblemsDoNotStopOthers(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one")+"{broken\n")
	h.write(t, h.path(".codex", "sessions"), "a file in place of the folder")
	require.NoError(t, os.MkdirAll(filepath.Join(h.project(), "00000009-0000-4000-8000-000000000000.jsonl.d"), 0o700))
	events := once(t, store, h.options())
	require.Equal(t, []string{"one"}, texts(t, store, id))
	read := of(events, Read)
	require.Len(t, read, 1)
	require.Equal(t, int64(1), read[0].Skipped)
	require.Error(t, read[0].Err)
	require.Len(t, of(events, Failed), 1)

	all, err := List(t.Context(), store, h.options())
	require.NoError(t, err)
	require.Equal(t, Followed, all[0].State)
	require.Len(t, all[0].Problems, 1)
	require.Equal(t, int64(1), all[0].Problems[0].Skipped)
	require.Zero(t, all[0].Unread)
	require.Equal(t, "codex", all[1].Agent.Name)
	require.Len(t, all[1].Problems, 1)
}

// failing is a notifier that can watch some folders only.
type failing struct {
	notifier
	mu   sync.Mutex
	left int
	lose bool
}

func (f *failing) add(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left < 0 {
		return errors.New("no more watches")
	}
	return f.notifier.add(dir)
}

func (f *failing) take() ([]string, bool) {
	paths, lost := f.notifier.take()
	return paths, lost || f.lose && len(paths) > 0
}

func TestFoldersBeyondTheLimitOfWatchesArePolled(t *testing.T) {
	h, store, clock := newHome(t), memory(t), newClock()
	o := h.options()
	o.Clock = clock
	o.Agents = []string{"claude-code"}
	limited := &failing{left: 1}
	o.watch = func() (notifier, error) {
		got, err := newNotifier()
		limited.notifier = got
		return limited, err
	}
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, line(id, "a", "", "user", "one"))
	f := start(t, store, o)
	defer f.stop(t)
	var slow []Event
	for _, e := range f.all {
		if e.Kind == Slow {
			slow = append(slow, e)
		}
	}
	require.Len(t, slow, 1, "said once")
	h.append(t, path, line(id, "b", "a", "assistant", "two"))
	f.pollUntil(t, clock, func(e Event) bool { return e.Kind == Read && e.Messages == 1 })
	require.Equal(t, []string{"one", "two"}, texts(t, store, id))
	other, name := session(2)
	h.write(t, filepath.Join(h.project(), name), line(other, "a", "", "user", "one"))
	f.pollUntil(t, clock, func(e Event) bool { return e.Kind == Read && slices.Contains(e.Conversations, other) })
	require.Equal(t, []string{"one"}, texts(t, store, other))
}

func TestWithoutReportsOfChangesEverythingIsPolled(t *testing.T) {
	h, store, clock := newHome(t), memory(t), newClock()
	o := h.options()
	o.Clock, o.Agents = clock, []string{"claude-code"}
	o.watch = func() (notifier, error) { return nil, errors.New("no notifications here") }
	f := start(t, store, o)
	defer f.stop(t)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	f.pollUntil(t, clock, func(e Event) bool { return e.Kind == Read && e.Messages == 1 })
	require.Equal(t, []string{"one"}, texts(t, store, id))
}

func TestLostReportsAreMadeUpFor(t *testing.T) {
	h, store := newHome(t), memory(t)
	o := h.options()
	o.watch = func() (notifier, error) {
		got, err := newNotifier()
		return &failing{notifier: got, left: 1 << 30, lose: true}, err
	}
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, line(id, "a", "", "user", "one"))
	f := start(t, store, o)
	defer f.stop(t)
	h.append(t, path, line(id, "b", "a", "assistant", "two"))
	h.caughtUp(t, f)
	require.Equal(t, []string{"one", "two"}, texts(t, store, id))
}

func TestDeletedThreadStaysDeleted(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, line(id, "a", "", "user", "one"))
	f := start(t, store, h.options())
	thread, err := store.FindThread(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, thread.Delete(t.Context()))
	h.append(t, path, line(id, "b", "a", "assistant", "two"))
	h.caughtUp(t, f)
	require.Nil(t, texts(t, store, id), "while it runs")
	f.stop(t)
	h.append(t, path, line(id, "c", "b", "user", "three"))
	once(t, store, h.options())
	require.Nil(t, texts(t, store, id), "after a start")
	agent := filepath.Join(h.project(), "agent-1.jsonl")
	h.write(t, agent, strings.Replace(line(id, "x", "", "user", "sub"), `"cwd"`, `"agentId":"1","isSidechain":true,"cwd"`, 1))
	once(t, store, h.options())
	require.Nil(t, texts(t, store, id), "from another file")

	_, err = importer.Import(t.Context(), store, archive.Path(path), importer.Options{})
	require.NoError(t, err)
	h.append(t, path, line(id, "d", "c", "assistant", "four"))
	once(t, store, h.options())
	require.Equal(t, []string{"one", "two", "three", "four"}, texts(t, store, id), "an import brings it back")
}

// A run has as long as it takes to save what it has read. One that is stopped has a limit, and it is no error that it reached it:
// the next run reads again what is not saved.
func TestSavingAfterTheEnd(t *testing.T) {
	defer func(d time.Duration) { saveTime = d }(saveTime)
	saveTime = -1
	h, dir := newHome(t), filepath.Join(t.TempDir(), "store")
	store, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, line(id, "a", "", "user", "one"))
	once(t, store, h.options())
	events := once(t, store, h.options())
	require.Empty(t, of(events, Read), "the first run has saved")

	for i, text := range []string{"two", "three", "four"} {
		f := start(t, store, h.options())
		h.append(t, path, line(id, string(rune('b'+i)), string(rune('a'+i)), "user", text))
		h.caughtUp(t, f)
		f.stop(t)
	}
	once(t, store, h.options())
	require.Equal(t, []string{"one", "two", "three", "four"}, texts(t, store, id))
	source, err := FindSource(t.Context(), store, h.options().Machine.ID, path)
	require.NoError(t, err)
	var exported bytes.Buffer
	require.NoError(t, source.Export(t.Context(), &exported))
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(file), exported.String())
}

func TestProjectsAreLeftOut(t *testing.T) {
	h, store, clock := newHome(t), memory(t), newClock()
	private, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, `{"type":"summary","summary":"secret","leafUuid":"a"}`+"\n"+strings.ReplaceAll(line(private, "a", "", "user", "one"), "/src/app", "/private/x"))
	near, nearName := session(2)
	h.write(t, filepath.Join(h.project(), nearName), strings.ReplaceAll(line(near, "a", "", "user", "one"), "/src/app", "/privately"))
	o := h.options()
	o.Clock, o.NotProjects = clock, []string{"/private"}
	f := start(t, store, o)
	require.Nil(t, texts(t, store, private))
	require.Equal(t, []string{"one"}, texts(t, store, near))
	h.append(t, path, strings.ReplaceAll(line(private, "b", "a", "assistant", "two"), "/src/app", "/private/x"))
	h.caughtUp(t, f)
	require.Nil(t, texts(t, store, private))

	unknown, name := session(3)
	waits := filepath.Join(h.project(), name)
	h.write(t, waits, `{"type":"summary","summary":"secret","leafUuid":"a"}`+"\n")
	h.caughtUp(t, f)
	h.append(t, waits, strings.ReplaceAll(line(unknown, "a", "", "user", "one"), "/src/app", "/private"))
	h.caughtUp(t, f)
	f.stop(t)
	_, err := store.FindThread(t.Context(), unknown)
	require.ErrorIs(t, err, lineage.ErrNotFound)

	// A file without a message waits for longer than a session. Nothing is kept of it.
	late, name := session(4)
	silent := filepath.Join(h.project(), name)
	h.write(t, silent, `{"type":"file-history-snapshot","messageId":"secret","snapshot":{}}`+"\n")
	nothing := filepath.Join(h.project(), "nothing.jsonl")
	h.write(t, nothing, `{"type":"summary","summary":"secret","leafUuid":"a"}`+"\n")
	f = start(t, store, o)
	clock.advance(time.Hour) // the files are younger than the clock
	h.caughtUp(t, f)
	h.append(t, silent, strings.ReplaceAll(line(late, "a", "", "user", "one"), "/src/app", "/private"))
	h.caughtUp(t, f)
	f.stop(t)
	for _, path := range []string{silent, nothing} {
		_, err = FindSource(t.Context(), store, o.Machine.ID, path)
		require.ErrorIs(t, err, lineage.ErrNotFound)
	}
	_, err = store.FindThread(t.Context(), late)
	require.ErrorIs(t, err, lineage.ErrNotFound)

	once(t, store, o)
	require.Empty(t, of(once(t, store, o), Read), "it is not read again")
	o.NotProjects = nil
	once(t, store, o)
	require.Equal(t, []string{"one", "two"}, texts(t, store, private), "it is no longer left out")
	require.Equal(t, []string{"one"}, texts(t, store, late))
	requireKept(t, store, nothing)
}

func TestCompressedFileReplacesThePlainOne(t *testing.T) {
	h, store := newHome(t), memory(t)
	path := h.path(".codex", "sessions", "2026", "rollout-1.jsonl")
	text := `{"timestamp":"2026-11-27T10:00:00Z","type":"session_meta","payload":{"id":"s1","cwd":"/src/app"}}` + "\n" +
		`{"timestamp":"2026-11-27T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}}` + "\n"
	h.write(t, path, text)
	f := start(t, store, h.options())
	defer f.stop(t)
	require.Len(t, texts(t, store, "s1"), 1)
	h.write(t, path+".zst", string(compressed([]byte(text))))
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.MkdirAll(h.project(), 0o700))
	f.await(t, func(e Event) bool { return e.Kind == Read && e.Path == path+".zst" })
	for _, e := range f.all {
		require.NotEqual(t, Gone, e.Kind)
	}
	require.Len(t, texts(t, store, "s1"), 1)
}

func TestTwoRunsAtOnce(t *testing.T) {
	h, store := newHome(t), memory(t)
	a := start(t, store, h.options())
	b := start(t, store, h.options())
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, "")
	parent := ""
	var want []string
	for i := range 20 {
		text := string(rune('a' + i))
		said := line(id, text, parent, "user", text)
		h.append(t, path, regexp.MustCompile(`"timestamp":"[^"]*"`).ReplaceAllString(said, `"timestamp":"2026-01-01T00:00:00Z"`)) // times do not tell who is behind
		parent, want = text, append(want, text)
	}
	h.caughtUp(t, a, b)
	require.Empty(t, of(a.all, Failed))
	require.Empty(t, of(b.all, Failed))
	thread, err := store.FindThread(t.Context(), id)
	require.NoError(t, err)
	branches, err := thread.Branches(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, texts(t, store, id), "%+v", branches)
	require.Len(t, branches, 1)
	a.stop(t)
	b.stop(t)
	once(t, store, h.options()) // what one has left to the other is recorded
	require.Empty(t, of(once(t, store, h.options()), Read))
}

func TestChoice(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	for _, choice := range []Choice{{Agents: []string{"codex"}}, {Not: []string{"claude-code"}}} {
		o := h.options()
		o.Choice = choice
		require.Empty(t, of(once(t, store, o), Read))
		all, err := List(t.Context(), store, o)
		require.NoError(t, err)
		require.Equal(t, NotChosen, all[0].State)
	}
	o := h.options()
	o.Choice = Choice{Agents: []string{"codex"}, From: []string{h.path(".claude")}}
	require.Len(t, of(once(t, store, o), Read), 1, "a folder of any format")
	require.Equal(t, []string{"one"}, texts(t, store, id))

	require.NoError(t, Remember(t.Context(), store, o.Machine, o.Choice))
	got, err := Remembered(t.Context(), store, o.Machine)
	require.NoError(t, err)
	require.Equal(t, o.Choice, got)
	got, err = Remembered(t.Context(), store, Machine{ID: "other"})
	require.NoError(t, err)
	require.Equal(t, Choice{}, got)

	unknown := (&Choice{Not: []string{"nonesuch"}}).Check()
	require.ErrorIs(t, unknown, lineage.ErrInvalid)
	o.Choice.Not = []string{"nonesuch"}
	require.ErrorIs(t, Run(t.Context(), store, o), lineage.ErrInvalid)
}

func TestListSaysWhatAgentsDelete(t *testing.T) {
	h, store := newHome(t), memory(t)
	for i, age := range []int{1, 22, 24, 40} {
		id, name := session(i)
		path := filepath.Join(h.project(), name)
		h.write(t, path, line(id, "a", "", "user", "one"))
		at := time.Now().Add(-time.Duration(age) * 24 * time.Hour)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	all, err := List(t.Context(), store, h.options())
	require.NoError(t, err)
	require.Equal(t, int64(2), all[0].Soon)
	require.Equal(t, int64(4), all[0].Unread)
	found := of(once(t, store, h.options()), Found)
	require.Equal(t, int64(2), found[0].Soon)
	require.Zero(t, of(once(t, store, h.options()), Found)[0].Soon, "the store has them")

	h.write(t, h.path(".claude", "settings.json"), `{"cleanupPeriodDays": 365}`)
	all, err = List(t.Context(), store, h.options())
	require.NoError(t, err)
	require.Zero(t, all[0].Soon)
	require.Equal(t, 365*24*time.Hour, all[0].Keeps)
}

func TestFailedFileIsTriedAgain(t *testing.T) {
	h, store, clock := newHome(t), memory(t), newClock()
	o := h.options()
	o.Clock = clock
	var fails atomic.Bool
	fails.Store(true)
	o.Formats = formats.All()
	for i, f := range o.Formats {
		if f.Name == "claude-code" {
			o.Formats[i].Read = failingRead(f.Read, &fails)
		}
	}
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	f := start(t, store, o)
	defer f.stop(t)
	require.Nil(t, texts(t, store, id))
	fails.Store(false)
	clock.advance(retryFirst)
	f.await(t, func(e Event) bool { return e.Kind == Read && e.Messages == 1 })
}

func TestStoreThatIsClosedEndsTheRun(t *testing.T) {
	h := newHome(t)
	store, err := lineage.OpenMemory(t.Context(), lineage.Options{})
	require.NoError(t, err)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	f := start(t, store, h.options())
	require.NoError(t, store.Close())
	h.append(t, filepath.Join(h.project(), name), line(id, "b", "a", "user", "two"))
	err = <-f.done
	require.ErrorIs(t, err, lineage.ErrClosed)
	require.NotContains(t, err.Error(), "\n", "the end is said once")
}

func TestMachineIDIsCreatedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lineage", "machine")
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			id, err := randomIn(file, machineSize)
			if err == nil {
				ids[i] = id
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
		require.Len(t, id, 2*machineSize)
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{file}, names)
	info, err := os.Stat(file)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.EqualValues(t, 0o600, info.Mode().Perm())
	}
	require.NoError(t, os.WriteFile(file, []byte("?"), 0o600))
	_, err = randomIn(file, machineSize)
	require.ErrorIs(t, err, lineage.ErrInvalid)
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		file, folder  bool
	}{
		{"*/*.jsonl", "a/b.jsonl", true, false},
		{"*/*.jsonl", "a", false, true},
		{"*/*.jsonl", "a/b", false, false},
		{"**/*.jsonl", "b.jsonl", true, true},
		{"**/*.jsonl", "a/b/c.jsonl", true, true},
		{"**/*.jsonl", "a/b/c.txt", false, true},
		{"*/*/subagents/**/*.jsonl", "a/b", false, true},
		{"*/*/subagents/**/*.jsonl", "a/b/tool-results", false, false},
		{"*/*/subagents/**/*.jsonl", "a/b/subagents/c.jsonl", true, true},
		{"opencode.db", "opencode.db", true, false},
		{literal("o[p]*.db"), "o[p]*.db", true, false},
	} {
		p := sessionsIn("", c.pattern)
		require.Equal(t, c.file, p.file(c.name) >= 0, c)
		require.Equal(t, c.folder, p.folder(c.name), c)
	}
}

func TestLastLineEnd(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for text, want := range map[string]int64{"": 0, "a": 0, "a\n": 2, "a\nb": 2, "a\r\nb\n": 5, "a\n" + long: 2, long + "\n" + long: 200_001} {
		end, err := lastLineEnd(strings.NewReader(text), int64(len(text)))
		require.NoError(t, err)
		require.Equal(t, want, end)
	}
}

// Sessions of Antigravity are named by their folders, also while they grow; two have steps with equal numbers.
func TestAntigravity(t *testing.T) {
	h, store := newHome(t), memory(t)
	step := func(n int, source, kind, text string) string {
		return fmt.Sprintf(`{"step_index":%d,"source":%q,"type":%q,"status":"DONE","created_at":"2026-01-01T00:00:0%dZ","content":%q}`, n, source, kind, n, text) + "\n"
	}
	file := func(id string) string {
		return h.path(".gemini", "antigravity-cli", "brain", id, ".system_generated", "logs", "transcript_full.jsonl")
	}
	for _, id := range []string{"one", "two"} {
		h.write(t, file(id), step(0, "USER_EXPLICIT", "USER_INPUT", "I am "+id))
	}
	once(t, store, h.options())
	h.append(t, file("one"), step(1, "MODEL", "PLANNER_RESPONSE", "Hello"))
	once(t, store, h.options())
	for id, want := range map[string]int{"one": 2, "two": 1} {
		thread, err := store.FindThread(t.Context(), id)
		require.NoError(t, err)
		active, err := thread.Active(t.Context())
		require.NoError(t, err)
		n, err := active.Len(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, want, n)
		s, err := FindSource(t.Context(), store, h.options().Machine.ID, file(id))
		require.NoError(t, err)
		var out strings.Builder
		require.NoError(t, s.Export(t.Context(), &out))
		raw, err := os.ReadFile(file(id))
		require.NoError(t, err)
		require.Equal(t, string(raw), out.String())
	}
}

// Earlier versions of Antigravity write only one file of a session. Later ones cut its long texts, and have the whole in another,
// which is followed instead as soon as it is there.
func TestAntigravityWritesTwoFiles(t *testing.T) {
	h, store := newHome(t), memory(t)
	step := func(n int, source, kind, text string) string {
		return fmt.Sprintf(`{"step_index":%d,"source":%q,"type":%q,"status":"DONE","created_at":"2026-01-01T00:00:0%dZ","content":%q}`, n, source, kind, n, text) + "\n"
	}
	file := func(name string) string {
		return h.path(".gemini", "antigravity", "brain", "one", ".system_generated", "logs", name)
	}
	said := func() (all []string) {
		for _, e := range onlyBranch(t, store, "one") {
			text, err := store.Text(t.Context(), e)
			require.NoError(t, err)
			all = append(all, text)
		}
		return all
	}
	whole := step(0, "USER_EXPLICIT", "USER_INPUT", "Hello") + step(1, "MODEL", "PLANNER_RESPONSE", "A long answer")
	h.write(t, file("transcript.jsonl"), whole)
	f := start(t, store, h.options())
	require.Equal(t, []string{"Hello", "A long answer"}, said())
	whole += step(2, "USER_EXPLICIT", "USER_INPUT", "Go on")
	h.append(t, file("transcript.jsonl"), step(2, "USER_EXPLICIT", "USER_INPUT", "Go on"))
	f.await(t, func(e Event) bool { return e.Kind == Read && e.Messages == 1 })

	whole += step(3, "MODEL", "PLANNER_RESPONSE", "Another long answer")
	h.write(t, file("transcript_full.jsonl"), whole)
	f.await(t, func(e Event) bool { return e.Kind == Read && e.Messages == 1 })
	h.append(t, file("transcript.jsonl"), step(3, "MODEL", "PLANNER_RESPONSE", "Another <truncated>"))
	h.append(t, file("transcript_full.jsonl"), step(4, "USER_EXPLICIT", "USER_INPUT", "Thanks"))
	f.await(t, func(e Event) bool { return e.Kind == Read && e.Messages == 1 })
	f.stop(t)
	want := []string{"Hello", "A long answer", "Go on", "Another long answer", "Thanks"}
	require.Equal(t, want, said())
	for _, e := range once(t, store, h.options()) {
		require.Zero(t, e.Messages)
		require.False(t, e.Kind == Read && strings.HasSuffix(e.Path, "transcript.jsonl"))
	}
	require.Equal(t, want, said())

	other := memory(t) // which sees both files at once
	once(t, other, h.options())
	store = other
	require.Equal(t, want, said())
	all, err := List(t.Context(), other, h.options())
	require.NoError(t, err)
	for i := range all {
		if all[i].Agent.Name == "antigravity" && all[i].State == Followed {
			require.EqualValues(t, 1, all[i].Files)
			require.Zero(t, all[i].Unread)
		}
	}
}

// The shortened file is left out also where changes are not reported but looked for.
func TestAntigravityWritesTwoFilesInAPolledFolder(t *testing.T) {
	h, store, clock := newHome(t), memory(t), newClock()
	file := func(name string) string {
		return h.path(".gemini", "antigravity", "brain", "one", ".system_generated", "logs", name)
	}
	step := func(n int, text string) string {
		return fmt.Sprintf(`{"step_index":%d,"source":"MODEL","type":"PLANNER_RESPONSE","status":"DONE","created_at":"2026-01-01T00:00:00Z","content":%q}`, n, text) + "\n"
	}
	h.write(t, file("transcript.jsonl"), step(0, "one"))
	o := h.options()
	o.Clock = clock
	o.watch = func() (notifier, error) { return nil, errors.New("no notifications here") }
	f := start(t, store, o)
	h.write(t, file("transcript_full.jsonl"), step(0, "one")+step(1, "a long text"))
	h.append(t, file("transcript.jsonl"), step(1, "a <truncated>"))
	isRead := func(e Event) bool { return e.Kind == Read && e.Path == file("transcript_full.jsonl") }
	f.pollUntil(t, clock, isRead)
	h.append(t, file("transcript_full.jsonl"), step(2, "the next poll"))
	f.pollUntil(t, clock, isRead)
	f.stop(t)
	f.drain()
	for _, e := range of(f.all, Read)[1:] {
		require.NotEqual(t, file("transcript.jsonl"), e.Path)
	}
}

// A shortened file that was never read is not gone when it is deleted, alone or with its folder.
func TestDeletedShortenedFileOfAntigravity(t *testing.T) {
	h, store := newHome(t), memory(t)
	file := func(id, name string) string {
		return h.path(".gemini", "antigravity", "brain", id, ".system_generated", "logs", name)
	}
	for _, id := range []string{"one", "two"} {
		step := `{"step_index":0,"source":"MODEL","type":"PLANNER_RESPONSE","status":"DONE","created_at":"2026-01-01T00:00:00Z","content":"` + id + `"}` + "\n"
		h.write(t, file(id, "transcript.jsonl"), step)
		h.write(t, file(id, "transcript_full.jsonl"), step)
	}
	runs := []*following{start(t, store, h.options()), start(t, store, h.options())}
	require.NoError(t, os.Remove(file("one", "transcript.jsonl")))
	h.caughtUp(t, runs...)
	require.NoError(t, os.Remove(file("two", "transcript_full.jsonl")))
	require.NoError(t, os.Remove(file("two", "transcript.jsonl")))
	for _, f := range runs {
		f.await(t, func(e Event) bool { return e.Kind == Gone && e.Path == file("two", "transcript_full.jsonl") })
	}
	h.caughtUp(t, runs...)
	for _, f := range runs {
		f.stop(t)
		f.drain()
		require.Len(t, of(f.all, Gone), 1)
	}
	all, err := List(t.Context(), store, h.options())
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(l Listing) bool { return l.Agent.Name == "antigravity" && l.State == Followed })
	require.EqualValues(t, 1, all[i].Files)
	require.EqualValues(t, 1, all[i].Gone)
}

// A call of Antigravity that is read after its result is after it in the store, and stays there: the history continues after it,
// also if the file is read from its start, by another follower.
func TestAntigravityWritesACallLate(t *testing.T) {
	h := newHome(t)
	path := h.path(".gemini", "antigravity", "brain", "one", ".system_generated", "logs", "transcript_full.jsonl")
	step := func(n int, source, kind, text string) string {
		return fmt.Sprintf(`{"step_index":%d,"source":%q,"type":%q,"status":"DONE","created_at":"2026-01-01T00:00:00Z","content":%q}`, n, source, kind, text) + "\n"
	}
	lines := []string{
		step(0, "USER_EXPLICIT", "USER_INPUT", "Go"), step(2, "MODEL", "VIEW_FILE", "a result"), step(3, "SYSTEM", "CHECKPOINT", "c"), step(4, "MODEL", "VIEW_FILE", "another"),
		step(1, "MODEL", "PLANNER_RESPONSE", "a call"), step(5, "MODEL", "PLANNER_RESPONSE", "an answer"), step(6, "USER_EXPLICIT", "USER_INPUT", "Thanks"),
	}
	late := lines[4]
	for _, parts := range [][]int{{2, 5, 6, 7}, {2, 7}, {4, 6, 7}, {4, 5, 7}, {1, 2, 3, 4, 5, 6, 7}, {5, 6, 7}, {6, 7}, {7}} {
		store := memory(t)
		for i, end := range parts {
			h.write(t, path, strings.Join(lines[:end], ""))
			once(t, store, h.options())
			var want []string
			first := 0
			for _, end := range parts[:i+1] {
				read := lines[first:end]
				if together := slices.Index(read, late); together >= 0 { // with results: it is before these
					read = slices.Clone(read)
					at := together
					for at > 0 && !strings.Contains(read[at-1], "USER") {
						at--
					}
					read = slices.Insert(slices.Delete(read, together, together+1), at, late)
				}
				want = append(want, read...)
				first = end
			}
			want = slices.DeleteFunc(want, func(l string) bool { return strings.Contains(l, "CHECKPOINT") })
			var all []string
			for _, e := range onlyBranch(t, store, "one") {
				text, err := store.Original(t.Context(), e)
				require.NoError(t, err)
				all = append(all, string(text)+"\n")
			}
			require.Equal(t, want, all, "%v", parts[:i+1])
		}
	}
}

// The folder of a profile of OpenClaw may be a link, and two names of a profile are one. What is below it may not be a link.
func TestLinkedProfile(t *testing.T) {
	h, store := newHome(t), memory(t)
	file := func(i int, below ...string) string {
		id := fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)
		text := `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" +
			`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"one"}}` + "\n"
		h.write(t, filepath.Join(append([]string{h.dir}, append(below, id+".jsonl")...)...), text)
		return id
	}
	moved := file(1, "moved", "agents", "main", "sessions")
	outside := file(2, "outside", "sessions")
	require.NoError(t, os.Symlink(h.path("moved"), h.path(".openclaw-work")))
	require.NoError(t, os.Symlink(h.path("moved"), h.path(".openclaw-work2")))
	require.NoError(t, os.Symlink(h.path("outside"), h.path("moved", "agents", "out")))
	require.NoError(t, os.Symlink(h.path("gone"), h.path(".openclaw-gone")))
	events := once(t, store, h.options())
	require.Len(t, of(events, Read), 1)
	for _, e := range of(events, Failed) {
		require.ErrorIs(t, e.Err, archive.ErrRefused)
	}
	require.NotEmpty(t, of(events, Failed))
	_, err := store.FindThread(t.Context(), moved)
	require.NoError(t, err)
	_, err = store.FindThread(t.Context(), outside)
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

// Older versions of OpenClaw have sessions in the form of pi, beside files that have none. Their threads say so. A session of pi with equal ids
// of messages stays pi's. Each profile has a folder.
func TestOpenClaw(t *testing.T) {
	h, store := newHome(t), memory(t)
	raw := func(id string) string {
		return `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" +
			`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"I am ` + id + `"}],"timestamp":1}}` + "\n"
	}
	const id, other = "01a22001-697f-772f-b4f5-ea342d6823c1", "01a22001-697f-772f-b4f5-ea342d6823c2"
	claw := h.path(".openclaw", "agents", "main", "sessions", id+".jsonl")
	h.write(t, claw, raw(id))
	h.write(t, h.path(".openclaw", "agents", "main", "sessions", id+".trajectory.jsonl"), `{"traceSchema":"openclaw-trajectory","type":"session.started","sessionId":"`+id+`"}`+"\n")
	h.write(t, h.path(".openclaw-work", "agents", "main", "sessions", other+".jsonl"), raw(other))
	h.write(t, h.path(".openclaw", "agents", "main", "sessions", "sessions.json"), `{"agent:main:main":{"sessionId":"claw"}}`)
	h.write(t, h.path(".pi", "agent", "sessions", "--w--", "2026_pi.jsonl"), raw("pi"))
	once(t, store, h.options())
	h.append(t, claw, `{"type":"message","id":"m2","parentId":"m1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":[{"type":"text","text":"more"}],"timestamp":1}}`+"\n")
	once(t, store, h.options())
	for id, agent := range map[string]string{id: "openclaw", other: "openclaw", "pi": "pi"} {
		thread, err := store.FindThread(t.Context(), id)
		require.NoError(t, err)
		info, err := thread.Info(t.Context())
		require.NoError(t, err)
		require.Contains(t, string(info.Metadata), `"agent":"`+agent+`"`)
	}
	requireKept(t, store, claw)
	all, err := List(t.Context(), store, h.options())
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(l Listing) bool { return l.Agent.Name == "openclaw" && l.Files > 0 })
	require.EqualValues(t, 1, all[i].Files)
	require.NotEmpty(t, all[i].Tried)
	require.Equal(t, Followed, all[i].State)
}

// fullDisk is an engine that takes no commits while full is set.
type fullDisk struct {
	backend.Engine
	full   *atomic.Bool
	failed *atomic.Int64
}

func (e fullDisk) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if e.full.Load() {
		e.failed.Add(1)
		return backend.Receipt{}, fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return e.Engine.Apply(ctx, c, o)
}

// Two followers wait while the disk is full. Each says so once, and goes on when there is space; with Once it is an error.
func TestFullDisk(t *testing.T) {
	h := newHome(t)
	engine := fullDisk{write.Of(memory(t)).Engine(), new(atomic.Bool), new(atomic.Int64)}
	store := lineage.New(engine)
	first, firstName := session(1)
	path := filepath.Join(h.project(), firstName)
	h.write(t, path, line(first, "a", "", "user", "one"))
	runs := []*following{start(t, store, h.options()), start(t, store, h.options())}
	engine.full.Store(true)
	h.append(t, path, line(first, "b", "a", "user", "two"))
	for _, f := range runs {
		f.await(t, func(e Event) bool { return e.Kind == StoreFailed && errors.Is(e.Err, syscall.ENOSPC) })
	}
	second, secondName := session(2)
	h.write(t, filepath.Join(h.project(), secondName), line(second, "a", "", "user", "three")+"{broken\n")
	o := h.options()
	o.Once = true
	require.ErrorIs(t, Run(t.Context(), store, o), syscall.ENOSPC)
	failed := engine.failed.Load()
	require.Eventually(t, func() bool { return engine.failed.Load() > failed }, hangs, time.Millisecond) // a later attempt
	engine.full.Store(false)
	for _, f := range runs {
		f.await(t, func(e Event) bool { return e.Kind == StoreWorks })
		f.await(t, func(e Event) bool { return e.Kind == Waiting })
		require.Len(t, of(f.all, StoreFailed), 1)
		require.Len(t, of(f.all, Found), 1, "the folder was found before")
		require.Empty(t, of(f.all, Failed), "the files are not the reason")
	}
	require.Equal(t, []string{"one", "two"}, texts(t, store, first))
	require.Equal(t, []string{"three"}, texts(t, store, second))
	h.append(t, path, line(first, "c", "b", "user", "four"))
	h.caughtUp(t, runs...)
	require.Equal(t, []string{"one", "two", "four"}, texts(t, store, first))
	for _, f := range runs {
		f.stop(t)
		require.Len(t, of(f.all, StoreFailed), 1)
	}
}

// The disk is full as soon as the messages are stored, before the lines: that is not a problem of the file.
func TestDiskIsFullForLines(t *testing.T) {
	h := newHome(t)
	engine := fullDisk{write.Of(memory(t)).Engine(), new(atomic.Bool), new(atomic.Int64)}
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	fills := fillsDisk{engine}
	o := h.options()
	o.Once = true
	o.Events = func(e Event) { require.NotEqual(t, Failed, e.Kind) }
	require.ErrorIs(t, Run(t.Context(), lineage.New(fills), o), syscall.ENOSPC)
	engine.full.Store(false)
	store := lineage.New(engine)
	once(t, store, h.options())
	require.Equal(t, []string{"one"}, texts(t, store, id))
	_, err := FindSource(t.Context(), store, o.Machine.ID, filepath.Join(h.project(), name))
	require.NoError(t, err)
}

// The disk was full when the messages were stored, and has room directly after that: that is not a problem of the file either.
func TestDiskWasFull(t *testing.T) {
	h := newHome(t)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	store := lineage.New(wasFull{write.Of(memory(t)).Engine(), new(atomic.Bool)})
	o := h.options()
	o.Once = true
	o.Events = func(e Event) { require.NotEqual(t, Failed, e.Kind) }
	require.ErrorIs(t, Run(t.Context(), store, o), syscall.ENOSPC)
	once(t, store, h.options())
	require.Equal(t, []string{"one"}, texts(t, store, id))
}

// wasFull is a disk that is full at the first commit with a thread.
type wasFull struct {
	backend.Engine
	had *atomic.Bool
}

func (e wasFull) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if slices.ContainsFunc(c.Records, func(r structure.Record) bool { return r.Kind() == structure.KindThread }) && !e.had.Swap(true) {
		return backend.Receipt{}, syscall.ENOSPC
	}
	return e.Engine.Apply(ctx, c, o)
}

// fillsDisk is a disk that is full after the first commit with a thread.
type fillsDisk struct{ fullDisk }

func (e fillsDisk) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	r, err := e.fullDisk.Apply(ctx, c, o)
	if slices.ContainsFunc(c.Records, func(r structure.Record) bool { return r.Kind() == structure.KindThread }) {
		e.full.Store(true)
	}
	return r, err
}

// refusingEngine is an engine that refuses the commits of one session.
type refusingEngine struct {
	backend.Engine
	err     error
	refuses func(c *structure.Commit) bool
}

func (e refusingEngine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if e.refuses(c) {
		return backend.Receipt{}, e.err
	}
	return e.Engine.Apply(ctx, c, o)
}

// A session that the store refuses is set aside with its error, whatever that is: the store takes the other sessions.
func TestRefusedSessionIsSetAside(t *testing.T) {
	h := newHome(t)
	bad, badName := session(1)
	badPath := filepath.Join(h.project(), badName)
	h.write(t, badPath, line(bad, "a", "", "user", "one"))
	good, goodName := session(2)
	h.write(t, filepath.Join(h.project(), goodName), line(good, "a", "", "user", "two"))
	ofThread := func(c *structure.Commit) bool {
		return slices.ContainsFunc(c.Records, func(r structure.Record) bool {
			thread, ok := r.(*structure.Thread)
			return ok && thread.SourceID == bad
		})
	}
	ofLines := func(c *structure.Commit) bool {
		return slices.ContainsFunc(c.Records, func(r structure.Record) bool {
			source, ok := r.(*structure.Context)
			return ok && source.ID == lineage.SourceBranch(sourceID(h.options().Machine.ID, badPath))
		})
	}
	for _, err := range []error{structure.ErrIncomplete, structure.ErrBrokenAncestry, structure.ErrOutOfRange, lineage.ErrCorrupt, lineage.ErrTooLarge, errors.New("a new error")} {
		for _, refuses := range []func(*structure.Commit) bool{ofThread, ofLines} {
			store := lineage.New(refusingEngine{write.Of(memory(t)).Engine(), err, refuses})
			for range 2 {
				for _, e := range once(t, store, h.options()) {
					require.False(t, e.Kind == StoreFailed || e.Kind == Failed && e.Path != badPath, e)
				}
				require.Equal(t, []string{"two"}, texts(t, store, good))
				all, listErr := List(t.Context(), store, h.options())
				require.NoError(t, listErr)
				require.Len(t, all[0].Problems, 1)
				require.Equal(t, badPath, all[0].Problems[0].Path)
				require.Contains(t, all[0].Problems[0].Error, err.Error())
			}
			runs, clock := []*following(nil), newClock()
			for range 2 {
				o := h.options()
				o.Clock = clock
				runs = append(runs, start(t, store, o))
			}
			clock.advance(saveAfter)
			clock.advance(retryFirst)
			h.caughtUp(t, runs...)
			for _, f := range runs {
				f.stop(t)
				require.Empty(t, of(f.all, StoreFailed))
			}
		}
	}
}

// A store that stays read-only ends the run.
func TestReadOnlyStoreEndsTheRun(t *testing.T) {
	h, dir := newHome(t), t.TempDir()
	made, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	require.NoError(t, made.Close())
	store, err := lineage.Open(t.Context(), dir, lineage.Options{ReadOnly: true})
	require.NoError(t, err)
	defer store.Close()
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	require.ErrorIs(t, Run(t.Context(), store, h.options()), lineage.ErrReadOnly)
}
