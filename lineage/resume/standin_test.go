package resume_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// answerText is what the model says.
const answerText = "Noted."

// model is a server with the streaming APIs of models, which records requests and answers each with a fixed text. URL is its address,
// without a path.
type model struct {
	URL string

	// Hangs, when not nil, receives when an answer hangs.
	Hangs chan struct{}

	server  *httptest.Server
	mu      sync.Mutex
	seen    []modelRequest
	refused map[string]bool
	hung    bool
}

// modelRequest is a request to a model.
type modelRequest struct {
	// Path is its path: it ends with /responses, /chat/completions or :streamGenerateContent.
	Path string
	Body json.RawMessage
}

// newModel starts a server on a loopback address.
func newModel() *model {
	s := &model{}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.server.URL
	return s
}

// Close ends the server.
func (s *model) Close() {
	s.server.CloseClientConnections() // an answer may hang
	s.server.Close()
}

// modelRequests returns the requests so far.
func (s *model) Requests() []modelRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]modelRequest(nil), s.seen...)
}

func (s *model) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil || r.Method != http.MethodPost || !json.Valid(body) {
		http.NotFound(w, r)
		return
	}
	events := answer(r.URL.Path)
	if path := toRead(body); events != nil && path != "" {
		events = callRead(path)
	}
	if events == nil {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.seen = append(s.seen, modelRequest{Path: r.URL.Path, Body: body})
	n, retry := len(s.seen), lastSays(body, "Retry:") && !s.refused[r.URL.Path]
	if retry {
		s.refused = map[string]bool{r.URL.Path: true}
	}
	hangs := s.Hangs != nil && !s.hung && lastSays(body, "Hang:")
	s.hung = s.hung || hangs
	s.mu.Unlock()
	if calls := askedCalls(body); calls != nil {
		events = answerCalls(r.URL.Path, n, calls)
	}
	if retry {
		http.Error(w, `{"error":{"message":"overloaded","type":"server_error"}}`, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, e := range events {
		fmt.Fprint(w, e)
		if hangs && i == len(events)/2 {
			w.(http.Flusher).Flush()
			s.Hangs <- struct{}{}
			<-r.Context().Done()
			return
		}
	}
}

// lastSays reports whether the last message of a request has a text.
func lastSays(body []byte, text string) bool {
	var asked struct{ Messages, Input, Contents []json.RawMessage }
	if json.Unmarshal(body, &asked) != nil {
		return false
	}
	all := append(append(asked.Messages, asked.Input...), asked.Contents...)
	return len(all) > 0 && strings.Contains(string(all[len(all)-1]), text)
}

// answer returns the events of an answer, nil for an unknown path.
func answer(path string) []string {
	text, _ := json.Marshal(answerText)
	switch {
	case strings.HasSuffix(path, "/responses"):
		item := fmt.Sprintf(`{"type":"message","id":"msg_standin","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, text)
		return []string{
			event("response.created", `{"type":"response.created","response":{"id":"resp_standin"}}`),
			event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":`+item+`}`),
			event("response.completed", `{"type":"response.completed","response":{"id":"resp_standin","output":[`+item+`],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":107}}}`),
		}
	case strings.HasSuffix(path, "/chat/completions"):
		return []string{
			event("", fmt.Sprintf(`{"id":"standin","object":"chat.completion.chunk","created":1,"model":"demo","choices":[{"index":0,"delta":{"role":"assistant","content":%s},"finish_reason":null}]}`, text)),
			event("", `{"id":"standin","object":"chat.completion.chunk","created":1,"model":"demo","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107}}`),
			event("", "[DONE]"),
		}
	case strings.HasSuffix(path, ":streamGenerateContent"):
		return []string{
			event("", fmt.Sprintf(`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":%s}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7,"totalTokenCount":107}}`, text)),
		}
	}
	return nil
}

// toRead returns the file that a request to a model with a chat API, whose last message is the user's, asks to read.
func toRead(body []byte) string {
	var asked struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []json.RawMessage
	}
	if json.Unmarshal(body, &asked) != nil || len(asked.Messages) == 0 || len(asked.Tools) == 0 {
		return ""
	}
	last := asked.Messages[len(asked.Messages)-1]
	_, path, _ := strings.Cut(string(last.Content), "Read:")
	if last.Role != "user" {
		return ""
	}
	return strings.TrimRight(path, "\"\\")
}

// callRead returns the events of an answer with a call.
func callRead(path string) []string {
	arguments, _ := json.Marshal(map[string]string{"filePath": path})
	text, _ := json.Marshal(string(arguments))
	return []string{
		event("", fmt.Sprintf(`{"id":"standin","object":"chat.completion.chunk","created":1,"model":"demo","choices":[{"index":0,"delta":{"role":"assistant","content":"I read it.","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":%s}}]},"finish_reason":null}]}`, text)),
		event("", `{"id":"standin","object":"chat.completion.chunk","created":1,"model":"demo","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107}}`),
		event("", "[DONE]"),
	}
}

func event(name, data string) string {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return name + "data: " + data + "\n\n"
}
