//lint:file-ignore SA1019 the conformance suite asks for what is deprecated, too.

package main_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// conformanceFixtures registers the tools, resources and prompts that the conformance suite asks every server for. No
// program has them.
func conformanceFixtures(s *sdk.Server) {
	for name, content := range map[string][]sdk.Content{
		"test_simple_text":            {text("This is a simple text response for testing.")},
		"test_image_content":          {image()},
		"test_audio_content":          {&sdk.AudioContent{Data: decoded("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="), MIMEType: "audio/wav"}},
		"test_embedded_resource":      {embedded("test://embedded-resource")},
		"test_multiple_content_types": {text("Multiple content types test:"), image(), embedded("test://mixed-content-resource")},
		"test_streaming_elicitation":  {text("a result, and no request")},
	} {
		fixture(s, name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		})
	}
	fixture(s, "test_error_handling", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("this tool intentionally returns an error for testing")
	})
	fixture(s, "test_tool_with_progress", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		token := r.Params.GetProgressToken()
		for _, progress := range []float64{0, 50, 100} {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: progress, Total: 100}); err != nil {
				return nil, err
			}
		}
		return said("%v", token), nil
	})
	fixture(s, "test_logging_tool", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		time.Sleep(700 * time.Millisecond) // the suite's own limit is 500 ms; see patient.mjs
		return said("logged"), r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "logged"})
	})
	fixture(s, "test_missing_capability", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if got := r.ClientCapabilities(); got != nil && got.Sampling != nil {
			return said("the client has sampling"), nil
		}
		data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "sampling is required", Data: data}
	})
	inputFixtures(s)
	resourceFixtures(s)
	promptFixtures(s)
}

// inputFixtures registers tools that ask for input in several rounds.
func inputFixtures(s *sdk.Server) {
	needs := func(state string, requests sdk.InputRequestMap) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{InputRequests: requests, RequestState: state}, nil
	}
	fixture(s, "test_input_required_result_elicitation", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if name, _ := accepted(r.Params.InputResponses, "user_name")["name"].(string); name != "" {
			return said("Hello, %s!", name), nil
		}
		return needs("", sdk.InputRequestMap{"user_name": asks("name", "string")})
	})
	fixture(s, "test_input_required_result_sampling", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if answer := sampled(r.Params.InputResponses, "capital_question"); answer != "" {
			return said("Sampling response: %s", answer), nil
		}
		return needs("", sdk.InputRequestMap{"capital_question": samples("What is the capital of France?")})
	})
	fixture(s, "test_input_required_result_list_roots", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if got, ok := r.Params.InputResponses["client_roots"].(*sdk.ListRootsResult); ok && got != nil {
			return said("%d roots: %s", len(got.Roots), got.Roots[0].URI), nil
		}
		return needs("", sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}})
	})
	for name, state := range map[string]string{"test_input_required_result_request_state": "request_state", "test_input_required_result_tampered_state": "tampered_state"} {
		fixture(s, name, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			switch given := r.Params.RequestState; {
			case given != "" && given != state:
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the state was changed"}
			case given != "" && accepted(r.Params.InputResponses, "confirm") != nil:
				return said("state-ok: requestState received and confirmation accepted"), nil
			}
			return needs(state, sdk.InputRequestMap{"confirm": asks("ok", "boolean")})
		})
	}
	fixture(s, "test_input_required_result_multiple_inputs", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		given := r.Params.InputResponses
		name, _ := accepted(given, "user_name")["name"].(string)
		greeting := sampled(given, "greeting")
		if roots, ok := given["client_roots"].(*sdk.ListRootsResult); ok && name != "" && greeting != "" {
			return said("%s %s, %d roots", greeting, name, len(roots.Roots)), nil
		}
		return needs("multiple_inputs", sdk.InputRequestMap{"user_name": asks("name", "string"), "greeting": samples("Generate a greeting"), "client_roots": &sdk.ListRootsParams{}})
	})
	fixture(s, "test_input_required_result_multi_round", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		given := r.Params.InputResponses
		switch name, second := strings.CutPrefix(r.Params.RequestState, "2 "); {
		case second:
			return said("%s likes %v", name, accepted(given, "step2")["color"]), nil
		case r.Params.RequestState == "1":
			return needs(fmt.Sprintf("2 %v", accepted(given, "step1")["name"]), sdk.InputRequestMap{"step2": asks("color", "string")})
		}
		return needs("1", sdk.InputRequestMap{"step1": asks("name", "string")})
	})
	fixture(s, "test_input_required_result_capabilities", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		got, requests := r.ClientCapabilities(), sdk.InputRequestMap{}
		if len(r.Params.InputResponses) > 0 || got == nil {
			return said("done"), nil
		}
		if got.Elicitation != nil {
			requests["user_name"] = asks("name", "string")
		}
		if got.Sampling != nil {
			requests["greeting"] = samples("Generate a greeting")
		}
		if got.RootsV2 != nil {
			requests["client_roots"] = &sdk.ListRootsParams{}
		}
		return needs("", requests)
	})
}

