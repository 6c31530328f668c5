package follow

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
)

// Gemini CLI writes an answer before its tools have run, and again with their results. Two followers read it once, without branches, also
// if the session ends before that. A later run with Once does not wait for an answer that may be complete.
func TestFollowGeminiWhileItWrites(t *testing.T) {
	h, store, clock := newHome(t), memory(t), newClock()
	path := h.path(".gemini", "tmp", "p", "chats", "session-1.jsonl")
	h.write(t, path, "")
	write := func(lines ...string) {
		text := strings.Join(lines, "\n") + "\n"
		h.append(t, path, strings.ReplaceAll(text, "NOW", clock.Now().UTC().Format(time.RFC3339Nano)))
	}
	answer := func(id, text, calls string) string {
		return fmt.Sprintf(`{"id":%q,"timestamp":"NOW","type":"gemini","content":%q%s}`, id, text, calls)
	}
	const called = `,"toolCalls":[{"id":"c","name":"ls","args":{},"result":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"b.txt"}}}]}]`
	const begin = `{"$set":{"messages":[{"id":"c1","timestamp":"NOW","type":"user","content":[{"text":"<session_context>\nIt is Monday."}]}]}}`
	const updated = `{"$set":{"lastUpdated":"NOW"}}`
	stored := func(store *lineage.Store) (ids []string) {
		for _, e := range onlyBranch(t, store, "s") {
			ids = append(ids, e.SourceID)
		}
		return ids
	}
	var runs []*following
	write(`{"sessionId":"s","projectHash":"p","startTime":"NOW","lastUpdated":"NOW"}`, begin, `{"id":"u1","timestamp":"NOW","type":"user","content":[{"text":"List"}]}`, updated)
	for range 2 {
		o := h.options()
		o.Clock = clock
		runs = append(runs, start(t, store, o))
	}
	requireStored := func(ids ...string) {
		t.Helper()
		h.caughtUp(t, runs...)
		require.Equal(t, ids, stored(store))
	}
	requireStored("c1", "u1")
	write(answer("a1", "", ""), updated)
	requireStored("c1", "u1")
	clock.advance(2 * holdComplete) // a tool takes long
	requireStored("c1", "u1")
	write(answer("a1", "", called), `{"id":"r1","timestamp":"NOW","type":"user","content":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"b.txt"}}}]}`, updated)
	requireStored("c1", "u1", "a1")
	write(answer("a2", "I look again.", ""), updated)
	requireStored("c1", "u1", "a1")
	write(answer("a2", "I look again.", called), updated)
	requireStored("c1", "u1", "a1", "a2")
	write(answer("a3", "One file.", ""), updated)
	requireStored("c1", "u1", "a1", "a2")

	later := memory(t)
	once(t, later, h.options())
	require.Equal(t, []string{"c1", "u1", "a1", "a2", "a3"}, stored(later))

	clock.advance(holdComplete)
	requireStored("c1", "u1", "a1", "a2", "a3")
	write(begin) // it resumes the session, and states the rest of the history next
	requireStored("c1", "u1", "a1", "a2", "a3")
	write(`{"$set":{"messages":[{"id":"c1","timestamp":"NOW","type":"user","content":[{"text":"<session_context>\nIt is Monday."}]},{"id":"u1"},{"id":"a1"},{"id":"a2"},{"id":"a3"}]}}`)
	write(`{"id":"u2","timestamp":"NOW","type":"user","content":[{"text":"More"}]}`, answer("a4", "", ""), updated)
	requireStored("c1", "u1", "a1", "a2", "a3", "u2")
	for _, f := range runs {
		f.stop(t)
	}
	once(t, store, h.options()) // the program may still be at it
	require.Equal(t, []string{"c1", "u1", "a1", "a2", "a3", "u2"}, stored(store))
	o := h.options()
	o.Clock = clock
	clock.advance(holdTime)
	once(t, store, o)
	require.Equal(t, []string{"c1", "u1", "a1", "a2", "a3", "u2", "a4"}, stored(store))
	source, err := FindSource(t.Context(), store, o.Machine.ID, path)
	require.NoError(t, err)
	var exported bytes.Buffer
	require.NoError(t, source.Export(t.Context(), &exported))
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(file), exported.String())
}

