package resume

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/follow"
)

// sessionFormats are the formats by name of the agent.
var sessionFormats = map[string]func() *sessionFormat{
	"codex": codex, "pi": pi, "claude-code": claudeCode, "qwen": qwen, "gemini": gemini, "opencode": openCode,
}

// noWayIn states why no session can be created for an agent, where there is more to say than that it was not tried.
var noWayIn = map[string]string{
	"copilot":  "its program has no free licence, and sessions that it did not write were not tried",
	"vscode":   "it keeps its chats in a log that it rewrites while it runs",
	"cursor":   "it keeps its chats in a database that also holds its credentials",
	"goose":    "only the program may write its database",
	"crush":    "only the program may write its database",
	"openclaw": "only the program may write its database, which also holds its credentials",
}

func formatOf(name string) (*sessionFormat, follow.Agent, error) {
	for _, agent := range follow.Agents() {
		if agent.Name != name && agent.Format != name {
			continue
		}
		if t := sessionFormats[agent.Name]; t != nil {
			return t(), agent, nil
		}
		reason := noWayIn[agent.Name]
		if reason == "" {
			reason = "sessions that it did not write were not tried"
		}
		return nil, agent, fmt.Errorf("%w: %s: %s", ErrNoWayIn, agent.Title, reason)
	}
	return nil, follow.Agent{}, &follow.UnknownAgentError{Name: name}
}

// Agents returns the names of the agents for which sessions can be created.
func Agents() (names []string) {
	for _, agent := range follow.Agents() {
		if sessionFormats[agent.Name] != nil {
			names = append(names, agent.Name)
		}
	}
	return names
}
