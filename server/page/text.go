package page

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
)

// preview is the number of bytes of a message that are read for a line.
const preview = 64 << 10

// states returns a text member of a thread's metadata, or "".
func states(info *lineage.ThreadInfo, key string) string {
	if !rawjson.Valid(info.Metadata) {
		return ""
	}
	return rawjson.Str(rawjson.Get(info.Metadata, key))
}

// short returns the start of a line.
func short(line string, longest int) string {
	if len(line) <= longest {
		return line
	}
	if runes := []rune(line); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return line
}

// words returns a line without the Markdown markup.
func words(line string) string { return strings.Join(strings.Fields(signs.Replace(line)), " ") }

var signs = strings.NewReplacer("**", "", "```", "", "`", "")

// size formats a number of bytes.
func size(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// amount formats a number of tokens, or a dash if it is unknown.
func amount(n *int64) string {
	switch {
	case n == nil:
		return "–"
	case *n >= 10_000_000:
		return fmt.Sprintf("%.0fM", float64(*n)/1e6)
	case *n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(*n)/1e6)
	case *n >= 10_000:
		return fmt.Sprintf("%.0fk", float64(*n)/1e3)
	}
	return fmt.Sprint(*n)
}

// markOf returns a checksum of a text. Forms send the checksum, because the text itself does not come back unchanged.
func markOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:8])
}

// number formats a number with spaces between thousands.
func number(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// count formats a number of things, with the right plural.
func count[N int | int64 | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if thing == "branch" {
		thing += "e"
	}
	return number(uint64(n)) + " " + thing + "s"
}

// folder returns the last element of a path of any operating system.
func folder(path string) string {
	path = strings.TrimRight(path, `/\`)
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
