//test:long

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// result is what a command line did.
type result struct {
	code     int
	out, err string
}

// runLine runs a command line in this process.
func runLine(ctx context.Context, args ...string) result {
	var out, errOut bytes.Buffer
	code := execute(ctx, app.New(strings.NewReader(""), &out, &errOut, func(string) string { return "" }), args)
	return result{code, out.String(), errOut.String()}
}

// newStore makes a store with a message and returns its directory.
func newStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	require.Equal(t, 0, runLine(t.Context(), "init", dir).code)
	require.Equal(t, 0, runLine(t.Context(), "append", "hello", "--store", dir).code)
	return dir
}

func TestALockedStoreIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := newStore(t)
	holder, err := lineage.Open(t.Context(), dir, lineage.Options{NeverServe: true})
	require.NoError(t, err)

	got := runLine(t.Context(), "log", "--store", dir, "--wait", "0s")
	require.Equal(t, app.ExitLocked, got.code)
	require.Contains(t, got.err, fmt.Sprintf("locked by process %d (", os.Getpid()))
	require.Contains(t, got.err, ": held by a process that cannot be reached (host ")
	require.Contains(t, got.err, fmt.Sprintf("hint: --wait 1m waits for process %d to end", os.Getpid()))
	for _, line := range []string{"restore", "salvage"} {
		got := runLine(t.Context(), line, dir, filepath.Join(t.TempDir(), "new"))
		require.Equal(t, app.ExitLocked, got.code)
		require.Contains(t, got.err, fmt.Sprintf("locked by process %d (", os.Getpid()))
		require.Contains(t, got.err, "hint: nothing was copied: end that process first")
	}
	got = runLine(t.Context(), "log", "--store", dir, "--wait", "0s", "--json")
	require.Equal(t, app.ExitLocked, got.code)
	var record struct {
		Type string `json:"type"`
		records.Error
	}
	require.NoError(t, json.Unmarshal([]byte(got.err), &record))
	require.Equal(t, "error", record.Type)
	require.Equal(t, app.ExitLocked, record.Code)

	time.AfterFunc(50*time.Millisecond, func() { holder.Close() })
	got = runLine(t.Context(), "log", "--store", dir, "--wait", "1m")
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, got.out, "hello")
}

