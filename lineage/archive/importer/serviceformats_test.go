package importer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// serviceFixtures are exports of chat services and coding agents.
var serviceFixtures = []struct {
	path, format            string
	conversations, messages int64
	skipped, repaired       int64
}{
	{"chatgpt-conv-extractor/conversations.json", "chatgpt", 8, 18, 0, 2},
	{"chatgpt-conv-extractor/hardening.json", "chatgpt", 5, 11, 0, 0},
	{"chatgpt-export-studio/conversations.json", "chatgpt", 2, 6, 0, 0},
	{"chatgpt-export-studio/sample_export.zip", "chatgpt", 2, 6, 0, 0},
	{"chatgpt-made/conversations.json", "chatgpt", 2, 8, 1, 0},
	{"librechat/chatgpt-tree.json", "chatgpt", 1, 12, 0, 0},
	{"librechat/librechat-export.json", "librechat", 1, 6, 0, 0},
	{"librechat/librechat-linear.json", "librechat", 1, 2, 0, 0},
	{"librechat/librechat-opts-nonr-branches.json", "librechat", 1, 5, 0, 0},
	{"librechat/librechat-tree.json", "librechat", 1, 9, 0, 0},
	{"claude-chat-viewer/conversations.json", "claude", 2, 6, 0, 0},
	{"claude-chat-viewer/conversations-multiple-errors.json", "claude", 4, 4, 1, 0},
	{"claude-chat-viewer/conversation-with-errors.json", "claude", 1, 10, 0, 0},
	{"claude-chat-viewer/conversation-rendering-tests.json", "claude", 1, 10, 0, 0},
	{"claude-made/conversations.json", "claude", 1, 5, 0, 0},
	{"deepseek-made/conversations.json", "deepseek", 2, 5, 0, 0},
	{"grok-made/prod-grok-backend.json", "grok", 2, 7, 2, 0},
	{"open-webui/export.json", "open-webui", 2, 7, 1, 0},
	{"claude-code-log/edge_cases.jsonl", "claude-code", 1, 13, 3, 3},
	{"claude-code-log/representative_messages.jsonl", "claude-code", 1, 11, 0, 1},
	{"claude-code-log/session_b.jsonl", "claude-code", 1, 3, 0, 1},
	{"claude-code-log/todowrite_examples.jsonl", "claude-code", 1, 11, 0, 0},
	{"claude-code-spotter/short.jsonl", "claude-code", 1, 11, 0, 0},
	{"claude-code-made/0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001.jsonl", "claude-code", 1, 11, 1, 0},
	{"agentsview/valid_session.jsonl", "claude-code", 1, 4, 0, 0},
	{"agentsview/standard_session.jsonl", "codex", 1, 2, 0, 0},
	{"agentsview/function_calls.jsonl", "codex", 1, 3, 0, 0},
	{"agentsview/fc_args_1.jsonl", "codex", 1, 2, 0, 0},
	{"codex-made/rollout-fork.jsonl", "codex", 1, 5, 0, 0},
	{"codex-made/rollout-compacted.jsonl", "codex", 1, 6, 1, 0},
	{"agents/pi/2026-11-27T18-26-47-420Z_01a21e42-8bf6-72fe-a07c-6a324557d85b.jsonl", "pi", 1, 8, 0, 0},
	{"agents/pi/2026-11-27T18-30-31-003Z_01a21e45-f55a-7165-8fa1-7f4a09997b5f.jsonl", "pi", 1, 14, 0, 0},
	{"agents/pi/2026-11-27T18-30-31-006Z_01a21e45-f55e-755b-8a3a-83892853cb0e.jsonl", "pi", 1, 16, 0, 0},
	{"agents/openclaw/7d1a2b3c-0000-4000-8000-000000000007.jsonl", "openclaw-jsonl", 1, 6, 0, 0},
	{"agents/copilot/049410b4-c1df-44ee-87a5-caa1c349091e/events.jsonl", "copilot", 1, 6, 0, 0},
	{"agents/copilot/8b23eac7-b9d0-4c24-8e3c-90f5f8a8d02b/events.jsonl", "copilot", 1, 3, 0, 0},
	{"agents/copilot/made/events.jsonl", "copilot", 1, 10, 0, 0},
	{"agents/gemini/session-2026-11-27T19-00-be8bdd25.jsonl", "gemini", 1, 6, 0, 0},
	{"agents/gemini/made.jsonl", "gemini", 1, 6, 0, 0},
	{"agentsview/standard_session.json", "gemini", 1, 4, 0, 0},
	{"agentsview/thinking_only.json", "gemini", 1, 2, 0, 0},
	{"agentsview/tool_calls.json", "gemini", 1, 2, 0, 0},
	{"agents/qwen/27d495d1-de2d-449d-af11-d42d4d6ef80d.jsonl", "qwen", 1, 6, 0, 0},
	{"agents/qwen/c190cd9d-544a-49d6-ab6c-f38d501ca4b8.jsonl", "qwen", 1, 8, 0, 0},
	{"agents/qwen/made.jsonl", "qwen", 1, 5, 0, 0},
	{"agents/vscode/8e5c4a9e-0000-4000-8000-000000000001.jsonl", "vscode", 1, 6, 0, 0},
	{"agents/vscode/8e5c4a9e-0000-4000-8000-000000000002.json", "vscode", 1, 2, 0, 0},
	{"agents/codex/rollout-2026-11-27T18-26-54-01a21e42-a82f-7492-bf98-cb89e6a74924.jsonl", "codex", 1, 8, 0, 0},
}

