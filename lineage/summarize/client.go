package summarize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
)

// Client uses a model behind an OpenAI-compatible endpoint. It is safe for concurrent use.
type Client struct{ opt Options }

var _ lineage.Summarizer = (*Client)(nil)

const defaultInstructions = "Summarize the conversation so that someone can go on with it without having read it. " +
	"Keep goals, decisions, facts, names, numbers, open questions and errors. Leave out pleasantries. " +
	"Answer with the summary alone."

// New returns a client. It reads the environment and sends no request.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	if o.BaseURL == "" {
		return nil, fmt.Errorf("base URL: %w (set OPENAI_BASE_URL)", ErrNotConfigured)
	}
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		// The URL is not quoted: it may contain a password.
		return nil, fmt.Errorf("base URL: %w: must be http(s)://host/path (see OPENAI_BASE_URL)", ErrNotConfigured)
	}
	return &Client{opt: o}, nil
}

func (o Options) withDefaults() Options {
	o.BaseURL = strings.TrimRight(cmp.Or(o.BaseURL, os.Getenv("OPENAI_BASE_URL")), "/")
	o.Key = cmp.Or(o.Key, os.Getenv("OPENAI_API_KEY"))
	o.Model = cmp.Or(o.Model, os.Getenv("OPENAI_MODEL"))
	o.EmbeddingModel = cmp.Or(o.EmbeddingModel, os.Getenv("OPENAI_EMBEDDING_MODEL"))
	o.Instructions = cmp.Or(o.Instructions, defaultInstructions)
	o.MaxTokens = cmp.Or(max(o.MaxTokens, 0), 1000)
	o.Timeout = cmp.Or(max(o.Timeout, 0), time.Minute)
	o.Attempts = cmp.Or(max(o.Attempts, 0), 4)
	o.Backoff = cmp.Or(max(o.Backoff, 0), 500*time.Millisecond)
	o.HTTP = cmp.Or(o.HTTP, &http.Client{})
	return o
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// chatRequest has the limit under two names: older servers know only the first, newer OpenAI models
// only the second.
type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	MaxTokens           int           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
}

type chatResponse struct {
	Model   string `json:"model"`
	Choices []struct {
		Message      chatMessage `json:"message"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
}

// Summarize implements lineage.Summarizer. It sends the passages to the endpoint.
func (c *Client) Summarize(ctx context.Context, passages []lineage.Passage) (lineage.SummaryText, error) {
	if c.opt.Model == "" {
		return lineage.SummaryText{}, fmt.Errorf("model: %w (set OPENAI_MODEL)", ErrNotConfigured)
	}
	text := conversationText(passages)
	if text == "" || !anyAtHand(passages) {
		return lineage.SummaryText{}, ErrNoText
	}
	request := chatRequest{
		Model: c.opt.Model, Messages: []chatMessage{{"system", c.opt.Instructions}, {"user", text}}, MaxTokens: c.opt.MaxTokens,
	}
	response, err := post[chatResponse](ctx, &c.opt, "/chat/completions", request)
	var refusal *APIError
	if errors.As(err, &refusal) && refusal.Status == http.StatusBadRequest && strings.Contains(refusal.Message, "max_completion_tokens") {
		request.MaxTokens, request.MaxCompletionTokens = 0, c.opt.MaxTokens
		response, err = post[chatResponse](ctx, &c.opt, "/chat/completions", request)
	}
	if err != nil {
		return lineage.SummaryText{}, err
	}
	if len(response.Choices) == 0 {
		return lineage.SummaryText{}, fmt.Errorf("%w: no summary", ErrBadResponse)
	}
	choice := response.Choices[0]
	summary := strings.TrimSpace(choice.Message.Content)
	if summary == "" {
		return lineage.SummaryText{}, fmt.Errorf("%w: empty summary (finish reason %q)", ErrBadResponse, choice.FinishReason)
	}
	return lineage.SummaryText{Text: summary, Model: cmp.Or(response.Model, c.opt.Model)}, nil
}

// Embed returns the embedding of a text: see lineage.SummarizeOptions.
func (c *Client) Embed(ctx context.Context, text string) ([]float32, error) {
	if c.opt.EmbeddingModel == "" {
		return nil, fmt.Errorf("embedding model: %w (set OPENAI_EMBEDDING_MODEL)", ErrNotConfigured)
	}
	request := struct {
		Model string `json:"model"`
		Input string `json:"input"`
	}{c.opt.EmbeddingModel, text}
	type answer struct {
		Data []struct {
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	response, err := post[answer](ctx, &c.opt, "/embeddings", request)
	if err != nil {
		return nil, err
	}
	if len(response.Data) == 0 || len(response.Data[0].Embedding) == 0 {
		return nil, fmt.Errorf("%w: no embedding", ErrBadResponse)
	}
	return response.Data[0].Embedding, nil
}

// conversationText writes the passages with text for a model.
func conversationText(passages []lineage.Passage) string {
	var b strings.Builder
	for _, p := range passages {
		if strings.TrimSpace(p.Text) == "" {
			continue
		}
		who := p.Role
		if p.Summary {
			who = "summary of what came before"
		} else if p.Name != "" && p.Name != p.Role {
			who += " (" + p.Name + ")"
		}
		fmt.Fprintf(&b, "[%s]\n%s\n\n", who, p.Text)
	}
	return b.String()
}