// An answer that is held back is read when the file is gone or has another name: by two followers at once, by a later run, and
// by one with Once. It is there once, on one branch.
func TestHeldAnswerOfAFileThatGoes(t *testing.T) {
	for _, renamed := range []bool{false, true} {
		for _, stopped := range []bool{false, true} {
			t.Run(fmt.Sprint("renamed ", renamed, ", stopped ", stopped), func(t *testing.T) {
				h, store, clock := newHome(t), memory(t), newClock()
				now := clock.Now().UTC().Format(time.RFC3339Nano)
				var paths []string
				for i := range 2 {
					path := h.path(".gemini", "tmp", "p", "chats", fmt.Sprintf("session-%d.jsonl", i))
					h.write(t, path, strings.ReplaceAll(fmt.Sprintf(`{"sessionId":"s%d","projectHash":"p","startTime":"NOW","lastUpdated":"NOW"}
{"id":"u","timestamp":"NOW","type":"user","content":[{"text":"Which?"}]}
{"id":"a","timestamp":"NOW","type":"gemini","content":"This one."}
`, i), "NOW", now))
					paths = append(paths, path)
				}
				o := h.options()
				o.Clock = clock
				stored := func() (ids [][]string) {
					for i := range 2 {
						var of []string
						for _, e := range onlyBranch(t, store, fmt.Sprint("s", i)) {
							of = append(of, e.SourceID)
						}
						ids = append(ids, of)
					}
					return ids
				}
				runs := []*following{start(t, store, o), start(t, store, o)}
				require.Equal(t, [][]string{{"u"}, {"u"}}, stored())
				if stopped {
					for _, f := range runs {
						f.stop(t)
					}
				}
				for _, path := range paths {
					if renamed {
						require.NoError(t, os.Rename(path, strings.Replace(path, "session-", "old-", 1)))
					} else {
						require.NoError(t, os.Remove(path))
					}
				}
				if stopped {
					once := o
					once.Once = true
					require.NoError(t, Run(t.Context(), store, once))
				} else {
					h.caughtUp(t, runs...)
				}
				require.Equal(t, [][]string{{"u", "a"}, {"u", "a"}}, stored())
				if !stopped {
					for _, f := range runs {
						f.stop(t)
					}
				}
				once(t, store, o)
				require.Equal(t, [][]string{{"u", "a"}, {"u", "a"}}, stored())
			})
		}
	}
}

// A held answer of a file that is gone, which the store cannot read now, is read by a later run.
func TestStoreFailsWithAHeldAnswer(t *testing.T) {
	h, clock := newHome(t), newClock()
	engine := failingReads{fullDisk{write.Of(memory(t)).Engine(), new(atomic.Bool), new(atomic.Int64)}, new(atomic.Bool)}
	store := lineage.New(engine)
	path := h.path(".gemini", "tmp", "p", "chats", "session-1.jsonl")
	h.write(t, path, strings.ReplaceAll(`{"sessionId":"s","projectHash":"p","startTime":"NOW","lastUpdated":"NOW"}
{"id":"u","timestamp":"NOW","type":"user","content":[{"text":"Which?"}]}
{"id":"a","timestamp":"NOW","type":"gemini","content":"This one."}
`, "NOW", clock.Now().UTC().Format(time.RFC3339Nano)))
	o := h.options()
	o.Clock = clock
	start(t, store, o).stop(t)
	require.NoError(t, os.Remove(path))
	o.Once = true
	engine.fails.Store(true)
	require.NoError(t, Run(t.Context(), store, o), "the store takes changes")
	require.Len(t, onlyBranch(t, lineage.New(engine.Engine), "s"), 1)
	engine.fails.Store(false)
	once(t, store, o)
	require.Len(t, onlyBranch(t, store, "s"), 2)
}