func TestInterruptsEndACommand(t *testing.T) {
	dir := newStore(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt"))
	got := runLine(ctx, "append", "more", "--store", dir)
	require.Equal(t, app.ExitInterrupted, got.code)
	require.Contains(t, got.err, "interrupted")

	// Waiting for a lock ends too.
	holder, err := lineage.Open(t.Context(), dir, lineage.Options{NeverServe: true})
	require.NoError(t, err)
	defer holder.Close()
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	require.Equal(t, app.ExitInterrupted, runLine(ctx, "log", "--store", dir, "--wait", "1h").code)
}

// That something is kept is told by commands that leave something.
func TestInterruptsTellWhatIsKept(t *testing.T) {
	dir := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	var messages bytes.Buffer
	a := app.New(readerFunc(func([]byte) (int, error) { stop(); return 0, context.Canceled }), io.Discard, &messages, func(string) string { return "" })
	require.Equal(t, app.ExitInterrupted, execute(ctx, a, []string{"bundle", "import", "-", "--store", dir}))
	require.Contains(t, messages.String(), "interrupted\nhint: what was done so far is kept")

	file := filepath.Join(t.TempDir(), "file")
	for _, line := range [][]string{
		{"export", "-o", file}, {"backup", file}, {"bundle", "create", file}, {"verify"}, {"search", "hello"},
	} {
		got := runLine(ctx, append(line, "--store", dir)...)
		require.Equal(t, app.ExitInterrupted, got.code, line)
		require.Equal(t, "lineage: interrupted\n", got.err, line)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// waitingInput is a standard input that nothing comes from, and tells when somebody
// waits for it.
type waitingInput struct{ idle func() }

func (w waitingInput) Read([]byte) (int, error) {
	w.idle()
	select {}
}

func TestInterruptsEndWaitingForInput(t *testing.T) {
	dir := newStore(t)
	for _, line := range []string{
		"import -", "import - --format openai", "append -", "append --file -", "append --file - --asset notes.txt", "append --jsonl -",
		"edit @ --file -", "bundle import -",
	} {
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			var out, errOut bytes.Buffer
			in := waitingInput{func() { cancel(errors.New("interrupt")) }}
			code := execute(ctx, app.New(in, &out, &errOut, func(string) string { return "" }), append(strings.Fields(line), "--store", dir))
			require.Equal(t, app.ExitInterrupted, code, errOut.String())
			require.Contains(t, errOut.String(), "interrupted")
		})
	}
	require.Equal(t, 0, runLine(t.Context(), "log", "--store", dir, "--wait", "0s").code, "nobody keeps the store open")
}

func TestWatchHearsOfLaterChanges(t *testing.T) {
	dir := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &notifyingBuffer{wrote: make(chan string, 100)}
	done := make(chan int)
	go func() {
		a := app.New(strings.NewReader(""), out, &bytes.Buffer{}, func(string) string { return "" })
		done <- execute(ctx, a, []string{"watch", "--from", "1", "--interval", "5ms", "--store", dir, "--json"})
	}()
	require.Contains(t, <-out.wrote, "context extended")
	require.Equal(t, 0, runLine(t.Context(), "branch", "later", "--store", dir).code)
	require.Contains(t, <-out.wrote, `"kind":"branch set"`)
	stop()
	require.Equal(t, app.ExitInterrupted, <-done)
}

func TestLogFollows(t *testing.T) {
	dir := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &notifyingBuffer{wrote: make(chan string, 100)}
	done := make(chan int)
	go func() {
		a := app.New(strings.NewReader(""), out, &bytes.Buffer{}, func(string) string { return "" })
		done <- execute(ctx, a, []string{"log", "-f", "--store", dir})
	}()
	require.Contains(t, <-out.wrote, "hello")
	for _, text := range []string{"and more", "and the end"} {
		require.Equal(t, 0, runLine(t.Context(), "append", text, "--store", dir).code)
		require.Contains(t, <-out.wrote, text)
	}
	stop()
	require.Equal(t, app.ExitInterrupted, <-done)
	require.Equal(t, app.ExitUsage, runLine(t.Context(), "log", "-f", ":1", "--store", dir).code)
}

// A context that is rewound is followed from where it points to.
func TestFollowingAfterARewind(t *testing.T) {
	dir := newStore(t)
	require.Equal(t, 0, runLine(t.Context(), "append", "second", "--store", dir).code)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, messages := &notifyingBuffer{wrote: make(chan string, 100)}, &notifyingBuffer{wrote: make(chan string, 100)}
	done := make(chan int)
	go func() {
		a := app.New(strings.NewReader(""), out, messages, func(string) string { return "" })
		done <- execute(ctx, a, []string{"log", "-f", "--store", dir})
	}()
	require.Contains(t, <-out.wrote, "second")
	for _, reply := range []string{"third", "fourth"} {
		require.Equal(t, 0, runLine(t.Context(), "rewind", "~1", "--in-place", "--store", dir).code)
		require.Regexp(t, `^lineage: the active branch was moved to message 1, [0-9a-f]+/1\n$`, <-messages.wrote)
		require.Equal(t, 0, runLine(t.Context(), "append", reply, "--store", dir).code)
		require.Contains(t, <-out.wrote, reply)
	}
	stop()
	require.Equal(t, app.ExitInterrupted, <-done)
}

func TestProjectFollows(t *testing.T) {
	dir := newStore(t)
	db := "sqlite:" + filepath.Join(t.TempDir(), "chats.db")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &notifyingBuffer{wrote: make(chan string, 100)}
	done := make(chan int)
	go func() {
		a := app.New(strings.NewReader(""), out, &bytes.Buffer{}, func(string) string { return "" })
		done <- execute(ctx, a, []string{"project", db, "--follow", "--interval", "5ms", "--store", dir, "--json"})
	}()
	require.Contains(t, <-out.wrote, `"added":1`)
	for range 3 {
		require.Equal(t, 0, runLine(t.Context(), "append", "more", "--store", dir).code)
		require.Contains(t, <-out.wrote, `"added":1`)
		require.Equal(t, 0, runLine(t.Context(), "compare", db, "--store", dir).code)
	}
	// It hears at once of what a program does that keeps the store open.
	holder, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	defer holder.Close()
	for thread, err := range holder.Threads(t.Context(), lineage.ThreadQuery{}) {
		require.NoError(t, err)
		active, err := thread.Active(t.Context())
		require.NoError(t, err)
		for range 2 {
			_, err = active.Extend(t.Context(), lineage.Item{Role: "user", Body: []byte("held")})
			require.NoError(t, err)
			require.Contains(t, <-out.wrote, `"added":1`)
		}
	}
	stop()
	require.Equal(t, app.ExitInterrupted, <-done)
	require.Equal(t, 0, runLine(t.Context(), "compare", db, "--store", dir).code)
}

// notifyingBuffer passes on what is written to it.
type notifyingBuffer struct{ wrote chan string }

func (b *notifyingBuffer) Write(p []byte) (int, error) {
	b.wrote <- string(p)
	return len(p), nil
}

func TestManyProcessesAppendAtOnce(t *testing.T) {
	dir := newStore(t)
	const writers = 8
	codes := make(chan result)
	for range writers {
		go func() { codes <- runLine(t.Context(), "append", "at once", "--store", dir, "--wait", "1m") }()
	}
	for range writers {
		got := <-codes
		require.Equal(t, 0, got.code, got.err)
	}
	require.Equal(t, writers+1, strings.Count(runLine(t.Context(), "log", "--oneline", "--store", dir).out, "\n"))
}

// failingWriter is a disk that is full.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestLostOutputIsAFailure(t *testing.T) {
	dir := newStore(t)
	var errOut bytes.Buffer
	a := app.New(strings.NewReader(""), failingWriter{}, &errOut, func(string) string { return "" })
	require.Equal(t, app.ExitFailure, execute(t.Context(), a, []string{"log", "--store", dir}))
	require.Contains(t, errOut.String(), "write output: no space left")
}

