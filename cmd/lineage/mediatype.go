package main

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
)

// headSize is how much of a file tells whether it is text.
const headSize = 64 << 10

// mediaType returns the type of what begins with head, or is that whole, under the type
// that its name says, empty for none. A name that says text is not believed of what is
// none.
func mediaType(named string, head []byte) string {
	switch {
	case isPlain(head) && named == "":
		return content.TypeText
	case isPlain(head), named != "" && !isText(named):
		return named
	}
	if found := http.DetectContentType(head); !isText(found) {
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

// typeOfFile returns the media type that a file's name says, empty where it says
// nothing that is known here.
func typeOfFile(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".md", ".markdown":
		return content.TypeMarkdown
	case ".json":
		return content.TypeJSON
	case ".html", ".htm":
		return content.TypeHTML
	case ".csv":
		return content.TypeCSV
	case ".xml":
		return content.TypeXML
	case ".yaml", ".yml":
		return content.TypeYAML
	case ".pdf":
		return content.TypePDF
	case ".png":
		return content.TypePNG
	case ".jpg", ".jpeg":
		return content.TypeJPEG
	case ".gif":
		return content.TypeGIF
	case ".webp":
		return content.TypeWebP
	case ".svg":
		return content.TypeSVG
	case ".mp3":
		return content.TypeMP3
	case ".wav":
		return content.TypeWAV
	case ".mp4":
		return content.TypeMP4
	}
	return ""
}
