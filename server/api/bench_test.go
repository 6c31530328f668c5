package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
)

// One append over loopback is compared with what it cannot be without: a request with the same body to a handler that does
// nothing (BenchmarkRequest), and the append of the owner (BenchmarkOwner).
const appended = `{"messages":[{"role":"user","text":"What is a directed acyclic graph, and what is it good for in a store of conversations?"}]}`

func post(b *testing.B, client *http.Client, url, token string) {
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(appended))
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer "+token)
	a, err := client.Do(r)
	require.NoError(b, err)
	_, err = io.Copy(io.Discard, a.Body)
	require.NoError(b, err)
	require.NoError(b, a.Body.Close())
	require.Equal(b, http.StatusCreated, a.StatusCode)
}

func benchStore(b *testing.B) (*lineage.Store, *lineage.Context) {
	store, err := lineage.Open(b.Context(), b.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	t, err := store.CreateThread(b.Context(), lineage.ThreadOptions{SourceID: "t"})
	require.NoError(b, err)
	main, err := t.Active(b.Context())
	require.NoError(b, err)
	return store, main
}

func BenchmarkAppend(b *testing.B) {
	store, _ := benchStore(b)
	url, tokens := served(b, store)
	_, token, err := tokens.Create(b.Context(), access.Token{Writes: true})
	require.NoError(b, err)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		post(b, client, url+"/v1/threads/=t/contexts/main/messages", token)
	}
}

func BenchmarkRequest(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	b.ReportAllocs()
	for b.Loop() {
		post(b, server.Client(), server.URL, "lineage_none")
	}
}

func BenchmarkOwner(b *testing.B) {
	_, main := benchStore(b)
	b.ReportAllocs()
	for b.Loop() {
		_, err := main.Extend(b.Context(), lineage.User("What is a directed acyclic graph, and what is it good for in a store of conversations?"))
		require.NoError(b, err)
	}
}
