package form_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
)

// feature: storage/search-data
func TestSearched(t *testing.T) {
	token := strings.Repeat("aB3+", 64)
	for data, want := range map[string]string{
		`"plain"`: "plain",
		`null`:    "", `12`: "12", `true`: "", `[]`: "", `{}`: "",
		`{"id":"q1","role":"user","parts":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`:                                                   "one\ntwo",
		`{"role":"assistant","parts":[{"type":"tool-run","toolCallId":"t1","input":{"command":"grep","n":[1,"x"]},"output":"found","state":"done"}]}`:     "grep\n1\nx\nfound",
		`{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"run","arguments":"{\"command\":\"grep\"}"}}]}`:                          "grep",
		`{"role":"assistant","parts":[{"type":"reasoning","text":"because"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA"}]}`: "because",
		`{"role":"user","content":"words"}`: "words",
		`{"parts":[{"type":"source-url","sourceId":"s","url":"https://x","title":"A page"},{"type":"file","mediaType":"a/b","filename":"plan.pdf","url":"u"},{"type":"text","text":"t"}]}`: "A page\nplan.pdf\nt",
		`{"parts":[{"data":{"city":"Lisbon","n":[1,null]},"type":"data-weather","id":"w"},{"type":"text","text":"t"},{"type":"data-flag","data":"on"}]}`:                                   "Lisbon\n1\nt\non",
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","content":"b"}]}`:                                                                                      "a\nb",
		`{"other":"all","of":["it",{"is":"taken"}]}`: "all\nit\ntaken",
		`{"text":"line\none"}`:                       "line\none",
		// Program data.
		`{"content":[{"type":"image","source":{"type":"base64","data":"AAAA"}},{"type":"text","text":"t"}]}`:            "t",
		`{"content":[{"type":"tool_result","content":[{"type":"json","value":{"shot":"` + token + `","said":"it"}}]}]}`: "it",
		`{"parts":[{"type":"data-x","data":"` + token + `"},{"type":"text","text":"t"}]}`:                               "t",
		`"` + token + `"`: token,
		// Archived messages: all content.
		`{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]},"metadata":{"x":"too"}}`:                            "hi\ntoo",
		`{"author":{"role":"assistant"},"content":{"content_type":"thoughts","thoughts":[{"summary":"s","content":"hm"}]}}`:                      "s\nhm",
		`{"uuid":"m","content":[{"type":"text","text":"hi","citations":[]}],"text":"hi","sender":"human","attachments":[{"file_name":"a.txt"}]}`: "hi\na.txt",
		`{"uuid":"m","text":"hi","content":[],"sender":"human"}`:                                                                                 "hi",
		`{"messageId":"m","text":"","content":[{"type":"think","think":"hm"},{"type":"text","text":{"value":"hi"}}]}`:                            "hm\nhi",
		`{"from":"human","value":"hi"}`: "hi",
		// Not JSON.
		`said, "b`: `said, "b`, "\xff": "\ufffd", "": "",
	} {
		require.Equal(t, want, form.Searched([]byte(data), ""), data)
	}
	deep := strings.Repeat("[", 20_000) + "1" + strings.Repeat("]", 20_000)
	require.Equal(t, deep, form.Searched([]byte(deep), ""))
}

// TestSearchedOfAny checks for any message that its searchable text contains
// all its texts and is valid UTF-8.
func TestSearchedOfAny(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		for _, body := range messagetest.Wild(r) {
			found := form.Searched([]byte(body.Bytes), body.Role)
			require.True(r, utf8.ValidString(found))
			divided, ok := form.Split([]byte(body.Bytes), body.Role)
			for i := range divided.Pieces {
				if p := &divided.Pieces[i]; ok && form.ReadingOf(p.Kind, p.JSON) == form.Plain {
					require.Contains(r, found, string(p.Body))
				}
			}
		}
	})
}
