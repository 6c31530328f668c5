package resume_test

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"
)

// owned are samples of sessions of agents, and where the agent keeps them.
var owned = []struct{ agent, path, sample, session string }{
	{"codex", "2026/11/27/rollout-2026-11-27T18-26-54-01a21e42-a82f-7492-bf98-cb89e6a74924.jsonl", "agents/codex/rollout-2026-11-27T18-26-54-01a21e42-a82f-7492-bf98-cb89e6a74924.jsonl", "01a21e42-a82f-7492-bf98-cb89e6a74924"},
	{"codex", "2026/01/01/rollout-compacted.jsonl", "codex-made/rollout-compacted.jsonl", ""},
	{"pi", "--w--/2026-11-27T18-26-47-420Z_01a21e42-8bf6-72fe-a07c-6a324557d85b.jsonl", "agents/pi/2026-11-27T18-26-47-420Z_01a21e42-8bf6-72fe-a07c-6a324557d85b.jsonl", "01a21e42-8bf6-72fe-a07c-6a324557d85b"},
	{"pi", "--w--/2026-11-27T18-30-31-003Z_01a21e45-f55a-7165-8fa1-7f4a09997b5f.jsonl", "agents/pi/2026-11-27T18-30-31-003Z_01a21e45-f55a-7165-8fa1-7f4a09997b5f.jsonl", "01a21e45-f55a-7165-8fa1-7f4a09997b5f"},
	{"claude-code", "-w/0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001.jsonl", "claude-code-made/0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001.jsonl", "0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001"},
}

// A session that is resumed in its own agent at any position has the agent's own lines, and when it is followed, its messages are
// those of the session that it was made of.
func TestOwnLinesAreRecognised(t *testing.T) {
	for _, o := range owned {
		t.Run(path.Base(o.sample), func(t *testing.T) {
			h := newHome(t)
			h.sample(o.agent, o.path, o.sample)
			h.follow()
			for _, thread := range h.threads() {
				for _, tip := range h.tips(thread) {
					spans := h.spans(tip)
					for n := range spans {
						s := h.plan(o.agent, thread, spans[n])
						if s.Own != n+1 {
							t.Logf("position %d: %d of %d own", n+1, s.Own, s.Messages)
						}
						h.write(s)
						h.follow()
						require.Equal(t, spans[:n+1], h.spans(h.tip(h.thread(s.ID))), "position %d", n+1)
					}
				}
			}
		})
	}
}
