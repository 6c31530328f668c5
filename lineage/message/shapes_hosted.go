package message

// Results of the tools that Anthropic runs: a result or an error, distinguished by type.
var (
	webSearchResult = listOf(0, objectOf([]string{"type", "encrypted_content", "title", "url"}, members{
		"type": oneOf("web_search_result"), "encrypted_content": aText, "title": aText, "url": aText, "page_age": aText.orNull(),
	})).orElse(hostedError("web_search_tool_result_error", nil))
	webFetchResult = objectOf([]string{"type", "content", "url"}, members{
		"type": oneOf("web_fetch_result"), "url": aText, "retrieved_at": aText.orNull(),
		"content": typed("type", map[string]*shape{"document": anthropicDocument}),
	}).orElse(hostedError("web_fetch_tool_result_error", nil))
	codeExecutionResult = typed("type", map[string]*shape{
		"code_execution_result": objectOf([]string{"type", "content", "return_code", "stderr", "stdout"}, members{
			"type": aText, "content": outputFiles("code_execution_output"), "return_code": anInteger, "stderr": aText, "stdout": aText,
		}),
		"encrypted_code_execution_result": objectOf([]string{"type", "content", "encrypted_stdout", "return_code", "stderr"}, members{
			"type": aText, "content": outputFiles("code_execution_output"), "return_code": anInteger, "stderr": aText, "encrypted_stdout": aText,
		}),
		"code_execution_tool_result_error": hostedError("code_execution_tool_result_error", nil),
	})
	bashExecutionResult = typed("type", map[string]*shape{
		"bash_code_execution_result": objectOf([]string{"type", "content", "return_code", "stderr", "stdout"}, members{
			"type": aText, "content": outputFiles("bash_code_execution_output"), "return_code": anInteger, "stderr": aText, "stdout": aText,
		}),
		"bash_code_execution_tool_result_error": hostedError("bash_code_execution_tool_result_error", nil),
	})
	textEditorResult = typed("type", map[string]*shape{
		"text_editor_code_execution_view_result": objectOf([]string{"type", "content", "file_type"}, members{
			"type": aText, "content": aText, "file_type": notEmpty,
			"num_lines": anInteger.orNull(), "start_line": anInteger.orNull(), "total_lines": anInteger.orNull(),
		}),
		"text_editor_code_execution_create_result": objectOf([]string{"type", "is_file_update"}, members{"type": aText, "is_file_update": aBool}),
		"text_editor_code_execution_str_replace_result": objectOf([]string{"type"}, members{
			"type": aText, "lines": listOf(0, aText).orNull(),
			"new_lines": anInteger.orNull(), "new_start": anInteger.orNull(), "old_lines": anInteger.orNull(), "old_start": anInteger.orNull(),
		}),
		"text_editor_code_execution_tool_result_error": hostedError("text_editor_code_execution_tool_result_error", members{"error_message": aText.orNull()}),
	})
)

func hostedResult(content *shape) *shape {
	return objectOf([]string{"type", "tool_use_id", "content"}, members{
		"type": aText, "tool_use_id": anthropicID, "cache_control": cacheControl, "content": content,
	})
}

func hostedError(kind string, more members) *shape {
	m := members{"type": oneOf(kind), "error_code": notEmpty}
	for k, s := range more {
		m[k] = s
	}
	return objectOf([]string{"type", "error_code"}, m)
}

func outputFiles(kind string) *shape {
	return listOf(0, objectOf([]string{"type", "file_id"}, members{"type": oneOf(kind), "file_id": aText}))
}
