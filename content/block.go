package content

import "time"

// Block describes a content block: all of it but the body.
type Block struct {
	// ID is the SHA-256 of the body.
	ID ID
	// Type is the media type, such as TypeText.
	Type string
	// Size is how many bytes the body has.
	Size int64
	// Origin is what was first recorded of where the content comes from.
	Origin BlockOrigin
	// CreatedAt is when the content was first recorded.
	CreatedAt time.Time
}
