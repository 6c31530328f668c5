package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/postgres"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/api"
)

// onEachStore runs a test on a store in a directory and on one on a server.
func onEachStore(t *testing.T, test func(t *testing.T, store *lineage.Store)) {
	t.Run("directory", func(t *testing.T) {
		store, err := lineage.Open(t.Context(), t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close()) }()
		test(t, store)
	})
	t.Run("postgres", func(t *testing.T) {
		engine, err := postgres.Open(t.Context(), pgtest.DSN(t), postgres.Options{Store: "s", Unsafe: true})
		require.NoError(t, err)
		store := lineage.New(engine)
		defer func() { require.NoError(t, store.Close()) }()
		test(t, store)
	})
}

// programOf returns a function that gets what the API of a store answers to a program that may read everything.
func programOf(t *testing.T, store *lineage.Store) func(path string) map[string]any {
	tokens := access.Open(t.TempDir(), store.ID())
	_, secret, err := tokens.Create(t.Context(), access.Token{})
	require.NoError(t, err)
	s, err := server.Open(t.Context(), server.Options{Store: store, Access: tokens, Listen: "127.0.0.1:0", Routes: api.New(api.Options{Store: store}).Routes(), Limits: patientLimits})
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		require.NoError(t, s.Close(t.Context()))
	})
	return func(path string) (got map[string]any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String()+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+secret)
		answer, err := client.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&got))
		return got
	}
}

// TestChatsInPages: the pages of the list of chats have the chats of the library, each once and none of them short, where threads that
// are no chats are before, between and after those that are.
func TestChatsInPages(t *testing.T) {
	onEachStore(t, func(t *testing.T, store *lineage.Store) {
		create := func(source string) *lineage.Thread {
			thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{SourceID: source, UserID: "ada", Keep: true})
			require.NoError(t, err)
			return thread
		}
		for i := range 4 {
			hidden := create("")
			create(fmt.Sprint("chat ", i))
			create(hidden.ID().String())
			create("")
			_, err := store.CreateThread(t.Context(), lineage.ThreadOptions{SourceID: create("").ID().String()})
			require.NoError(t, err)
		}
		get := programOf(t, store)
		for _, user := range []string{"", "ada"} {
			var want []any
			for c, err := range chat.On(store).ListChats(t.Context(), chat.ListOptions{UserID: user}) {
				require.NoError(t, err)
				want = append(want, c.ID)
			}
			require.GreaterOrEqual(t, len(want), 12)
			for offset := range len(want) + 1 {
				for _, limit := range []int{1, 2, 1000} {
					var got []any
					for query := fmt.Sprintf("?user=%s&limit=%d&offset=%d", user, limit, offset); ; {
						page := get("/v1/chats" + query)
						items := page["items"].([]any)
						for _, one := range items {
							got = append(got, one.(map[string]any)["id"])
						}
						next, more := page["next"].(string)
						if !more {
							break
						}
						require.Len(t, items, limit)
						query = fmt.Sprintf("?user=%s&limit=%d&after=%s", user, limit, url.QueryEscape(next))
					}
					require.Equal(t, want[offset:], append([]any{}, got...))
				}
			}
		}
	})
}
