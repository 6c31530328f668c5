// Package formats lists the formats of archives.
package formats

import (
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/agents"
	"github.com/lineage-store/lineage/lineage/archive/chats"
	"github.com/lineage-store/lineage/lineage/archive/lists"
)

// All returns the formats of agents, chat services and lists of messages, those with the most reliable detection first.
func All() []archive.Format {
	return []archive.Format{
		chats.ChatGPT(),
		chats.ClaudeAI(),
		chats.DeepSeek(),
		chats.Grok(),
		chats.OpenWebUI(),
		chats.LibreChat(),
		agents.Codex(),
		agents.CodexDocuments(),
		agents.ClaudeCode(),
		agents.OpenClaw(),
		agents.Pi(),
		agents.Copilot(),
		agents.CopilotDocuments(),
		agents.GooseLines(),
		agents.Cline(),
		agents.OpenCodeFiles(),
		agents.Antigravity(),
		agents.ATIF(),
		agents.Qwen(),
		agents.Gemini(),
		agents.VSCode(),
		agents.Aider(),
		lists.PromptLogs(),
		lists.BranchFiles(),
		lists.OASST(),
		lists.Preferences(),
		lists.Turns(),
		lists.ShareGPT(),
		lists.MessageLists(), // anything else with lists of messages
	}
}
