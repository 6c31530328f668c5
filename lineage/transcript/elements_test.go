package transcript

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFields(t *testing.T) {
	for text, want := range map[string]string{
		"  <cwd>/p</cwd>\n  <shell>bash</shell>\n": "cwd: /p, shell: bash",
		"<cwd>/p</cwd>": "cwd: /p",
		"<cwd></cwd>":   "cwd: ",
		"<filesystem>\n<roots><root>/a b</root><root>/c</root></roots>\n</filesystem><date>2026-01-01</date>": "root: /a b, root: /c, date: 2026-01-01",
		`<environment id="local"><cwd>/p</cwd></environment>`:                                                 `environment id="local", cwd: /p`,
	} {
		require.Equal(t, want, fields(text), text)
	}
	for _, text := range []string{
		"", "Current working directory: /p", "<cwd>/p", "</cwd>", "<cwd>/p</cwd> and more", "<a>1\n2</a>", "<a>1 < 2</a>", "<a><a>1</a></a>", "<>x</>",
		strings.Repeat("<a>", 20), "<cwd>" + strings.Repeat("x", maxElements) + "</cwd>",
		"<a><b><c><d><e><f><g><h><i><j>x</j></i></h></g></f></e></d></c></b></a>",
	} {
		require.Equal(t, text, fields(text), text)
	}
}

// What Codex's extension for editors puts before a prompt is no part of it.
func TestEditorContext(t *testing.T) {
	all := collect(t, Options{},
		plain("user", "# Context from my IDE setup:\n\n## Active file: a.go\n\n## My request for Codex:\nWhy?\n"),
		plain("user", "# Files mentioned by the user:\n\n## b.go: /b.go\n\n## My request for Codex:\nAnd this?\n## My request for Codex:"),
		plain("user", "# Context from my IDE setup:\nis missing"),
		plain("user", "I wrote\n## My request for Codex:\nmyself"),
	)
	require.Equal(t, "reminder: (editor) # Context from my IDE setup: ## Active file: a.go\nprompt: Why?\n"+
		"reminder: (editor) # Files mentioned by the user: ## b.go: /b.go\nprompt: And this? ## My request for Codex:\n"+
		"prompt: # Context from my IDE setup: is missing\nprompt: I wrote ## My request for Codex: myself\n", shown(all))
}
