package message

// Messages of the Messages API.
var (
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
