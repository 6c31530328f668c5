package importer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// copiedSession is a session of Claude Code. Ids of lines begin with a prefix, times are on a day.
func copiedSession(id, prefix string, day int, answers string, last ...string) string {
	var b strings.Builder
	n, parent := 0, "null"
	line := func(more string) {
		n++
		uuid := fmt.Sprintf("%s0000000-0000-4000-8000-%012d", prefix, n)
		fmt.Fprintf(&b, `{"parentUuid":%s,"sessionId":%q,"timestamp":"2026-01-%02dT10:00:%02d.000Z","uuid":%q,%s}`+"\n", parent, id, day, n, uuid, more)
		parent = fmt.Sprintf("%q", uuid)
	}
	line(`"type":"user","message":{"role":"user","content":"start the server"}`)
	for i, c := range answers {
		answer := fmt.Sprintf(`"id":"msg_%c","type":"message","role":"assistant","model":"m","usage":{"input_tokens":1,"output_tokens":2}`, c)
		line(`"type":"assistant","requestId":"r` + string(c) + `","message":{` + answer + `,"content":[{"type":"text","text":"This is answer ` + fmt.Sprint(i) + `."}]}`)
		line(`"type":"progress","data":{"type":"hook_progress","command":"true"},"toolUseID":"t` + string(c) + `"`)
		line(fmt.Sprintf(`"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%c","content":"done"}]},"toolUseResult":{"stdout":"done"},"sourceToolAssistantUUID":%q`,
			c, fmt.Sprintf("%s0000000-0000-4000-8000-%012d", prefix, n-1)))
	}
	for _, text := range last {
		line(fmt.Sprintf(`"type":"user","message":{"role":"user","content":%q}`, text))
	}
	return b.String()
}

// A copy of a session in which the lines have other ids and times shares the messages of the one it was copied from, up to the
// first that is another one. The id that a provider gave an answer says what a copy is: nothing else does.
func TestCopiesUnderOtherIDs(t *testing.T) {
	const one, two = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	first := copiedSession(one, "a", 1, "abc", "and then?")
	for name, c := range map[string]struct {
		copy   string
		user   string
		shared int64
	}{
		"all of it":              {copiedSession(two, "b", 2, "abc", "and then?"), "ada", 8},
		"and more":               {copiedSession(two, "b", 2, "abc", "and then?", "go on"), "ada", 8},
		"the same line ids":      {copiedSession(two, "a", 2, "abc", "and then?"), "ada", 8},
		"the same times":         {copiedSession(two, "b", 1, "abc", "and then?"), "ada", 8},
		"up to an answer":        {copiedSession(two, "b", 2, "ab", "stop"), "ada", 5},
		"another answer":         {copiedSession(two, "b", 2, "abx", "and then?"), "ada", 5},
		"other answers":          {copiedSession(two, "b", 2, "xyz", "and then?"), "ada", 0},
		"answers without an id":  {strings.NewReplacer(`"id":"msg_a",`, "", `"id":"msg_b",`, "", `"id":"msg_c",`, "").Replace(copiedSession(two, "b", 2, "abc")), "ada", 0},
		"another beginning":      {strings.Replace(copiedSession(two, "b", 2, "abc"), "start the server", "stop the server", 1), "ada", 0},
		"another user's session": {copiedSession(two, "b", 2, "abc", "and then?"), "bob", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			importText(t, s, one+".jsonl", first, importer.Options{UserID: "ada"})
			report := importText(t, s, two+".jsonl", c.copy, importer.Options{UserID: c.user})
			require.Equal(t, c.shared, report.SharedMessages)
			require.Equal(t, c.shared, common(t, s, one, two))
			require.Zero(t, importText(t, s, two+".jsonl", c.copy, importer.Options{UserID: c.user}).NewMessages)
			require.Zero(t, importText(t, s, one+".jsonl", first, importer.Options{UserID: "ada"}).NewMessages)
			longer := c.copy + strings.ReplaceAll(strings.SplitAfter(copiedSession(two, "e", 3, "z"), "\n")[1], `"parentUuid":"e`, `"parentUuid":"b`)
			require.EqualValues(t, 1, importText(t, s, two+".jsonl", longer, importer.Options{UserID: c.user}).NewMessages)
			if c.shared > 0 { // also if the one that it was copied from is gone
				thread, err := s.FindThread(context.Background(), one)
				require.NoError(t, err)
				require.NoError(t, thread.Delete(context.Background()))
				require.Zero(t, importText(t, s, two+".jsonl", longer, importer.Options{UserID: c.user}).NewMessages)
			}
			requireSound(t, s)
		})
	}
}

// common returns the number of messages at the start of two threads that are the same spans.
func common(t *testing.T, s *lineage.Store, a, b string) int64 {
	t.Helper()
	ctx := context.Background()
	var all [2][]*lineage.Entry
	for i, id := range []string{a, b} {
		thread, err := s.FindThread(ctx, id)
		require.NoError(t, err)
		c, err := thread.Active(ctx)
		require.NoError(t, err)
		all[i], err = c.All(ctx)
		require.NoError(t, err)
	}
	n := 0
	for n < min(len(all[0]), len(all[1])) && all[0][n].Span == all[1][n].Span {
		n++
	}
	return int64(n)
}
