package message

var (
	providerData = mapOf(mapOf(anything))
	streamState  = oneOf("streaming", "done")
	// ofOthers is for members that say that an object has another format, though it has what this one needs.
	ofOthers = &shape{accepts: func([]byte) bool { return false }}
)

// openObject returns the shape of an object that may have other members too.
func openObject(need []string, m members) *shape {
	s := objectOf(need, m)
	s.open = true
	return s
}

var (
	uiApproval = openObject([]string{"id"}, members{"id": aText, "approved": aBool, "reason": aText, "signature": aText})
	uiText     = openObject([]string{"type", "text"}, members{
		"type": aText, "text": aText, "state": streamState, "providerMetadata": providerData,
		"citations": ofOthers, "cache_control": ofOthers, // of Anthropic
	})
	uiReason   = openObject([]string{"type", "text"}, members{"type": aText, "text": aText, "id": aText, "state": streamState, "providerMetadata": providerData})
	uiFile     = openObject([]string{"type", "mediaType", "url"}, members{
		"type": aText, "mediaType": aText, "filename": aText, "url": {starts: `"`, accepts: notPlaceholder}, "providerMetadata": providerData,
	})
	uiSource = typed("type", map[string]*shape{
		"source-url": openObject([]string{"type", "sourceId", "url"}, members{
			"type": aText, "sourceId": aText, "url": aText, "title": aText, "providerMetadata": providerData,
		}),
		"source-document": openObject([]string{"type", "sourceId", "mediaType", "title"}, members{
			"type": aText, "sourceId": aText, "mediaType": aText, "title": aText, "filename": aText, "providerMetadata": providerData,
		}),
		"step-start": openObject([]string{"type"}, members{"type": aText}),
		"text":       uiText, "reasoning": uiReason, "file": uiFile,
	})
	uiData    = openObject([]string{"type", "data"}, members{"type": prefixed("data-"), "id": aText, "data": anything})
	uiTool    = uiToolOf(openObject([]string{"type", "toolCallId", "state"}, members{"type": prefixed("tool-")}))
	uiDynamic = uiToolOf(openObject([]string{"type", "toolName", "toolCallId", "state"}, members{"type": oneOf("dynamic-tool"), "toolName": aText}))
	uiPart    = uiSource.orElse(uiTool.orElse(uiDynamic.orElse(uiData)))
	// uiMessage is a UI message.
	uiMessage = openObject([]string{"id", "role", "parts"}, members{
		"id": aText, "role": oneOf("system", "user", "assistant"), "parts": listOf(1, uiPart),
	})
)

func prefixed(prefix string) *shape {
	return textThat(func(s string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix })
}

// uiToolOf returns the shape of a tool part. Its members depend on the state.
func uiToolOf(base *shape) *shape {
	state := func(need []string, more members) *shape {
		s := *base
		s.need = append(append([]string(nil), base.need...), need...)
		s.members = members{
			"toolCallId": aText, "state": aText, "providerExecuted": aBool, "callProviderMetadata": providerData, "toolMetadata": mapOf(anything),
		}
		for _, m := range []members{base.members, more} {
			for k, v := range m {
				s.members[k] = v
			}
		}
		return &s
	}
	results := func(m members) members {
		m["resultProviderMetadata"], m["approval"] = providerData, uiApproval
		return m
	}
	return typed("state", map[string]*shape{
		"input-streaming":    state(nil, members{"input": anything, "output": never, "errorText": never, "approval": never}),
		"input-available":    state([]string{"input"}, members{"input": anything, "output": never, "errorText": never, "approval": never}),
		"approval-requested": state([]string{"input", "approval"}, members{"input": anything, "output": never, "errorText": never, "approval": uiApproval}),
		"approval-responded": state([]string{"input", "approval"}, members{"input": anything, "output": never, "errorText": never, "approval": uiApproval}),
		"output-available":   state([]string{"input", "output"}, results(members{"input": anything, "output": anything, "errorText": never, "preliminary": aBool})),
		"output-error":       state([]string{"errorText"}, results(members{"input": anything, "errorText": aText, "output": never})),
		"output-denied":      state([]string{"input", "approval"}, members{"input": anything, "approval": uiApproval, "output": never, "errorText": never}),
	})
}
