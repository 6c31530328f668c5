package resume

import (
	"runtime"
	"strings"
)

// Shell returns the command that starts the agent: for PowerShell on Windows, and else for a POSIX shell.
func (s *Session) Shell() string {
	if runtime.GOOS == "windows" {
		return s.powerShell()
	}
	line := "cd " + quote(s.Dir) + " &&"
	if strings.HasPrefix(s.Dir, "-") {
		line = "cd -- " + quote(s.Dir) + " &&"
	}
	for _, arg := range s.Command {
		line += " " + quote(arg)
	}
	return line
}

const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// quote returns a word for a POSIX shell.
func quote(word string) string {
	if word != "" && strings.Trim(word, plainCharacters+"/:@%+=,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// powerShell returns the command for PowerShell, of which old versions have no &&.
func (s *Session) powerShell() string {
	line := "Set-Location -LiteralPath " + quotePowerShell(s.Dir) + " -ErrorAction Stop; &"
	for _, arg := range s.Command {
		line += " " + quotePowerShell(arg)
	}
	return line
}

// quotePowerShell returns a word for PowerShell, which reads several characters as a single quote.
func quotePowerShell(word string) string {
	if word != "" && strings.Trim(word, plainCharacters) == "" && !strings.HasPrefix(word, ".") {
		return word
	}
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range word {
		if r == '\'' || r >= '\u2018' && r <= '\u201b' {
			b.WriteRune(r)
		}
		b.WriteRune(r)
	}
	b.WriteByte('\'')
	return b.String()
}
