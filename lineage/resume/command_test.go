package resume

import (
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
		s := &Session{Dir: dir, Command: []string{"codex", "resume", "it's"}}
		require.Equal(t, want, s.powerShell())
	}
}
