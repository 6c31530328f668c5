package message

// maxAnthropicTool is the maximum length of a tool name.
const maxAnthropicTool = 128

var (
	anthropicImages = oneOf("image/jpeg", "image/png", "image/gif", "image/webp")
	anthropicID     = textThat(func(s string) bool { return plainName.MatchString(s) })
	anthropicTool   = textThat(func(s string) bool { return isName(s, maxAnthropicTool) })
	serverTools     = oneOf("web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution")

	cacheControl = objectOf([]string{"type"}, members{"type": oneOf("ephemeral"), "ttl": oneOf("5m", "1h")}).orNull()
	bytesSource  = func(types *shape) *shape {
		return objectOf([]string{"type", "media_type", "data"}, members{"type": aText, "media_type": types, "data": textThat(isBase64)})
	}
	urlSource  = objectOf([]string{"type", "url"}, members{"type": aText, "url": {starts: `"`, accepts: webURL}})
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
	anthropicShown = typed("type", map[string]*shape{"text": anthropicText, "image": anthropicImage, "document": anthropicDocument})
)