func TestServiceFormatsGolden(t *testing.T) {
	for _, f := range serviceFixtures {
		t.Run(f.path, func(t *testing.T) {
			conversations, damages := readAll(t, archive.Path(fixture(f.path)), importer.Options{})
			for _, c := range conversations {
				damages = append(damages, c.Skipped...)
			}
			goldenText(t, strings.ReplaceAll(f.path, "/", "_")+".txt", shown(conversations, damages))
		})
	}
}

// No fixture is detected as two formats, and each is imported once.
func TestServiceFormatsImport(t *testing.T) {
	ctx := context.Background()
	for _, f := range serviceFixtures {
		t.Run(f.path, func(t *testing.T) {
			if b, err := os.ReadFile(fixture(f.path)); filepath.Ext(f.path) != ".zip" {
				require.NoError(t, err)
				for _, format := range formats.All() {
					if format.Detect != nil && format.Detect(archive.Head{Name: filepath.Base(f.path), Bytes: b[:min(len(b), archive.HeadSize)]}) {
						require.Equal(t, f.format, format.Name)
					}
				}
			}
			s := storetest.New(t)
			report, err := importer.Import(ctx, s, archive.Path(fixture(f.path)), importer.Options{})
			require.NoError(t, err)
			require.Equal(t, []string{f.format}, report.Formats)
			require.Equal(t, f.conversations, report.Conversations, "conversations")
			require.Equal(t, f.messages, report.Messages, "messages")
			require.Equal(t, f.skipped, report.SkippedCount, "skipped: %v", report.Skipped)
			require.Equal(t, f.repaired, report.RepairedCount, "repaired: %v", report.Repaired)
			requireSound(t, s)
			requireImportedAgain(t, s, archive.Path(fixture(f.path)))
		})
	}
}

// requireImportedAgain requires that importing an archive again adds nothing.
func requireImportedAgain(t testing.TB, s *lineage.Store, src archive.Source) {
	t.Helper()
	ctx := context.Background()
	head, err := s.View().Head(ctx)
	require.NoError(t, err)
	again, err := importer.Import(ctx, s, src, importer.Options{})
	require.NoError(t, err)
	require.Zero(t, again.NewMessages)
	require.Zero(t, again.NewConversations)
	now, err := s.View().Head(ctx)
	require.NoError(t, err)
	require.Equal(t, head, now, "importing again made commits")
}

