package follow

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
