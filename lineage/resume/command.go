package resume

import "strings"

// Shell returns the command that starts the agent, for a POSIX shell.
func (s *Session) Shell() string {
	line := "cd " + quote(s.Dir) + " &&"
	if strings.HasPrefix(s.Dir, "-") {
		line = "cd -- " + quote(s.Dir) + " &&"
	}
	for _, arg := range s.Command {
		line += " " + quote(arg)
	}
	return line
}

// quote returns a word for a shell.
func quote(word string) string {
	plain := word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,") == ""
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
