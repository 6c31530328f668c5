package content

import "slices"

// Common media types of conversations.
const (
	TypeText     = "text/plain"
	TypeMarkdown = "text/markdown"
	TypeJSON     = "application/json"
	TypeHTML     = "text/html"
	TypeCSV      = "text/csv"
	TypeXML      = "application/xml"
	TypeYAML     = "application/yaml"
	TypePDF      = "application/pdf"
	TypeBinary   = "application/octet-stream"
	TypePNG      = "image/png"
	TypeJPEG     = "image/jpeg"
	TypeGIF      = "image/gif"
	TypeWebP     = "image/webp"
	TypeSVG      = "image/svg+xml"
	TypeMP3      = "audio/mpeg"
	TypeWAV      = "audio/wav"
	TypeMP4      = "video/mp4"

	// TypeForm is the JSON of a message without its pieces.
	TypeForm = "application/vnd.lineage.form"
)

// typeCodes has media types indexed by code. Codes are on disk: new types are
// appended, and none is ever moved or removed. Code 0 announces a type that is
// spelled out.
var typeCodes = [...]string{
	1:  TypeText,
	2:  TypeMarkdown,
	3:  TypeJSON,
	4:  TypeHTML,
	5:  TypeCSV,
	6:  TypeXML,
	7:  TypeYAML,
	8:  TypePDF,
	9:  TypeBinary,
	10: TypePNG,
	11: TypeJPEG,
	12: TypeGIF,
	13: TypeWebP,
	14: TypeSVG,
	15: TypeMP3,
	16: TypeWAV,
	17: TypeMP4,
	18: "text/xml",
	19: "text/css",
	20: "text/javascript",
	21: "text/plain; charset=utf-8",
	22: "application/x-ndjson",
	23: "application/toml",
	24: "application/zip",
	25: "application/gzip",
	26: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	27: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	28: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	29: "image/avif",
	30: "image/heic",
	31: "audio/ogg",
	32: "audio/flac",
	33: "audio/webm",
	34: "video/webm",
	35: TypeForm,
}

// TypeCode returns the code of a media type on disk. It returns false for a type
// without a code.
func TypeCode(mediaType string) (uint8, bool) {
	i := slices.Index(typeCodes[1:], mediaType) + 1
	return uint8(i), i != 0
}

// TypeOfCode returns the media type with a code. It returns false for 0 and for
// unknown codes.
func TypeOfCode(code uint8) (string, bool) {
	if code == 0 || int(code) >= len(typeCodes) {
		return "", false
	}
	return typeCodes[code], true
}
