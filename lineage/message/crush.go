package message

import "github.com/lineage-store/lineage/internal/rawjson"

// crushPart reads a part of a message of Crush: {type, data}. ok is false for others.
func crushPart(f fields, kind string, raw []byte) (parts []Part, ok bool) {
	if !rawjson.IsObject(f["data"]) {
		return nil, false
	}
	data := fieldsOf(f["data"])
	var p Part
	switch kind {
	case "text":
		p.Text = data.text("text")
	case "reasoning":
		p.Kind, p.Text = ReasoningKind, data.text("thinking")
	case "image_url":
		p.Kind, p.URL = FileKind, data.text("url")
		p.MediaType = guessed(p.URL, "", kind)
	case "binary":
		p.Kind, p.MediaType, p.Filename = FileKind, data.text("MIMEType"), data.text("Path")
		p.URL = "data:" + p.MediaType + ";base64," + data.text("Data")
	case "tool_call":
		p.Kind, p.Tool, p.CallID, p.Hosted = CallKind, data.text("name"), data.text("id"), rawjson.IsTrue(data["provider_executed"])
		p.setInput(data["input"])
	case "tool_result":
		p.Kind, p.Tool, p.CallID, p.Failed = ResultKind, data.text("name"), data.text("tool_call_id"), rawjson.IsTrue(data["is_error"])
		p.Output = []Part{{Kind: TextKind, Text: data.text("content")}}
		if image := data.text("data"); image != "" {
			mediaType := data.text("mime_type")
			p.Output = append(p.Output, Part{Kind: FileKind, MediaType: mediaType, URL: "data:" + mediaType + ";base64," + image})
		}
	case "shell_command":
		p.Text = data.text("command")
		if output := data.text("output"); output != "" {
			return []Part{p, {Text: output}}, true
		}
	case "finish":
		if data.text("message") == "" && data.text("details") == "" {
			return nil, true // it states why the answer ended, not what was said
		}
		p.Kind, p.Name, p.Data = DataKind, kind, raw
	default:
		return nil, false
	}
	return []Part{p}, true
}
