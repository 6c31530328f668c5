package summarize

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/lineage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testKey = "sk-very-secret"
	answer  = `{"model":"small-2026","choices":[{"message":{"role":"assistant","content":" They agreed. \n"},"finish_reason":"stop"}]}`
)

var asked = []lineage.Passage{{Role: "user", Text: "Do we agree?"}, {Role: "assistant", Text: "We do."}}

// server answers request n with step n, and later ones with the last step.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func serve(t testing.TB, steps ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		step := steps[min(len(s.requests), len(steps)-1)]
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
		s.mu.Unlock()
		step(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// client returns a client with short waits; o overrides its options.
func (s *server) client(t testing.TB, o Options) *Client {
	t.Helper()
	o.BaseURL, o.Key, o.HTTP = s.URL+"/v1", testKey, s.Client()
	o.Model, o.EmbeddingModel = "small", "vectors"
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

func reply(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestSummarizeRequest(t *testing.T) {
	s := serve(t, reply(200, answer))
	got, err := s.client(t, Options{Instructions: "Be brief.", MaxTokens: 77}).Summarize(context.Background(), []lineage.Passage{
		{Role: "assistant", Text: "Earlier they met.", Summary: true},
		{Role: "user", Name: "Ann", Text: "Is <this> fine?"},
		{Role: "user", Text: " \n"},
		{Role: "tool", Name: "tool", Text: "ok"},
	})
	require.NoError(t, err)
	require.Equal(t, lineage.SummaryText{Text: "They agreed.", Model: "small-2026"}, got)
	require.Equal(t, 1, s.attempts())
	r := s.requests[0]
	require.Equal(t, "POST", r.Method)
	require.Equal(t, "/v1/chat/completions", r.URL.String())
	require.Equal(t, "application/json", r.Header.Get("Content-Type"))
	require.Equal(t, "Bearer "+testKey, r.Header.Get("Authorization"))
	require.JSONEq(t, `{"model":"small","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":
		"[summary of what came before]\nEarlier they met.\n\n[user (Ann)]\nIs <this> fine?\n\n[tool]\nok\n\n"}],"max_tokens":77}`, s.bodies[0])
}

func TestDefaultsOfARequest(t *testing.T) {
	s := serve(t, reply(200, `{"choices":[{"message":{"content":"x"}}]}`))
	got, err := s.client(t, Options{}).Summarize(context.Background(), asked)
	require.NoError(t, err)
	require.Equal(t, "small", got.Model, "the answer names none")
	var sent chatRequest
	require.NoError(t, json.Unmarshal([]byte(s.bodies[0]), &sent))
	require.Equal(t, 1000, sent.MaxTokens)
	require.Equal(t, defaultInstructions, sent.Messages[0].Content)
}

func TestNewerNameOfTheBound(t *testing.T) {
	s := serve(t, reply(400, `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}`), reply(200, answer))
	_, err := s.client(t, Options{MaxTokens: 5}).Summarize(context.Background(), asked)
	require.NoError(t, err)
	require.Contains(t, s.bodies[1], `"max_completion_tokens":5`)
	require.NotContains(t, s.bodies[1], `"max_tokens"`)
}

func TestEmbed(t *testing.T) {
	s := serve(t, reply(200, `{"data":[{"index":0,"embedding":[0.5,-1,2e-3]}]}`))
	got, err := s.client(t, Options{}).Embed(context.Background(), "some text")
	require.NoError(t, err)
	require.Equal(t, []float32{0.5, -1, 0.002}, got)
	require.Equal(t, "/v1/embeddings", s.requests[0].URL.String())
	require.Equal(t, "Bearer "+testKey, s.requests[0].Header.Get("Authorization"))
	require.JSONEq(t, `{"model":"vectors","input":"some text"}`, s.bodies[0])
}

func TestEmbedRefusesUnusableAnswers(t *testing.T) {
	for _, body := range []string{`{}`, `{"data":[]}`, `{"data":[{"embedding":[]}]}`, `{"data":[{"embedding":[1e300]}]}`, `{"data":[{"embedding":"AAAA"}]}`} {
		_, err := serve(t, reply(200, body)).client(t, Options{}).Embed(context.Background(), "some text")
		require.ErrorIs(t, err, ErrBadResponse, body)
	}
}

func TestNoTextIsNotSent(t *testing.T) {
	s := serve(t, reply(200, answer))
	for _, nothing := range []lineage.Passage{{Role: "user", Text: "\n"}, {Role: "user", Text: "[erased]", Absent: true}} {
		_, err := s.client(t, Options{}).Summarize(context.Background(), []lineage.Passage{nothing})
		require.ErrorIs(t, err, ErrNoText)
	}
	_, err := s.client(t, Options{}).Summarize(context.Background(), []lineage.Passage{{Role: "user", Text: "\n"}})
	require.ErrorIs(t, err, ErrNoText)
	require.Zero(t, s.attempts())
}

func TestNoKeyIsSentWithoutOne(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	s := serve(t, reply(200, answer))
	c, err := New(Options{BaseURL: s.URL, Model: "small", HTTP: s.Client()})
	require.NoError(t, err)
	_, err = c.Summarize(context.Background(), asked)
	require.NoError(t, err)
	require.NotContains(t, s.requests[0].Header, "Authorization")
}

func TestEnvironment(t *testing.T) {
	s := serve(t, reply(200, answer), reply(200, `{"data":[{"embedding":[1]}]}`), reply(200, answer))
	t.Setenv("OPENAI_BASE_URL", s.URL+"/api//")
	t.Setenv("OPENAI_API_KEY", "from-env")
	t.Setenv("OPENAI_MODEL", "env-model")
	t.Setenv("OPENAI_EMBEDDING_MODEL", "env-vectors")
	c, err := New(Options{HTTP: s.Client()})
	require.NoError(t, err)
	_, err = c.Summarize(context.Background(), asked)
	require.NoError(t, err)
	_, err = c.Embed(context.Background(), "text")
	require.NoError(t, err)
	require.Equal(t, "/api/chat/completions", s.requests[0].URL.String())
	require.Equal(t, "Bearer from-env", s.requests[0].Header.Get("Authorization"))
	require.Contains(t, s.bodies[0], `"env-model"`)
	require.Contains(t, s.bodies[1], `"env-vectors"`)

	c, err = New(Options{Model: "mine", HTTP: s.Client()})
	require.NoError(t, err)
	_, err = c.Summarize(context.Background(), asked)
	require.NoError(t, err)
	require.Contains(t, s.bodies[2], `"mine"`, "an option goes before the environment")
}

func TestMissingConfigurationNamesItsVariable(t *testing.T) {
	for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_EMBEDDING_MODEL"} {
		t.Setenv(name, "")
	}
	_, err := New(Options{})
	require.ErrorIs(t, err, ErrNotConfigured)
	require.ErrorContains(t, err, "OPENAI_BASE_URL")

	c, err := New(Options{BaseURL: "http://localhost:1"})
	require.NoError(t, err)
	_, err = c.Summarize(context.Background(), asked)
	require.ErrorIs(t, err, ErrNotConfigured)
	require.ErrorContains(t, err, "OPENAI_MODEL")
	_, err = c.Embed(context.Background(), "text")
	require.ErrorIs(t, err, ErrNotConfigured)
	require.ErrorContains(t, err, "OPENAI_EMBEDDING_MODEL")
}

func TestUnusableBaseURL(t *testing.T) {
	for _, base := range []string{
		"localhost:8080/v1", "ftp://host/v1", "http://", "/v1", "https://host/v1?key=hunter2", "https://host/v1#x",
		"https://user:hunter2@host:port/v1", "http://hunter2\n",
	} {
		_, err := New(Options{BaseURL: base})
		require.ErrorIs(t, err, ErrNotConfigured, base)
		require.ErrorContains(t, err, "OPENAI_BASE_URL")
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestUnusableAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		attempts   int
	}{
		{"no choices", `{"choices":[]}`, 1},
		{"no content", `{"choices":[{"message":{"content":null},"finish_reason":"length"}]}`, 1},
		{"blank content", `{"choices":[{"message":{"content":" \n"}}]}`, 1},
		{"another JSON", `[]`, 3},
		{"no JSON", `<html>busy</html>`, 3},
		{"nothing", ``, 3},
		{"half of it", answer[:len(answer)/2], 3},
		{"too much", `{"choices":[` + strings.Repeat(" ", maxResponse) + `]}`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, reply(200, tt.body))
			_, err := s.client(t, Options{Attempts: 3}).Summarize(context.Background(), asked)
			require.ErrorIs(t, err, ErrBadResponse)
			require.Less(t, len(err.Error()), 200)
			require.Equal(t, tt.attempts, s.attempts())
		})
	}
}
