package api

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/access"
)

// patient are the limits of a server of tests: the machine may be slow.
var patient = server.Limits{Header: time.Hour, Body: time.Hour, Write: time.Hour}

// served starts a server with the API of a store, and returns its address.
func served(t testing.TB, store *lineage.Store, change ...func(*server.Options)) (url string, tokens *access.File) {
	tokens = access.Open(t.TempDir(), store.ID())
	o := server.Options{Store: store, Access: tokens, Listen: "127.0.0.1:0", Routes: New(Options{Store: store}).Routes(), Limits: patient}
	for _, change := range change {
		change(&o)
	}
	s, err := server.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return "http://" + s.Addr().String(), tokens
}

// TestRequestsOfDocuments sends the requests of docs/api.md, in order, to a server, and then again.
func TestRequestsOfDocuments(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	var values []string // of the variables
	for _, place := range []string{"", "THERE_"} {
		store, options := lineagetest.New(t, lineage.Options{}), fixtureOptions()
		options.Store = store
		url, tokens := served(t, store, func(o *server.Options) { o.Routes = New(options).Routes() })
		_, secret, err := tokens.Create(t.Context(), access.Token{Name: "me", Writes: true})
		require.NoError(t, err)
		values = append(values, "$"+place+"LINEAGE", url, "$"+place+"AUTH", "Authorization: Bearer "+secret)
	}
	files := make(map[string]string)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	sent := 0
	for block := range strings.SplitSeq(strings.Repeat(string(text)+"\n", 2), "```sh\n") {
		block, _, found := strings.Cut(block, "```")
		if !found {
			continue
		}
		for _, command := range strings.Split(strings.ReplaceAll("\n"+block, "\ncurl ", "\x00"), "\x00")[1:] {
			r, output := curl(t, files, words(strings.NewReplacer(values...).Replace(command)))
			a, err := client.Do(r)
			require.NoError(t, err)
			body, err := io.ReadAll(a.Body)
			require.NoError(t, err)
			require.NoError(t, a.Body.Close())
			require.Less(t, a.StatusCode, 300, "%s: %s", command, body)
			files[output] = string(body)
			sent++
		}
	}
	require.Greater(t, sent, 40)
}

// curl returns the request of a command, and the name of the file for the answer.
func curl(t *testing.T, files map[string]string, args []string) (r *http.Request, output string) {
	method, url, body := http.MethodGet, "", ""
	header := make(http.Header)
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-X":
			i++
			method = args[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Set(name, value)
		case "-d", "--data-binary":
			i++
			method, body = http.MethodPost, args[i]
			if name, ok := strings.CutPrefix(body, "@"); ok {
				require.Contains(t, files, name)
				body = files[name]
			}
		case "-o":
			i++
			output = args[i]
		default:
			require.Empty(t, url, "%q", args[i])
			url = args[i]
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header = header
	return r, output
}

// words splits a command as a shell does, which knows quotes and nothing else.
func words(command string) (all []string) {
	var word strings.Builder
	quote, inside := rune(0), false
	for _, c := range command {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, inside = c, true
		case c == ' ' || c == '\n':
			if inside {
				all = append(all, word.String())
				word.Reset()
			}
			inside = false
		default:
			word.WriteRune(c)
			inside = true
		}
	}
	if inside {
		all = append(all, word.String())
	}
	return all
}

// TestTokens calls a server with tokens: the rights and the scope that a token has are those that the API keeps to.
func TestTokens(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	url, tokens := served(t, store)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	status := func(token access.Token, method, path, body string) int {
		t.Helper()
		_, secret, err := tokens.Create(t.Context(), token)
		require.NoError(t, err)
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+secret)
		a, err := client.Do(r)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, a.Body)
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		return a.StatusCode
	}
	ada, bob := access.Scope{Users: []string{"ada"}}, access.Scope{Users: []string{"bob"}}
	require.Equal(t, 403, status(access.Token{}, "POST", "/v1/threads", `{"id":"t"}`))
	require.Equal(t, 201, status(access.Token{Writes: true, Scope: ada}, "POST", "/v1/threads", `{"id":"t"}`))
	require.Equal(t, 200, status(access.Token{Scope: ada}, "GET", "/v1/threads/=t", ""))
	require.Equal(t, 404, status(access.Token{Writes: true, Scope: bob}, "GET", "/v1/threads/=t", ""))
	require.Equal(t, 404, status(access.Token{Writes: true, Scope: bob}, "POST", "/v1/threads/=t/contexts/main/messages", `{"messages":[{"text":"x"}]}`))
	require.Equal(t, 403, status(access.Token{Scope: ada}, "GET", "/v1/stats", ""))
	large := `{"messages":[{"text":"` + strings.Repeat("a", 5<<20) + `"}]}`
	require.Equal(t, 201, status(access.Token{Writes: true, Scope: ada}, "POST", "/v1/threads/=t/contexts/main/messages", large), "bodies of the API may be larger than others")
	require.Equal(t, 413, status(access.Token{Writes: true, Scope: ada}, "POST", "/v1/threads/=t/contexts/main/messages", strings.Repeat(" ", maxBody+1)))
	require.Equal(t, 201, status(access.Token{Writes: true, Scope: ada}, "POST", "/v1/threads/=t/contexts/main/files?name=f", strings.Repeat("b", 20<<20)))
}
