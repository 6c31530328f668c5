package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
)

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

// BenchmarkAppend compares an append over loopback with what it cannot be without: a request with the same body to a
// handler that does nothing, and the append of the owner. The three take turns.
func BenchmarkAppend(b *testing.B) {
	store, main := benchStore(b)
	url, tokens := served(b, store)
	_, token, err := tokens.Create(b.Context(), access.Token{Writes: true})
	require.NoError(b, err)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	nothing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
	}))
	defer nothing.Close()
	sides := []func(){
		func() { post(b, client, url+"/v1/threads/=t/contexts/main/messages", token) },
		func() { post(b, nothing.Client(), nothing.URL, token) },
		func() {
			_, err := main.Extend(b.Context(), lineage.User("What is a directed acyclic graph, and what is it good for in a store of conversations?"))
			require.NoError(b, err)
		},
	}
	var times [3][]time.Duration // of rounds
	for b.Loop() {
		for i, do := range sides {
			began := time.Now()
			for range 100 {
				do()
			}
			times[i] = append(times[i], time.Since(began)/100)
		}
	}
	var ratios []float64
	for i := range times[0] {
		ratios = append(ratios, float64(times[0][i])/float64(times[1][i]+times[2][i]))
	}
	slices.Sort(ratios)
	for i, name := range []string{"append", "request", "owner"} {
		slices.Sort(times[i])
		b.ReportMetric(float64(times[i][len(times[i])/2]), name+"-ns")
	}
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(0, "ns/op")
}