// requireSound verifies the store.
func requireSound(t testing.TB, s *lineage.Store) {
	t.Helper()
	for finding, err := range s.Verify(context.Background(), lineage.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		require.Fail(t, "finding", "%+v", finding)
	}
}

// stored returns the content of a store as text, without generated ids and times.
func stored(t testing.TB, s *lineage.Store) string {
	t.Helper()
	ctx := context.Background()
	var threads []string
	for thread, err := range s.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		var b strings.Builder
		info, err := thread.Info(ctx)
		require.NoError(t, err)
		fmt.Fprintf(&b, "thread %q title=%q user=%q %s\n", info.SourceID, info.Title, info.UserID, info.Metadata)
		branches, err := thread.Branches(ctx)
		require.NoError(t, err)
		names := make(map[lineage.ContextID]string)
		for _, branch := range branches {
			names[branch.Context] = "branch " + branch.Name
			if branch.Active {
				names[branch.Context] += " (active)"
			}
		}
		var contexts []string
		for c, err := range thread.Contexts(ctx) {
			require.NoError(t, err)
			state, err := c.Info(ctx)
			require.NoError(t, err)
			name := names[c.ID()]
			if name == "" {
				name = "context"
			}
			digest, err := c.Digest(ctx)
			require.NoError(t, err)
			length, err := c.Len(ctx)
			require.NoError(t, err)
			base, err := s.Position(ctx, state.Base)
			require.NoError(t, err)
			contexts = append(contexts, fmt.Sprintf("  %s %s length=%d base=%d %.16s\n", name, state.Metadata, length, base, digest))
		}
		slices.Sort(contexts)
		b.WriteString(strings.Join(contexts, ""))
		threads = append(threads, b.String())
	}
	slices.Sort(threads)
	return strings.Join(threads, "")
}

// found returns the message of a thread with an id of the archive.
func found(t testing.TB, s *lineage.Store, thread, id string) *lineage.Entry {
	t.Helper()
	ctx := context.Background()
	th, err := s.FindThread(ctx, thread)
	require.NoError(t, err)
	e, err := th.Find(ctx, id)
	require.NoError(t, err)
	return e
}

func TestChatGPTKeepsWhatItHas(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	_, err := importer.Import(ctx, s, archive.Path(fixture("chatgpt-made/conversations.json")), importer.Options{})
	require.NoError(t, err)
	thread, err := s.FindThread(ctx, "c-branching")
	require.NoError(t, err)
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "Branching", info.Title)
	require.Equal(t, time.UnixMilli(1700000000250).UTC(), info.CreatedAt)
	require.Contains(t, string(info.Metadata), `"gizmo_id":"g-1"`)
	require.Contains(t, string(info.Metadata), `"is_archived":false`)

	active, err := thread.Branch(ctx, "")
	require.NoError(t, err)
	require.Equal(t, "main", active.Name)
	require.EqualValues(t, 4, active.Length)

	e := found(t, s, "c-branching", "a2")
	require.Equal(t, "assistant", e.Role)
	require.Equal(t, "gpt-4o", e.Origin.ModelID)
	require.Equal(t, "second answer é\n", e.Excerpt())
	require.Equal(t, time.UnixMilli(1700000003000).UTC(), e.CreatedAt)
	require.Contains(t, string(e.Body), `"finish_details"`)

	image := found(t, s, "c-branching", "u3")
	require.Equal(t, "application/json", image.Type)
	require.Equal(t, "file-service://file-1\nwhat is this?", image.Excerpt())
	hidden := found(t, s, "c-branching", "sys")
	require.Contains(t, string(hidden.Body), `"weight":0.0`)
	tool := found(t, s, "c-branching", "t4")
	require.Equal(t, "browser", tool.Name)
	half := found(t, s, "c-odd", "half")
	require.Contains(t, string(half.Body), `"parts":["half \ud83d"]`, "half a character is kept as it is written")
}