// Errors that come together are told apart, and decide the exit code together.
func TestJoinedErrorsAreToldApart(t *testing.T) {
	var messages bytes.Buffer
	a := app.New(nil, io.Discard, &messages, func(string) string { return "" })
	joined := fmt.Errorf("export: %w", errors.Join(errors.New("disk is full"), nil, fmt.Errorf("close: %w", lineage.ErrLocked)))
	require.Equal(t, app.ExitLocked, a.Fail(errors.Join(joined, errors.New("a third\n"))))
	require.Regexp(t, "^lineage: export: disk is full; close: locked; a third\nhint: ", messages.String())
	messages.Reset()
	a.JSON = true
	a.Fail(joined)
	require.Contains(t, messages.String(), `"error":"export: disk is full; close: locked"`)
}

func TestPasswordsAreNotShown(t *testing.T) {
	for _, dsn := range []string{
		"postgres://ada:secret@host/db", "sqlserver://ada:secret@host?database=x", "postgres://host/db?password=secret&user=ada", "postgres://ada:se%cret@host",
	} {
		got := runLine(t.Context(), "stats", "--store", dsn)
		require.Equal(t, app.ExitUsage, got.code)
		require.NotContains(t, got.err, "secret")
		require.NotContains(t, got.err, "cret@")
	}
}

