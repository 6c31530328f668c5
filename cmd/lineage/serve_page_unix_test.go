//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/browser"
	"github.com/lineage-store/lineage/lineage/records"
)

// startServing starts a server of a store in a process of its own.
func startServing(t *testing.T, dir string, more ...string) (*exec.Cmd, *records.Serving) {
	t.Helper()
	c := command(t, "lineage", append([]string{"serve", "--json", "--listen", "127.0.0.1:0", "--store", dir, "--wait", "1h"}, more...)...)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var r records.Serving
	require.NoError(t, json.Unmarshal([]byte(line), &r))
	return c, &r
}

// sent sends a request with a token to a server, and returns the answer.
func sent(t *testing.T, at *records.Serving, method, path, body, token string) *http.Response {
	t.Helper()
	base := "http://127.0.0.1:" + at.URL[strings.LastIndex(at.URL, ":")+1:]
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	return answer
}

// newToken creates a token.
func newToken(t *testing.T, dir string, flags ...string) (token records.Token) {
	t.Helper()
	created := runLine(t.Context(), append([]string{"token", "create", "--json", "--store", dir}, flags...)...)
	require.Equal(t, 0, created.code, created.err)
	require.NoError(t, json.Unmarshal([]byte(created.out), &token))
	return token
}

// stopped interrupts a server and waits for its end.
func stopped(t *testing.T, c *exec.Cmd) {
	t.Helper()
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	require.NoError(t, c.Wait())
	require.Equal(t, app.ExitOK, c.ProcessState.ExitCode())
}

// TestServePage opens the page of a server in a browser. What another process appends is seen without a reload, and so it
// is in the page of a second server, which is a guest of the first and takes over from it.
func TestServePage(t *testing.T) {
	ownHome(t)
	dir := newStore(t)
	first, at := startServing(t, dir)
	second, other := startServing(t, dir)
	require.NotEqual(t, at.URL, other.URL)
	tab := browser.Open(t)
	seen := func(tab *browser.Tab, text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			has, err := chromedp.Run(tab, chromedp.Evaluate[bool]("document.body !== null && document.body.innerText.includes("+quoted(text)+")"))
			return err == nil && has // it fails between two documents
		}, soon, 20*time.Millisecond, "%q", tab.Problems())
	}
	guest := tab.Tab()
	for _, one := range []struct {
		tab  *browser.Tab
		link string
	}{{tab, at.Link}, {guest, other.Link}} {
		one.tab.Do(chromedp.Navigate(one.link))
		seen(one.tab, "hello")
	}
	require.Equal(t, 0, runLine(t.Context(), "append", "words of another process", "--role", "user", "--store", dir).code)
	seen(tab, "words of another process")
	seen(guest, "words of another process")
	stopped(t, first)
	require.Equal(t, 0, runLine(t.Context(), "append", "words after the handover", "--role", "user", "--store", dir, "--wait", "1h").code)
	seen(guest, "words after the handover")
	require.Empty(t, guest.Problems())

	got := runLine(t.Context(), "serve", "--link", "--json", "--store", dir)
	require.Equal(t, 0, got.code, got.err)
	var again records.Serving
	require.NoError(t, json.Unmarshal([]byte(got.out), &again))
	require.Equal(t, other.URL, again.URL)
	tab.Do(chromedp.Navigate(again.Link))
	seen(tab, "words after the handover")
	stopped(t, second)
	require.Equal(t, app.ExitNotFound, runLine(t.Context(), "serve", "--link", "--store", dir).code, "there is none any more")
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // strings always marshal
	return string(b)
}

