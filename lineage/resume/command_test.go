package resume

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Folders are literal texts for PowerShell, which also ends them at typographic quotes.
func TestPowerShell(t *testing.T) {
	for dir, want := range map[string]string{
		`C:\Users\ada`:             `Set-Location -LiteralPath 'C:\Users\ada' -ErrorAction Stop; & codex resume 'it''s'`,
		"C:\\it's $(x)":            "Set-Location -LiteralPath 'C:\\it''s $(x)' -ErrorAction Stop; & codex resume 'it''s'",
		"C:\\\u2019; rm x; \u2018": "Set-Location -LiteralPath 'C:\\\u2019\u2019; rm x; \u2018\u2018' -ErrorAction Stop; & codex resume 'it''s'",
	} {
		s := &Session{Dir: dir, Commands: [][]string{{"codex", "resume", "it's"}}}
		require.Equal(t, want, s.powerShell())
	}
}

// Of several commands each is started only if the one before it succeeded.
func TestSeveralCommands(t *testing.T) {
	s := &Session{Dir: "/a b", Commands: [][]string{{"opencode", "import", "/it's/x.json"}, {"opencode", "--session", "ses_1"}}}
	require.Equal(t, `Set-Location -LiteralPath '/a b' -ErrorAction Stop; & opencode import '/it''s/x.json'; if ($?) { & opencode --session ses_1 }`, s.powerShell())
	if runtime.GOOS != "windows" {
		require.Equal(t, `cd '/a b' && opencode import '/it'\''s/x.json' && opencode --session ses_1`, s.Shell())
	}
}
