package rawjson

// knownKeys are the keys of known formats, for which KeyText does not allocate.
var knownKeys = func() map[string]string {
	known := make(map[string]string)
	for _, key := range []string{
		"id", "conversation_id", "title", "create_time", "update_time", "current_node", "default_model_slug", "mapping", "parent", "children",
		"message", "author", "role", "name", "metadata", "content", "content_type", "parts", "text", "language", "thoughts", "status", "end_turn",
		"weight", "model_slug", "recipient", "channel", "uuid", "summary", "created_at", "updated_at", "account", "chat_messages", "sender",
		"attachments", "file_name", "file_size", "file_type", "extracted_content", "files", "parent_message_uuid", "type", "parentUuid",
		"logicalParentUuid", "sessionId", "timestamp", "cwd", "gitBranch", "version", "isSidechain", "agentId", "isMeta", "isCompactSummary",
		"forkedFrom", "model", "stop_reason", "usage", "requestId", "toolUseResult", "leafUuid", "payload", "history", "messages", "currentId",
		"parentId", "childrenIds", "user_id", "chat", "conversationId", "messageId", "parentMessageId", "isCreatedByUser", "createdAt",
		"updatedAt", "endpoint", "options", "messagesTree", "tool_calls", "tool_call_id", "tools", "function", "arguments", "from", "value",
		"conversations", "userType", "start_timestamp", "stop_timestamp", "citations", "index", "input", "tool_use_id", "is_error",
		"slug", "data", "toolUseID", "parentToolUseID", "command", "hookEvent", "hookName", "input_tokens", "output_tokens",
		"cache_creation_input_tokens", "cache_read_input_tokens", "service_tier", "stop_sequence", "cache_creation",
		"ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "backupFileName", "backupTime", "totalLines", "inference_geo",
		"output", "fullOutput", "elapsedTimeSeconds", "timeoutMs", "activeForm", "sourceToolAssistantUUID", "caller", "file_path",
		"description", "filePath", "stdout", "stderr", "server_tool_use", "web_search_requests", "web_fetch_requests", "interrupted",
		"isImage", "noOutputExpected", "structuredPatch", "numLines", "file", "startLine", "url", "subtype", "replace_all", "prompt",
		"snapshot", "userModified", "oldString", "newString", "trackedFileBackups", "isSnapshotUpdate", "todos", "thinkingMetadata",
		"maxThinkingTokens", "permissionMode", "success", "response_id", "error", "ordinal", "durationMs", "duration_ms", "turn_id",
		"thinking", "totalTokens", "prompt_id", "turnId", "cacheRead", "cacheWrite", "signature", "toolCallId", "toolName", "isError",
		"kind", "stopReason", "cost", "total", "call_id", "encrypted_content", "info", "total_token_usage", "last_token_usage",
		"cached_input_tokens", "reasoning_output_tokens", "total_tokens", "model_context_window", "rate_limits", "summary_text",
		"approval_policy", "sandbox_policy", "mode", "effort", "exit_code", "api", "provider", "responseId",
	} {
		known[key] = key
	}
	return known
}()