// A command on a damaged store that does not find something says that this may be the damage.
func TestNothingIsMissingWithoutAWordAboutDamage(t *testing.T) {
	dir := newStore(t)
	run := func(args ...string) result { return runLine(t.Context(), append(args, "--store", dir)...) }
	require.Zero(t, run("thread", "create", "--id", "later").code)
	require.Zero(t, run("append", "a walrus", "--thread", "later").code)
	require.Zero(t, run("search", "walrus").code) // the search index knows the last commit
	segments, err := filepath.Glob(filepath.Join(dir, "journal", "*.seg"))
	require.NoError(t, err)
	require.Len(t, segments, 1)
	b, err := os.ReadFile(segments[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(segments[0], b[:bytes.Index(b, []byte("later"))], 0o600))
	for _, line := range [][]string{
		{"log", "--thread", "later"}, {"log", "--thread", "never"}, {"cat", "--thread", "later", ":1"}, {"search", "walrus"}, {"search", "nothing-of"}, {"thread", "list"},
	} {
		got := run(line...)
		require.Equal(t, app.ExitCorrupt, got.code, "%s: %s", line, got.err)
		require.Contains(t, got.err, "corrupt", line)
	}
}

// Messages that were added as one step follow the same message.
func TestFollowedMessagesOfOneStepHaveOneParent(t *testing.T) {
	dir := newStore(t)
	file := filepath.Join(t.TempDir(), "two.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"text":"a"}`+"\n"+`{"text":"b"}`+"\n"), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &notifyingBuffer{wrote: make(chan string, 100)}
	done := make(chan int)
	go func() {
		a := app.New(strings.NewReader(""), out, &bytes.Buffer{}, func(string) string { return "" })
		done <- execute(ctx, a, []string{"log", "-f", "--store", dir, "--json"})
	}()
	var first, a, b records.Message
	require.NoError(t, json.Unmarshal([]byte(<-out.wrote), &first))
	require.Equal(t, 0, runLine(t.Context(), "append", "--jsonl", file, "--together", "--store", dir).code)
	require.NoError(t, json.Unmarshal([]byte(<-out.wrote), &a))
	require.NoError(t, json.Unmarshal([]byte(<-out.wrote), &b))
	require.Equal(t, first.ID, *a.Parent)
	require.Equal(t, first.ID, *b.Parent)
	stop()
	require.Equal(t, app.ExitInterrupted, <-done)
}

// The lines of an error are joined, and what a driver repeats is said once.
func TestSaying(t *testing.T) {
	err := errors.New("cannot connect to `x`:\n\tdial a: refused\n\tdial b: refused\n\tdial a: refused\n\nbusy")
	require.Equal(t, "cannot connect to `x`: dial a: refused; dial b: refused; busy", app.Saying(err))
}

// Flags that exclude or need one another are named as they are written.
func TestFlagGroups(t *testing.T) {
	for args, want := range map[string]string{
		"follow --once --list":            "lineage: --list, --once: only one of them\n",
		"serve --tls-cert x":              "lineage: --tls-cert, --tls-key: all of them or none, and --tls-key is missing\n",
		"serve --link --follow --idle 1s": "lineage: --follow, --link: only one of them\n",
	} {
		got := runLine(t.Context(), strings.Fields(args)...)
		require.Equal(t, app.ExitUsage, got.code)
		require.True(t, strings.HasPrefix(got.err, want), "%s: %s", args, got.err)
	}
}

// A search that may not wait for the whole index answers from what it has, and says what it lacks.
func TestSearchIndexFor(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 1
	dir := newStore(t)
	require.Equal(t, 0, runLine(t.Context(), "append", "hello again", "--store", dir).code)
	lacks := 0
	for {
		got := runLine(t.Context(), "search", "again", "--index-for", "1ns", "--store", dir)
		if got.code == 0 {
			require.Empty(t, got.err)
			break
		}
		require.Equal(t, app.ExitNoHit, got.code)
		require.Contains(t, got.err, "cannot be found yet: search again to index more, or all with --index-for 0")
		require.Less(t, lacks, 10)
		lacks++
	}
	require.Positive(t, lacks)
	require.Equal(t, 0, runLine(t.Context(), "append", "once again", "--store", dir).code)
	require.Equal(t, 2, strings.Count(runLine(t.Context(), "search", "again", "--store", dir, "--json").out, "\n"))
	require.Equal(t, app.ExitUsage, runLine(t.Context(), "search", "again", "--index-for", "-1s", "--store", dir).code)
}