func resourceFixtures(s *sdk.Server) {
	add := func(contents *sdk.ResourceContents) {
		s.AddResource(&sdk.Resource{Name: contents.URI, URI: contents.URI, MIMEType: contents.MIMEType}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
		})
	}
	add(&sdk.ResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."})
	add(&sdk.ResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: decoded(pixel)})
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
		body, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: string(body)}}}, err
	})
}

func promptFixtures(s *sdk.Server) {
	add := func(name string, arguments []string, answer func(args map[string]string) []sdk.Content) {
		p := &sdk.Prompt{Name: name, Description: "A prompt for testing"}
		for _, argument := range arguments {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: argument, Description: argument, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			result := &sdk.GetPromptResult{}
			for _, content := range answer(r.Params.Arguments) {
				result.Messages = append(result.Messages, &sdk.PromptMessage{Role: "user", Content: content})
			}
			return result, nil
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{text("This is a simple prompt for testing.")}
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(args map[string]string) []sdk.Content {
		return []sdk.Content{text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"]))}
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(args map[string]string) []sdk.Content {
		return []sdk.Content{embedded(args["resourceUri"]), text("Please process the embedded resource above.")}
	})
	add("test_prompt_with_image", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{image(), text("Please analyze the image above.")}
	})
	s.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: "A prompt for testing"}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		if got := accepted(r.Params.InputResponses, "user_context"); got != nil {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: text(fmt.Sprint("Context: ", got["context"]))}}}, nil
		}
		return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": asks("context", "string")}}, nil
	})
}

func fixture(s *sdk.Server, name string, run func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: "A tool for testing"}, func(ctx context.Context, r *sdk.CallToolRequest, _ any) (*sdk.CallToolResult, any, error) {
		result, err := run(ctx, r)
		return result, nil, err
	})
}

func text(text string) *sdk.TextContent { return &sdk.TextContent{Text: text} }

func said(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{text(fmt.Sprintf(format, args...))}}
}

// pixel is a picture.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="

func decoded(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

func image() *sdk.ImageContent { return &sdk.ImageContent{Data: decoded(pixel), MIMEType: "image/png"} }

func embedded(uri string) *sdk.EmbeddedResource {
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource content."}}
}

func asks(name, kind string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Message: "What is it?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{name: map[string]any{"type": kind}}, "required": []string{name}}}
}

func samples(question string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{Messages: []*sdk.SamplingMessage{{Role: "user", Content: text(question)}}, MaxTokens: 100}
}

// accepted returns what a person answered, nil for none.
func accepted(given sdk.InputResponseMap, key string) map[string]any {
	if got, ok := given[key].(*sdk.ElicitResult); ok && got != nil && got.Action == "accept" {
		return got.Content
	}
	return nil
}

// sampled returns the text that a model answered, empty for none.
func sampled(given sdk.InputResponseMap, key string) string {
	got, ok := given[key].(*sdk.CreateMessageWithToolsResult)
	if !ok || got == nil {
		return ""
	}
	for _, content := range got.Content {
		if answer, ok := content.(*sdk.TextContent); ok {
			return answer.Text
		}
	}
	return ""
}
