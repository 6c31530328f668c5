package archive

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
)

// TextBody returns a string as a text body, and other values, including strings with invalid
// Unicode, as JSON.
func TextBody(raw []byte) (body []byte, mediaType string) {
	if rawjson.IsString(raw) {
		if b, exact := rawjson.Unquote(raw); exact {
			return b, content.TypeText
		}
	}
	return raw, content.TypeJSON
}