func TestClaudeKeepsAttachmentsAndBranches(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	_, err := importer.Import(ctx, s, archive.Path(fixture("claude-made/conversations.json")), importer.Options{})
	require.NoError(t, err)
	thread, err := s.FindThread(ctx, "conv-a")
	require.NoError(t, err)
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "acc-1", info.UserID)
	branches, err := thread.Branches(ctx)
	require.NoError(t, err)
	require.Len(t, branches, 2)

	e := found(t, s, "conv-a", "m1")
	require.Equal(t, "user", e.Role)
	entries, err := s.Span(ctx, e.Span)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, lineage.Asset, entries[1].Kind)
	require.Equal(t, "notes.txt", entries[1].Filename)
	require.Equal(t, "the notes\nin full", entries[1].Excerpt())
	require.Contains(t, string(e.Body), `"file_size":17`)
	require.Equal(t, "look at this", e.Excerpt())
	require.Contains(t, e.Pieces, lineage.Piece{Kind: lineage.DataPiece, Content: entries[1].Content, Type: "text/plain", Size: 17, Body: []byte("the notes\nin full")})
	require.Equal(t, "application/json", found(t, s, "conv-a", "m2").Type)
}

// A session, its subagents and a session forked from it, in separate files.
func TestClaudeCodeSession(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	report, err := importer.Import(ctx, s, archive.Path(fixture("claude-code-made")), importer.Options{})
	require.NoError(t, err)
	goldenText(t, "claude-code-made.stored.txt", stored(t, s))
	require.Zero(t, report.SharedMessages, "the fork's copies have ids of their own")
	requireSound(t, s)
	requireImportedAgain(t, s, archive.Path(fixture("claude-code-made")))

	const id = "0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001"
	thread, err := s.FindThread(ctx, id)
	require.NoError(t, err)
	branches, err := thread.Branches(ctx)
	require.NoError(t, err)
	for _, b := range branches {
		t.Log(b.Name, b.Length, b.Active)
	}
	require.Len(t, branches, 2, "calls of several tools at once are no branches, a rewound message is")
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "Fix the build", info.Title)

	// A subagent is a context below the main one, and its first message follows its instruction.
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	agents := 0
	for c, err := range main.Children(ctx) {
		require.NoError(t, err)
		info, err := c.Info(ctx)
		require.NoError(t, err)
		if strings.Contains(string(info.Metadata), "agent a1") {
			agents++
			entries, err := c.All(ctx)
			require.NoError(t, err)
			require.Equal(t, "search the tests", entries[0].Excerpt())
		}
	}
	require.Equal(t, 1, agents)

	fork, err := s.FindThread(ctx, "0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550002")
	require.NoError(t, err)
	forked, err := fork.Active(ctx)
	require.NoError(t, err)
	forkedInfo, err := forked.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, main.ID(), forkedInfo.Parent)
}

// A LibreChat conversation has the times of its messages where the export states none.
func TestTimesOfLibreChat(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	export := `{"conversationId":"c","endpoint":"e","messages":[` +
		`{"messageId":"2","parentMessageId":"1","text":"b","createdAt":"2024-05-29T00:35:00.000Z"},` +
		`{"messageId":"1","text":"a","isCreatedByUser":true,"createdAt":"2024-05-29T00:33:00.000Z"},` +
		`{"messageId":"3","parentMessageId":"2","text":"no time"}]}`
	_, err := importer.Import(ctx, s, archive.Stream("c.json", strings.NewReader(export)), importer.Options{})
	require.NoError(t, err)
	thread, err := s.FindThread(ctx, "c")
	require.NoError(t, err)
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	at := func(minute int) time.Time { return time.Date(2024, 5, 29, 0, minute, 0, 0, time.UTC) }
	require.True(t, info.CreatedAt.Equal(at(33)), info.CreatedAt)
	for found, err := range s.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info, err := found.Thread.Info(ctx)
		require.NoError(t, err)
		require.True(t, info.UpdatedAt.Equal(at(35)), info.UpdatedAt)
	}
}
