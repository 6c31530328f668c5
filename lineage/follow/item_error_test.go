package follow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/archive"
)

// An unusable item of a followed file does not name the file, whose path is beside it. One of another file does.
func TestItemErrorOfAFollowedFile(t *testing.T) {
	line := archive.Position{File: "a.jsonl", Line: 4, Offset: 519}
	for expected, at := range map[string]archive.Position{
		"line 4 (byte 519): malformed: bad string":            line,
		"line 4 (byte 519), message m: malformed: bad string": line.In("message m"),
		"message m: malformed: bad string":                    {File: "a.jsonl", Inside: "message m"},
		"malformed: bad string":                               {File: "a.jsonl"},
		"b.jsonl: line 4 (byte 519): malformed: bad string":   {File: "b.jsonl", Line: 4, Offset: 519},
		"b.jsonl: malformed: bad string":                      {File: "b.jsonl"},
	} {
		for _, path := range []string{"/home/ada/.codex/sessions/a.jsonl", "/home/ada/.codex/sessions/a.jsonl.zst"} {
			err := (&file{path: path}).itemError(archive.Damaged(at, archive.Malformed("bad string")))
			require.EqualError(t, err, expected, path)
			require.ErrorIs(t, err, archive.ErrMalformed)
			var damage *archive.Damage
			require.ErrorAs(t, err, &damage)
			require.Equal(t, at, damage.At)
		}
	}
}

// What is wrong with a session is said without its name by an event and by a later list.
func TestProblemDoesNotRepeatTheName(t *testing.T) {
	h := newHome(t)
	store := memory(t)
	path := h.path(".codex", "sessions", "2025", "05", "06", "rollout-2025-05-06T00-00-00-0a1b2c3d-0000-0000-0000-000000000000.jsonl")
	h.write(t, path, `{"timestamp":"2025-05-06T00:00:00.000Z","type":"session_meta","payload":{"id":"0a1b2c3d-0000-0000-0000-000000000000","timestamp":"2025-05-06T00:00:00.000Z","cwd":"/w"}}`+"\n"+
		`{"broken`+"\n"+
		`{"timestamp":"2025-05-06T00:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`+"\n")
	o := h.options()
	var said []string
	o.Events = func(e Event) {
		if e.Err != nil {
			require.Equal(t, path, e.Path)
			said = append(said, e.Err.Error())
		}
	}
	o.Once = true
	require.NoError(t, Run(bg, store, o))
	require.Len(t, said, 1)
	require.Regexp(t, `^line 2 \(byte \d+\): `, said[0])
	all, err := List(bg, store, o)
	require.NoError(t, err)
	var problems []Problem
	for i := range all {
		problems = append(problems, all[i].Problems...)
	}
	require.Equal(t, []Problem{{Path: path, Error: said[0], Skipped: 1}}, problems)
}
