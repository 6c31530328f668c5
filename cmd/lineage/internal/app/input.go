package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/awaited"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// HeadSize is the number of bytes that are read to find out whether a file is text.
const HeadSize = 64 << 10

// MediaType returns the media type of a file that begins with head. named is the type according to the name of the
// file, empty if unknown. A file that is not text never gets a text type.
func MediaType(named string, head []byte) string {
	switch {
	case isPlain(head) && named == "":
		return content.TypeText
	case isPlain(head), named != "" && !records.IsText(named):
		return named
	}
	if found := http.DetectContentType(head); !records.IsText(found) {
		return found
	}
	return content.TypeBinary
}

// isPlain reports whether bytes are readable text: UTF-8 without NUL. The last character may be cut off.
func isPlain(head []byte) bool {
	if len(head) == HeadSize {
		for i := 1; i < utf8.UTFMax; i++ {
			if utf8.RuneStart(head[len(head)-i]) {
				if !utf8.FullRune(head[len(head)-i:]) {
					head = head[:len(head)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(head) && bytes.IndexByte(head, 0) < 0
}

// typesOfFiles maps file extensions to media types.
var typesOfFiles = map[string]string{
	".md": content.TypeMarkdown, ".markdown": content.TypeMarkdown, ".json": content.TypeJSON, ".html": content.TypeHTML, ".htm": content.TypeHTML,
	".csv": content.TypeCSV, ".xml": content.TypeXML, ".yaml": content.TypeYAML, ".yml": content.TypeYAML, ".pdf": content.TypePDF,
	".png": content.TypePNG, ".jpg": content.TypeJPEG, ".jpeg": content.TypeJPEG, ".gif": content.TypeGIF, ".webp": content.TypeWebP,
	".svg": content.TypeSVG, ".mp3": content.TypeMP3, ".wav": content.TypeWAV, ".mp4": content.TypeMP4,
}

// TypeOfFile returns the media type according to the name of a file, empty if unknown.
func TypeOfFile(name string) string { return typesOfFiles[strings.ToLower(filepath.Ext(name))] }

// MaxInput limits a message that is read whole, and a line of --jsonl.
const MaxInput = 256 << 20

// ReadAll reads an input whole. An input of more than limit bytes is an error.
func ReadAll(name string, in io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%s: more than %s: %w", name, amount.Bytes(limit), lineage.ErrTooLarge)
	}
	return body, nil
}

// Input opens a named file, or standard input. Reads of a terminal or pipe end with the context.
func (a *App) Input(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(awaited.NewReader(ctx, a.Stdin)), nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, Usagef("%s: is a folder", name)
	}
	return awaited.Open(ctx, name)
}
