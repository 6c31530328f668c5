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
	} {
		known[key] = key
	}
	return known
}()
