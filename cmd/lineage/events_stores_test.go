package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/access"
)

// TestEventsOfAnIDGivenToAnother: a token for a user gets none of the events that an id had while it was another user's,
// also after a collection, and all of the events since then, from whatever position.
func TestEventsOfAnIDGivenToAnother(t *testing.T) {
	onEachStore(t, func(t *testing.T, store *lineage.Store) {
		ctx := t.Context()
		talk := func(user string) *lineage.Thread {
			thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "thread", UserID: user})
			require.NoError(t, err)
			main, err := thread.Active(ctx)
			require.NoError(t, err)
			for range 3 {
				_, err = main.Extend(ctx, lineage.User("of "+user))
				require.NoError(t, err)
			}
			return thread
		}
		number := func() uint64 {
			head, err := store.View().Head(ctx)
			require.NoError(t, err)
			return head.Number
		}
		require.NoError(t, talk("ada").Delete(ctx))
		before := number()
		talk("bob")
		tokens := access.Open(t.TempDir(), store.ID())
		s, err := server.Open(ctx, server.Options{Store: store, Access: tokens, Listen: "127.0.0.1:0", Limits: patientLimits})
		require.NoError(t, err)
		client := &http.Client{Transport: &http.Transport{}}
		defer func() {
			client.CloseIdleConnections()
			require.NoError(t, s.Close(ctx))
		}()
		check := func(user string, from uint64) {
			_, secret, err := tokens.Create(ctx, access.Token{Scope: access.Scope{Users: []string{user}}})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/v1/events?from=%d", s.Addr(), from), nil)
			require.NoError(t, err)
			r.Header.Set("Authorization", "Bearer "+secret)
			answer, err := client.Do(r)
			require.NoError(t, err)
			defer answer.Body.Close()
			require.Equal(t, http.StatusOK, answer.StatusCode)
			end, err := store.CreateThread(ctx, lineage.ThreadOptions{UserID: user})
			require.NoError(t, err)
			seen := make(map[uint64]bool)
			for lines := bufio.NewScanner(answer.Body); ; {
				require.True(t, lines.Scan())
				data, ok := strings.CutPrefix(lines.Text(), "data: ")
				if !ok {
					continue
				}
				var events []records.Event
				require.NoError(t, json.Unmarshal([]byte(data), &events))
				for _, e := range events {
					seen[e.Commit] = true
				}
				if events[0].Thread == end.ID().String() {
					break
				}
			}
			for n := uint64(1); n < number(); n++ {
				require.Equal(t, user == "bob" && n > before && n <= before+4 && n >= from, seen[n], "%s from %d: commit %d", user, from, n)
			}
			require.NoError(t, end.Delete(ctx))
		}
		for from := uint64(1); from <= before+4; from++ {
			check("ada", from)
			check("bob", from)
		}
		_, err = store.Collect(ctx, lineage.CollectOptions{})
		require.NoError(t, err)
		check("ada", 1)
		check("bob", 1)
	})
}
