package resume_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/resume"
)

// owned are samples of sessions of agents, and where the agent keeps them.
var owned = []struct{ agent, path, sample, session string }{
	{"codex", "2026/11/27/rollout-2026-11-27T18-26-54-01a21e42-a82f-7492-bf98-cb89e6a74924.jsonl", "agents/codex/rollout-2026-11-27T18-26-54-01a21e42-a82f-7492-bf98-cb89e6a74924.jsonl", "01a21e42-a82f-7492-bf98-cb89e6a74924"},
	{"codex", "2026/01/01/rollout-compacted.jsonl", "codex-made/rollout-compacted.jsonl", ""},
	{"pi", "--w--/2026-11-27T18-26-47-420Z_01a21e42-8bf6-72fe-a07c-6a324557d85b.jsonl", "agents/pi/2026-11-27T18-26-47-420Z_01a21e42-8bf6-72fe-a07c-6a324557d85b.jsonl", "01a21e42-8bf6-72fe-a07c-6a324557d85b"},
	{"pi", "--w--/2026-11-27T18-30-31-003Z_01a21e45-f55a-7165-8fa1-7f4a09997b5f.jsonl", "agents/pi/2026-11-27T18-30-31-003Z_01a21e45-f55a-7165-8fa1-7f4a09997b5f.jsonl", "01a21e45-f55a-7165-8fa1-7f4a09997b5f"},
	{"claude-code", "-w/0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001.jsonl", "claude-code-made/0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001.jsonl", "0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001"},
	{"qwen", "-w/chats/27d495d1-de2d-449d-af11-d42d4d6ef80d.jsonl", "agents/qwen/27d495d1-de2d-449d-af11-d42d4d6ef80d.jsonl", "27d495d1-de2d-449d-af11-d42d4d6ef80d"},
}

// sampleAlone puts a sample, without what it says of other files.
func (h *home) sampleAlone(o struct{ agent, path, sample, session string }) []byte {
	raw, err := os.ReadFile(samples + o.sample)
	require.NoError(h.t, err)
	raw = bytes.Replace(raw, []byte(`,"history_base":{"thread_id":"rollout-elsewhere","end_ordinal_exclusive":7,"end_byte_offset":900}`), nil, 1)
	h.put(o.agent, o.path, raw)
	return raw
}

// A session that is resumed in its own agent at any position has the agent's own lines, and when it is followed, its messages are
// those of the session that it was made of.
func TestOwnLinesAreRecognised(t *testing.T) {
	for _, o := range owned {
		t.Run(path.Base(o.sample), func(t *testing.T) {
			h := newHome(t)
			h.sampleAlone(o)
			h.follow()
			type made struct {
				thread  *lineage.Thread
				of      lineage.SpanRef
				spans   []lineage.SpanRef
				session *resume.Session
			}
			var all []made
			threads := h.threads()
			for _, thread := range threads {
				for _, tip := range h.tips(thread) {
					spans := h.spans(tip)
					for n := range spans {
						s := h.plan(o.agent, thread, spans[n])
						h.write(s)
						all = append(all, made{thread, spans[n], spans[:n+1], s})
					}
				}
			}
			h.follow()
			require.Len(t, h.threads(), len(threads))
			own := 0
			for _, m := range all {
				if m.session.Own == len(m.spans) {
					require.Equal(t, m.spans, h.spans(h.branch(m.thread, m.session)), "position %d", len(m.spans))
					require.Empty(t, m.session.Losses)
					own++
					continue
				}
				// A position inside of a record of several messages: the others are not in it.
				require.Equal(t, "rollout-compacted.jsonl", path.Base(o.sample), "position %d", len(m.spans))
			}
			require.GreaterOrEqual(t, own, 3)
		})
	}
}

// The lines of a session that is resumed at its end are those of the agent, but for the members that must differ.
func TestOwnLinesStay(t *testing.T) {
	changed := map[string][]string{
		"codex":       {"timestamp", "ordinal", "payload"},
		"pi":          {"id", "timestamp", "cwd", "parentSession", "data"},
		"claude-code": {"sessionId"},
		"qwen":        {"sessionId", "forkedFrom", "cwd"},
	}
	for _, o := range owned {
		t.Run(path.Base(o.sample), func(t *testing.T) {
			h := newHome(t)
			was := make(map[string]bool)
			same, edited := 0, 0
			for line := range bytes.Lines(h.sampleAlone(o)) {
				was[string(bytes.TrimSpace(line))] = true
			}
			h.follow()
			thread := h.threads()[0]
			for n, line := range h.write(h.plan(o.agent, thread, h.tip(thread))) {
				if was[string(line)] {
					same++
					continue
				}
				edited++
				found := n == 0 && o.agent == "qwen" // it states the folder
				for before := range was {
					found = found || equalBut(t, []byte(before), line, changed[o.agent])
				}
				require.True(t, found, "line %d: %s", n+1, line)
			}
			require.Positive(t, edited)
			if o.agent == "pi" {
				require.LessOrEqual(t, edited, 2) // the header, and data of an extension
				require.GreaterOrEqual(t, same, 10)
			}
		})
	}
}

