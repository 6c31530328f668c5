package summarize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	maxResponse = 16 << 20
	maxWait     = time.Minute
	// maxQuote limits the bytes of a server's message in an error.
	maxQuote = 300
)

// post sends a request until it succeeds, fails permanently, or the attempts are used up. If ctx
// ends, it returns the cause.
func post[T any](ctx context.Context, o *Options, path string, request any) (T, error) {
	var none T
	body, err := json.Marshal(request)
	if err != nil {
		return none, err
	}
	backoff := o.Backoff
	for attempt := 1; ; attempt++ {
		response, again, err := try[T](ctx, o, path, body)
		if err == nil {
			return response, nil
		}
		if ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
		wait := backoff/2 + rand.N(backoff/2+1) // so that clients do not retry at the same time
		var refusal *APIError
		if errors.As(err, &refusal) && refusal.RetryAfter > 0 {
			wait = refusal.RetryAfter
			again = again && wait <= maxWait // do not retry earlier than requested
		}
		if !again || attempt >= o.Attempts {
			if attempt > 1 {
				err = fmt.Errorf("attempt %d: %w", attempt, err)
			}
			return none, err
		}
		select {
		case <-time.After(min(wait, maxWait)):
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
		backoff = min(2*backoff, maxWait)
	}
}

// try sends a request once. again reports whether a retry may help.
func try[T any](ctx context.Context, o *Options, path string, body []byte) (response T, again bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("no answer within %v: %w", o.Timeout, context.DeadlineExceeded))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return response, false, err
	}
	request.Header.Set("Content-Type", "application/json")
	if o.Key != "" {
		request.Header.Set("Authorization", "Bearer "+o.Key)
	}
	answer, err := o.HTTP.Do(request)
	if err != nil {
		return response, true, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse+1))
	if answer.StatusCode/100 != 2 {
		refusal := refusalOf(o, answer, text)
		return response, refusal.temporary(), refusal
	}
	if err != nil {
		return response, true, fmt.Errorf("read response: %w", err)
	}
	if len(text) > maxResponse {
		return response, false, fmt.Errorf("%w: longer than %d bytes", ErrBadResponse, maxResponse)
	}
	if err := json.Unmarshal(text, &response); err != nil {
		return response, true, fmt.Errorf("%w: %w", ErrBadResponse, err)
	}
	return response, false, nil
}

// refusalOf returns the error of a server. The key is removed from the message, because some servers
// repeat it.
func refusalOf(o *Options, answer *http.Response, body []byte) *APIError {
	code, message := errorOf(body)
	if o.Key != "" {
		message = strings.ReplaceAll(message, o.Key, "[key]")
	}
	return &APIError{
		Status: answer.StatusCode, Code: code, Message: brief(message),
		RetryAfter: retryAfter(answer.Header.Get("Retry-After"), time.Now()),
	}
}

// errorOf reads an error in OpenAI's format or with a text as error; otherwise the message is the
// body.
func errorOf(body []byte) (code, message string) {
	var form struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &form) == nil {
		var details struct {
			Message string `json:"message"`
			Code    any    `json:"code"` // a number with some servers
		}
		if json.Unmarshal(form.Error, &details) == nil && details.Message != "" {
			code, _ = details.Code.(string)
			return code, details.Message
		}
		if json.Unmarshal(form.Error, &message) == nil && message != "" {
			return "", message
		}
	}
	return "", string(body)
}

// brief returns a message as one short line.
func brief(message string) string {
	line := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(message, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(line) > maxQuote {
		line = strings.ToValidUTF8(line[:maxQuote], "") + "…"
	}
	return line
}

// retryAfter parses the Retry-After header: seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), math.MaxInt64/int64(time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
