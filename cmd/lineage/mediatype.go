package main

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/records"
)

// headSize is how much of a file is read to find out whether it is text.
const headSize = 64 << 10

// mediaType returns the media type of a file that begins with head. named is the type by the name of
// the file, empty if unknown. A file that is not text does not get a type of text.
func mediaType(named string, head []byte) string {
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

// isPlain reports whether bytes are text that can be read as it is: UTF-8 without NUL. The
// last character may be cut where the head ends.
func isPlain(head []byte) bool {
	if len(head) == headSize {
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

// typesOfFiles are the media types by the endings of names.
var typesOfFiles = map[string]string{
	".md": content.TypeMarkdown, ".markdown": content.TypeMarkdown, ".json": content.TypeJSON, ".html": content.TypeHTML, ".htm": content.TypeHTML,
	".csv": content.TypeCSV, ".xml": content.TypeXML, ".yaml": content.TypeYAML, ".yml": content.TypeYAML, ".pdf": content.TypePDF,
	".png": content.TypePNG, ".jpg": content.TypeJPEG, ".jpeg": content.TypeJPEG, ".gif": content.TypeGIF, ".webp": content.TypeWebP,
	".svg": content.TypeSVG, ".mp3": content.TypeMP3, ".wav": content.TypeWAV, ".mp4": content.TypeMP4,
}

// typeOfFile returns the media type by the name of a file, empty where it says
// nothing that is known here.
func typeOfFile(name string) string { return typesOfFiles[strings.ToLower(filepath.Ext(name))] }
