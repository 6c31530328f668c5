//test:race

package follow

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
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