// equalBut reports whether two objects have equal bytes in all members but some.
func equalBut(t *testing.T, a, b []byte, but []string) bool {
	members := func(raw []byte) map[string]json.RawMessage {
		all := make(map[string]json.RawMessage)
		_ = json.Unmarshal(raw, &all) // a damaged line equals none
		for _, key := range but {
			if key != "payload" || text(all["type"]) != "response_item" {
				delete(all, key)
			}
		}
		return all
	}
	return reflect.DeepEqual(members(a), members(b))
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// A fork in another thread is continued with the agent's own lines, too.
func TestForkElsewhere(t *testing.T) {
	h := newHome(t)
	o := owned[2]
	h.sample(o.agent, o.path, o.sample)
	h.follow()
	tip := h.tip(h.thread(o.session))
	thread, err := h.store.CreateThread(bg, lineage.ThreadOptions{Title: "Elsewhere"})
	require.NoError(t, err)
	active, err := h.thread(o.session).Active(bg)
	require.NoError(t, err)
	_, err = thread.CreateBranch(bg, "fork", lineage.BranchOptions{From: active, At: tip})
	require.NoError(t, err)
	require.Equal(t, 8, h.plan("pi", thread, tip).Own)

	// Not in another agent.
	require.Zero(t, h.plan("codex", thread, tip).Own)
}

// A session of Codex whose lines are bare items is translated, because Codex does not read it any more. Of one whose lines are
// records, states between them are left out.
func TestOldSessionsOfCodex(t *testing.T) {
	item := `{"type":"message","role":"user","content":[{"type":"input_text","text":"List the files."}]}`
	for name, session := range map[string]string{
		"bare":   `{"id":"01989f7c-8f5a-7a31-9c8e-0a3f5d1b2c4d","timestamp":"2025-08-12T09:00:00Z","instructions":null}` + "\n" + item + "\n",
		"states": `{"timestamp":"2025-10-12T09:00:00Z","type":"session_meta","payload":{"id":"01989f7c-8f5a-7a31-9c8e-0a3f5d1b2c4d","cwd":"/w"}}` + "\n" + `{"record_type":"state"}` + "\n" + `{"timestamp":"2025-10-12T09:00:00Z","type":"response_item","payload":` + item + "}\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.put("codex", "2025/08/12/rollout-2025-08-12T09-00-00-01989f7c-8f5a-7a31-9c8e-0a3f5d1b2c4d.jsonl", []byte(session))
			h.follow()
			thread := h.threads()[0]
			s := h.plan("codex", thread, h.tip(thread))
			require.Empty(t, s.Losses)
			var kinds []string
			for _, line := range h.write(s) {
				kind := text(rawjson.Get(line, "type"))
				kinds = append(kinds, kind)
				require.NotEmpty(t, rawjson.Get(line, "payload"))
			}
			want := map[string][]string{"bare": {"session_meta", "response_item", "event_msg"}, "states": {"session_meta", "response_item"}}
			require.Equal(t, want[name], kinds)
			h.follow()
			require.Len(t, h.threads(), 1)
			require.Len(t, h.spans(h.tip(thread)), 1)
		})
	}
}

// Sessions of pi with random branches, records between messages and broken lines: from any message of any branch, the file has the
// entries that lead to it and no other messages, and its end is the message.
func TestRandomTrees(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var b bytes.Buffer
		b.WriteString(`{"type":"session","version":3,"id":"tree","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n")
		parents, isMessage := []int{}, []bool{}
		for i := range rapid.IntRange(2, 15).Draw(r, "entries") {
			parent, id := "null", -1
			if i > 0 {
				id = rapid.IntRange(0, i-1).Draw(r, "parent")
				parent = fmt.Sprintf(`"e%d"`, id)
			}
			parents = append(parents, id)
			isMessage = append(isMessage, i == 0 || rapid.IntRange(0, 3).Draw(r, "kind") > 0)
			if isMessage[i] {
				fmt.Fprintf(&b, `{"type":"message","id":"e%d","parentId":%s,"timestamp":"2026-01-01T00:00:%02d.000Z","message":{"role":"user","content":[{"type":"text","text":"said %d."}],"timestamp":1}}`+"\n", i, parent, i, i)
			} else {
				fmt.Fprintf(&b, `{"type":"custom","customType":"note","data":{"sandbox":"EVIL","n":%d},"id":"e%d","parentId":%s,"timestamp":"2026-01-01T00:00:%02d.000Z"}`+"\n", i, i, parent, i)
			}
			if rapid.IntRange(0, 5).Draw(r, "broken") == 0 {
				b.WriteString("{\"type\":\"message\",\"id\n")
			}
		}
		h := newHome(t)
		h.put("pi", "--w--/2026_tree.jsonl", b.Bytes())
		h.follow()
		thread := h.thread("tree")
		for _, tip := range h.tips(thread) {
			spans := h.spans(tip)
			n := rapid.IntRange(0, len(spans)-1).Draw(r, "position")
			e, err := h.store.Span(bg, spans[n])
			require.NoError(t, err)
			s := h.plan("pi", thread, spans[n])
			require.Equal(t, n+1, s.Own)
			var want []string
			var at int
			_, err = fmt.Sscanf(e[0].SourceID, "e%d", &at)
			require.NoError(t, err)
			for ; at >= 0; at = parents[at] {
				want = append([]string{fmt.Sprintf("e%d", at)}, want...)
			}
			var got []string
			for _, line := range h.write(s)[1:] {
				require.NotContains(t, string(line), "EVIL")
				var entry struct{ ID string }
				require.NoError(t, json.Unmarshal(line, &entry))
				got = append(got, entry.ID)
			}
			require.Equal(t, want, got)
			h.follow()
			require.Equal(t, spans[:n+1], h.spans(h.branch(thread, s)))
		}
	})
}
