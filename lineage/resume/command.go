package resume

import (
	"runtime"
	"strings"
)

// Shell returns the commands that start the agent in one line, for PowerShell on Windows, and for a POSIX shell
// elsewhere.
func (s *Session) Shell() string {
	if runtime.GOOS == "windows" {
		return s.powerShell()
	}
	line := "cd " + quote(s.Dir) + " && "
	if strings.HasPrefix(s.Dir, "-") {
		line = "cd -- " + quote(s.Dir) + " && "
	}
	lines := make([]string, len(s.Commands))
	for i, command := range s.Commands {
		lines[i] = words(command, quote)
	}
	return line + strings.Join(lines, " && ")
}

// Shell returns a command line, for PowerShell on Windows, and for a POSIX shell elsewhere.
func Shell(command []string) string {
	if runtime.GOOS == "windows" {
		return "& " + words(command, quotePowerShell)
	}
	return words(command, quote)
}

func words(command []string, quote func(string) string) string {
	quoted := make([]string, len(command))
	for i, word := range command {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// quote returns a word for a POSIX shell.
func quote(word string) string {
	if word != "" && strings.Trim(word, plainCharacters+"/:@%+=,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// powerShell returns the commands for PowerShell. Old versions of it have no &&.
func (s *Session) powerShell() string {
	line, end := "Set-Location -LiteralPath "+quotePowerShell(s.Dir)+" -ErrorAction Stop;", ""
	for i, command := range s.Commands {
		if i > 0 {
			line, end = line+"; if ($?) {", end+" }"
		}
		line += " & " + words(command, quotePowerShell)
	}
	return line + end
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
