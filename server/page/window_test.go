package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/page"
)

// call returns a call of a tool, and its result.
func call(n int) []lineage.Item {
	id := fmt.Sprint("call-", n)
	return []lineage.Item{
		{Role: "assistant", Type: "application/json", Body: mustJSON(map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{"command": fmt.Sprintf("step %d;", n)}}}})},
		{Role: "user", Type: "application/json", Body: mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": fmt.Sprintf("end of %d;", n)}}})},
	}
}

// A call has its result, and a result its call, wherever a window of the history begins and ends.
func TestCallsAtEdgesOfWindows(t *testing.T) {
	s := newSite(t, page.Options{})
	items := []lineage.Item{lineage.User("go")}
	for n := range 120 {
		items = append(items, call(n)...)
	}
	thread, _ := s.thread(lineage.ThreadOptions{}, items...)
	at := "/t/" + thread.ID().String() + "?part&from="
	for _, from := range []int{2, 3, 50, 51} {
		_, body := s.get(fmt.Sprint(at, from))
		require.NotContains(t, body, "no result yet")
		require.NotContains(t, body, "<bdi>Result</bdi>", "the call is in the window before")
		require.Equal(t, 50, strings.Count(body, "step "))
		require.Equal(t, 50, strings.Count(body, "end of "))
	}
	_, body := s.get(at + "3")
	require.NotContains(t, body, "end of 0;", "it is shown where it was called")
	require.Contains(t, body, "end of 50;", "the window ends with the call: its result is one message further")
}

// A message that was asked for again after the result of a call is one of several.
func TestRetriesAfterResults(t *testing.T) {
	s := newSite(t, page.Options{})
	items := append([]lineage.Item{lineage.User("go")}, call(1)...)
	thread, main := s.thread(lineage.ThreadOptions{}, append(items, lineage.Assistant("first answer"))...)
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	result, err := s.store.At(t.Context(), tip, 3)
	require.NoError(t, err)
	other, err := thread.CreateBranch(t.Context(), "other", lineage.BranchOptions{At: result})
	require.NoError(t, err)
	_, err = other.Extend(t.Context(), lineage.Assistant("second answer"))
	require.NoError(t, err)
	_, body := s.get("/t/" + thread.ID().String())
	require.Contains(t, body, "1 of 2")
	_, body = s.get("/t/" + thread.ID().String() + "?in=" + other.ID().String())
	require.Contains(t, body, "2 of 2")
}
