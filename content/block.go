package content

import "time"

// Block describes a content block without its body.
type Block struct {
	// ID is the SHA-256 of the body.
	ID ID
	// Type is the media type, such as TypeText.
	Type string
	// Size is the size of the body in bytes.
	Size int64
	// Origin is the origin first recorded for the content.
	Origin BlockOrigin
	// CreatedAt is the time when the content was first recorded.
	CreatedAt time.Time
}
