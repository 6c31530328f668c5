package message

import (
	"strings"
	"unicode"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// maxAnthropicTool is the maximum length of a tool name.
const maxAnthropicTool = 128

func isBlank(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }

var (
	anthropicImages = oneOf("image/jpeg", "image/png", "image/gif", "image/webp")
	anthropicID     = textThat(func(s string) bool { return plainName.MatchString(s) })
	anthropicTool   = textThat(func(s string) bool { return isName(s, maxAnthropicTool) })
	serverTools     = oneOf("web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution")

	cacheControl = objectOf([]string{"type"}, members{"type": oneOf("ephemeral"), "ttl": oneOf("5m", "1h")}).orNull()
	bytesSource  = func(types *shape) *shape {
		return objectOf([]string{"type", "media_type", "data"}, members{"type": aText, "media_type": types, "data": textThat(isBase64)})
	}
	urlSource  = objectOf([]string{"type", "url"}, members{"type": aText, "url": {starts: `"`, is: webURL}})
	textSource = objectOf([]string{"type", "media_type", "data"}, members{"type": aText, "media_type": oneOf("text/plain"), "data": notBlank})

	citation = typed("type", map[string]*shape{
		"char_location": objectOf([]string{"type", "cited_text", "document_index", "document_title", "start_char_index", "end_char_index"}, members{
			"type": aText, "cited_text": aText, "document_index": aNumber, "document_title": notEmpty.orNull(), "start_char_index": aNumber, "end_char_index": aNumber,
		}),
		"page_location": objectOf([]string{"type", "cited_text", "document_index", "document_title", "start_page_number", "end_page_number"}, members{
			"type": aText, "cited_text": aText, "document_index": aNumber, "document_title": notEmpty.orNull(), "start_page_number": aNumber, "end_page_number": aNumber,
		}),
		"web_search_result_location": objectOf([]string{"type", "cited_text", "encrypted_index", "title", "url"}, members{
			"type": aText, "cited_text": aText, "encrypted_index": aText, "title": notEmpty.orNull(), "url": aText,
		}),
	})

	anthropicText = objectOf([]string{"type", "text"}, members{
		"type": aText, "text": notBlank, "cache_control": cacheControl, "citations": listOf(0, citation).orNull(),
	})
	anthropicImage = objectOf([]string{"type", "source"}, members{
		"type": aText, "cache_control": cacheControl,
		"source": typed("type", map[string]*shape{"base64": bytesSource(anthropicImages), "url": urlSource}),
	})
	anthropicDocument = objectOf([]string{"type", "source"}, members{
		"type": aText, "cache_control": cacheControl, "title": notEmpty.orNull(), "context": notEmpty.orNull(),
		"citations": objectOf(nil, members{"enabled": aBool}).orNull(),
		"source": typed("type", map[string]*shape{
			"base64": bytesSource(oneOf("application/pdf")), "url": urlSource, "text": textSource,
		}),
	})
	anthropicShown  = typed("type", map[string]*shape{"text": anthropicText, "image": anthropicImage, "document": anthropicDocument})
	anthropicResult = objectOf([]string{"type", "tool_use_id"}, members{
		"type": oneOf("tool_result"), "tool_use_id": anthropicID, "is_error": aBool, "cache_control": cacheControl, "content": aText.orElse(listOf(0, anthropicShown)),
	})
	anthropicCall = objectOf([]string{"type", "id", "name", "input"}, members{
		"type": oneOf("tool_use"), "id": anthropicID, "name": anthropicTool, "input": anObject, "cache_control": cacheControl,
	})
	anthropicUserBlock = typed("type", map[string]*shape{
		"text": anthropicText, "image": anthropicImage, "document": anthropicDocument, "tool_result": anthropicResult,
	})
	anthropicAssistantBlock = typed("type", map[string]*shape{
		"text": anthropicText, "tool_use": anthropicCall,
		"thinking":          objectOf([]string{"type", "thinking", "signature"}, members{"type": aText, "thinking": aText, "signature": notEmpty}),
		"redacted_thinking": objectOf([]string{"type", "data"}, members{"type": aText, "data": notEmpty}),
		"server_tool_use": objectOf([]string{"type", "id", "name", "input"}, members{
			"type": aText, "id": anthropicID, "name": serverTools, "input": anObject, "cache_control": cacheControl,
		}),
		"web_search_tool_result":                 hostedResult(webSearchResult),
		"web_fetch_tool_result":                  hostedResult(webFetchResult),
		"code_execution_tool_result":             hostedResult(codeExecutionResult),
		"bash_code_execution_tool_result":        hostedResult(bashExecutionResult),
		"text_editor_code_execution_tool_result": hostedResult(textEditorResult),
	})
	// anthropicMessage is a message of the Messages API.
	anthropicMessage = typed("role", map[string]*shape{
		"user":      objectOf([]string{"role", "content"}, members{"role": aText, "content": notBlank.orElse(listOf(1, anthropicUserBlock))}),
		"assistant": objectOf([]string{"role", "content"}, members{"role": aText, "content": notBlank.orElse(listOf(1, anthropicAssistantBlock))}),
	})
)

// isPlaceholder reports whether a URL is valid only inside the store.
func isPlaceholder(url string) bool { return strings.HasPrefix(url, "lineage:") }

func notPlaceholder(raw []byte) bool { return !isPlaceholder(rawjson.Str(raw)) }
