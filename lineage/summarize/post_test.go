package summarize

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRefusals(t *testing.T) {
	const usual = `{"error":{"message":"Incorrect API key provided: ` + testKey + `.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`
	for _, tt := range []struct {
		name, body, code, message string
		status, attempts          int
	}{
		{"usual form", usual, "invalid_api_key", "Incorrect API key provided: [key].", 401, 1},
		{"plain text", "no such\n\n\x1b[31m model: " + testKey + "\xff", "", "no such [31m model: [key]", 400, 1},
		{"a number for a code", `{"error":{"message":"bad","code":400}}`, "", "bad", 400, 1},
		{"a text for an error", `{"error":"model not found"}`, "", "model not found", 404, 1},
		{"other JSON", `{"detail":"no"}`, "", `{"detail":"no"}`, 422, 1},
		{"nothing", "", "", "", 403, 1},
		{"long text", strings.Repeat("é", 1000), "", strings.Repeat("é", maxQuote/2) + "…", 400, 1},
		{"rate limit", `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, "rate_limit_exceeded", "slow down", 429, 3},
		{"used up", `{"error":{"message":"pay","code":"insufficient_quota"}}`, "insufficient_quota", "pay", 429, 1},
		{"timeout", "", "", "", 408, 3},
		{"broken", "oops", "", "oops", 500, 3},
		{"overloaded", "", "", "", 503, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, reply(tt.status, tt.body))
			_, err := s.client(t, Options{Attempts: 3}).Summarize(context.Background(), asked)
			var refusal *APIError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, &APIError{Status: tt.status, Code: tt.code, Message: tt.message}, refusal)
			require.Equal(t, tt.attempts, s.attempts())
			require.NotContains(t, err.Error(), testKey)
			if tt.message == "" {
				require.ErrorContains(t, err, http.StatusText(tt.status))
			}
		})
	}
}

// cut closes the connection in the middle of the body.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, answer)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestSuccessAfterFailures(t *testing.T) {
	s := serve(t, reply(500, "oops"), reply(503, ""), cut, reply(200, "{"), reply(429, "", "Retry-After", "0"),
		reply(429, "", "Retry-After", "Fri, 02 Jan 2015 10:00:00 GMT"), reply(200, answer))
	got, err := s.client(t, Options{Attempts: 7}).Summarize(context.Background(), asked)
	require.NoError(t, err)
	require.Equal(t, "They agreed.", got.Text)
	require.Equal(t, 7, s.attempts())
	for _, body := range s.bodies {
		require.Equal(t, s.bodies[0], body)
	}
}

// A failed attempt must not influence a later response.
func TestAttemptsShareNothing(t *testing.T) {
	s := serve(t, reply(200, `{"model":"wrong","choices":"none"}`), reply(200, `{"choices":[{"message":{"content":"x"}}]}`))
	got, err := s.client(t, Options{}).Summarize(context.Background(), asked)
	require.NoError(t, err)
	require.Equal(t, "small", got.Model)
}

func TestConnectionsCutInTheBody(t *testing.T) {
	s := serve(t, cut)
	_, err := s.client(t, Options{}).Summarize(context.Background(), asked)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "attempt 4")
	require.Equal(t, 4, s.attempts())
}

func TestUnreachableServer(t *testing.T) {
	s := serve(t, reply(200, answer))
	c := s.client(t, Options{Attempts: 2})
	s.Close()
	_, err := c.Summarize(context.Background(), asked)
	require.ErrorContains(t, err, "attempt 2")
	require.NotContains(t, err.Error(), testKey)
}

// hang does not answer until the client disconnects.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// trickle sends one byte at a time, forever.
func trickle(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = io.WriteString(w, " ")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Millisecond)
	}
}

func TestTimeoutBoundsEachAttempt(t *testing.T) {
	for name, step := range map[string]http.HandlerFunc{"hanging": hang, "trickling": trickle} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, step)
			_, err := s.client(t, Options{Timeout: 30 * time.Millisecond, Attempts: 2}).Summarize(context.Background(), asked)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "attempt 2")
			require.LessOrEqual(t, s.attempts(), 2)
		})
	}
	synctest.Test(t, func(t *testing.T) { // the second attempt has its own time
		attempts := 0
		c, err := New(Options{BaseURL: "http://example.com/v1", Model: "small", HTTP: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if attempts++; attempts == 1 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: 200, Request: r, Body: io.NopCloser(strings.NewReader(answer))}, nil
		})}})
		require.NoError(t, err)
		_, err = c.Summarize(t.Context(), asked)
		require.NoError(t, err)
		require.Equal(t, 2, attempts)
	})
}

var errStop = errors.New("stop")

func TestCancellationDuringARequest(t *testing.T) {
	for name, step := range map[string]http.HandlerFunc{"hanging": hang, "trickling": trickle} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				time.AfterFunc(10*time.Millisecond, func() { cancel(errStop) })
				step(w, r)
			})
			_, err := s.client(t, Options{Timeout: time.Hour}).Summarize(ctx, asked)
			require.Equal(t, errStop, err)
			require.Equal(t, 1, s.attempts())
		})
	}
}

func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStop)
	s := serve(t, reply(200, answer))
	_, err := s.client(t, Options{}).Embed(ctx, "text")
	require.Equal(t, errStop, err)
	require.Zero(t, s.attempts())
}

// transport is a server without a network, for tests with fake time.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// refusing returns a client whose requests are all refused, and the times of the requests.
func refusing(t *testing.T, o Options, retryAfter string) (*Client, *[]time.Duration) {
	t.Helper()
	start, came := time.Now(), &[]time.Duration{}
	o.BaseURL, o.Model = "http://example.com/v1", "small"
	o.HTTP = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		*came = append(*came, time.Since(start))
		return &http.Response{
			StatusCode: 429, Request: r, Body: io.NopCloser(strings.NewReader("busy")), Header: http.Header{"Retry-After": {retryAfter}},
		}, nil
	})}
	c, err := New(o)
	require.NoError(t, err)
	return c, came
}

func TestBackoffDoublesUpToAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, came := refusing(t, Options{Attempts: 12, Backoff: time.Second}, "")
		_, err := c.Summarize(t.Context(), asked)
		var refusal *APIError
		require.ErrorAs(t, err, &refusal)
		require.Len(t, *came, 12)
		for i, most := 1, time.Second; i < 12; i, most = i+1, min(2*most, time.Minute) {
			wait := (*came)[i] - (*came)[i-1]
			require.GreaterOrEqual(t, wait, most/2)
			require.LessOrEqual(t, wait, most)
		}
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, came := refusing(t, Options{Attempts: 3}, "60")
		_, err := c.Summarize(t.Context(), asked)
		require.ErrorContains(t, err, "attempt 3")
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute}, *came)
	})
	synctest.Test(t, func(t *testing.T) {
		c, came := refusing(t, Options{Attempts: 2}, time.Now().Add(20*time.Second).UTC().Format(http.TimeFormat))
		_, err := c.Summarize(t.Context(), asked)
		require.Error(t, err)
		require.Equal(t, []time.Duration{0, 20 * time.Second}, *came)
	})
}

func TestRetryAfterBeyondAMinuteGivesUp(t *testing.T) {
	for _, seconds := range []string{"61", "9223372036854775807"} {
		synctest.Test(t, func(t *testing.T) {
			c, came := refusing(t, Options{}, seconds)
			_, err := c.Summarize(t.Context(), asked)
			var refusal *APIError
			require.ErrorAs(t, err, &refusal)
			require.Greater(t, refusal.RetryAfter, time.Minute)
			require.Equal(t, []time.Duration{0}, *came)
		})
	}
}

func TestCancellationDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(7*time.Second, func() { cancel(errStop) })
		c, came := refusing(t, Options{}, "50")
		_, err := c.Summarize(ctx, asked)
		require.Equal(t, errStop, err)
		require.Equal(t, 7*time.Second, time.Since(start))
		require.Len(t, *came, 1)
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "0": 0, "1.5": 0, "7": 7 * time.Second, "9223372036854775807": math.MaxInt64 / time.Second * time.Second,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT": 0, "99999999999999999999": 0,
	} {
		require.Equal(t, want, retryAfter(value, now), value)
	}
}