// TestServeToPrograms calls a server with tokens of the command line.
func TestServeToPrograms(t *testing.T) {
	ownHome(t)
	dir := newStore(t)
	c, at := startServing(t, dir, "--read-only")
	get := func(path, token string) (int, string) {
		answer := sent(t, at, "GET", path, "", token)
		defer answer.Body.Close()
		body, err := bufio.NewReader(answer.Body).ReadString('}')
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}
		return answer.StatusCode, body
	}
	token := newToken(t, dir, "--name", "ci")
	status, event := get("/v1/events?from=1", token.Secret)
	require.Equal(t, 200, status)
	require.Contains(t, event, "thread created")
	for _, path := range []string{"/", "/usage", "/search?q=hello", "/metrics"} {
		status, _ = get(path, token.Secret)
		require.Equal(t, 200, status, path)
	}
	require.Contains(t, runLine(t.Context(), "token", "list", "--store", dir).out, "ci")
	require.NotContains(t, runLine(t.Context(), "token", "list", "--json", "--store", dir).out, token.Secret)
	require.Equal(t, 0, runLine(t.Context(), "token", "delete", token.ID, "--store", dir).code)
	require.Equal(t, app.ExitNotFound, runLine(t.Context(), "token", "delete", token.ID, "--store", dir).code)
	status, _ = get("/metrics", token.Secret)
	require.Equal(t, http.StatusUnauthorized, status)
	stopped(t, c)
}

// TestServeRemovedStore removes a store under its server, which ends and says why.
func TestServeRemovedStore(t *testing.T) {
	ownHome(t)
	dir := newStore(t)
	c, at := startServing(t, dir, "--idle", "1h")
	require.NotEmpty(t, at.URL)
	require.NoError(t, os.RemoveAll(dir))
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	select {
	case err := <-done:
		require.Error(t, err)
		require.NotEqual(t, app.ExitInterrupted, c.ProcessState.ExitCode())
	case <-ctx.Done():
		t.Fatal("it still serves")
	}
}

func TestServeFlags(t *testing.T) {
	ownHome(t)
	dir := newStore(t)
	for _, args := range [][]string{
		{"--listen", "0.0.0.0:0"}, {"--listen", "nonsense"}, {"--tls-cert", "x"}, {"--no-http", "--plain"}, {"--read-only", "--follow"},
		{"--link", "--follow"}, {"--idle", "-1s"}, {"--allow-origin", "example.org"}, {"--no-http", "--open"},
	} {
		got := runLine(t.Context(), append([]string{"serve", "--store", dir}, args...)...)
		require.Equal(t, app.ExitUsage, got.code, "%v: %s", args, got.err)
	}
	got := runLine(t.Context(), "serve", "--listen", "127.0.0.1:0", "--tls-cert", dir+"/none", "--tls-key", dir+"/none", "--store", dir)
	require.Equal(t, app.ExitNotFound, got.code, got.err)
	require.Equal(t, app.ExitUsage, runLine(t.Context(), "token", "create", "--user", "", "--store", dir).code)
	require.Equal(t, app.ExitUsage, runLine(t.Context(), "token", "create", "--expires", "-1s", "--store", dir).code)
}

// TestSearchOfTokens searches with a token of each of two users, who chose the same id for a thread, and with one of the whole store.
func TestSearchOfTokens(t *testing.T) {
	ownHome(t)
	dir := newStore(t)
	c, at := startServing(t, dir)
	do := func(method, path, body, token string) string {
		answer := sent(t, at, method, path, body, token)
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Less(t, answer.StatusCode, 300, "%s %s: %s", method, path, b)
		return string(b)
	}
	threads := make(map[string][]records.HitThread)
	for _, user := range []string{"", "ada", "bob"} {
		flags := []string{"--write"}
		if user != "" {
			flags = append(flags, "--user", user)
		}
		token := newToken(t, dir, flags...)
		var thread records.Thread
		require.NoError(t, json.Unmarshal([]byte(do("POST", "/v1/threads", `{"id":"same"}`, token.Secret)), &thread))
		do("POST", "/v1/threads/=same/contexts/main/messages", `{"messages":[{"role":"user","text":"quokka"}]}`, token.Secret)
		if user == "" {
			continue
		}
		var found struct{ Items []records.Hit }
		require.NoError(t, json.Unmarshal([]byte(do("GET", "/v1/search?q=quokka", "", token.Secret)), &found))
		require.Len(t, found.Items, 1)
		threads[user] = found.Items[0].Threads
		require.Equal(t, []records.HitThread{{ID: thread.ID, SourceID: "same"}}, threads[user])
	}
	require.NotEqual(t, threads["ada"], threads["bob"])
	stopped(t, c)
}
