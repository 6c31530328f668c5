package remote

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// strangePipe returns a pipe on which frames of the server, after the first, are replaced by others.
func strangePipe(replace func(frame []byte) [][]byte) pipe {
	return func(t testing.TB) (client, server net.Conn) {
		client, near := memoryPipe(t)
		far, server := memoryPipe(t)
		go func() {
			_, _ = io.Copy(far, near)
			_ = far.Close()
		}()
		go func() {
			defer near.Close()
			r := bufio.NewReader(far)
			greeting := make([]byte, len(magic)+4)
			if _, err := io.ReadFull(r, greeting); err != nil {
				return
			}
			if _, err := near.Write(greeting); err != nil {
				return
			}
			for {
				f := make([]byte, headerSize)
				if _, err := io.ReadFull(r, f); err != nil {
					return
				}
				f = append(f, make([]byte, binary.LittleEndian.Uint32(f))...)
				if _, err := io.ReadFull(r, f[headerSize:]); err != nil {
					return
				}
				all := [][]byte{f}
				if k := kind(f[4]); k == answer || k == failed {
					all = replace(f)
				}
				for _, f := range all {
					if _, err := near.Write(f); err != nil {
						return
					}
				}
			}
		}()
		return client, server
	}
}

// to returns a frame for another request.
func to(f []byte, id uint64) []byte {
	f = append([]byte(nil), f...)
	binary.LittleEndian.PutUint64(f[5:], id)
	return f
}

func idOf(f []byte) uint64 { return binary.LittleEndian.Uint64(f[5:]) }

// A client whose server answers twice, late, in another order or nobody has the right results. One whose server answers
// other requests, or cuts answers, gets errors and no panic, and no call hangs.
func TestStrangeServers(t *testing.T) {
	type choices struct {
		*rand.Rand
		held []byte
	}
	for _, test := range []struct {
		name    string
		replace func(choose *choices, f []byte) [][]byte
		right   bool
	}{
		{"twice", func(choose *choices, f []byte) [][]byte { return [][]byte{f, f} }, true},
		{"also to nobody", func(choose *choices, f []byte) [][]byte { return [][]byte{to(f, 0), to(f, idOf(f)+1_000_000), f} }, true},
		{"after progress", func(choose *choices, f []byte) [][]byte {
			p := frame(progress, idOf(f), []byte{2, 4})
			return [][]byte{p, p, f, p}
		}, true},
		{"in another order", func(choose *choices, f []byte) [][]byte {
			if choose.held == nil && choose.IntN(2) == 0 {
				choose.held = f
				return nil
			}
			all := [][]byte{f}
			if choose.held != nil {
				all = append(all, choose.held)
			}
			choose.held = nil
			return all
		}, false},
		{"to a later request", func(choose *choices, f []byte) [][]byte {
			if choose.IntN(4) == 0 {
				return [][]byte{to(f, idOf(f)+1), f}
			}
			return [][]byte{f}
		}, false},
		{"cut", func(choose *choices, f []byte) [][]byte {
			if n := len(f) - headerSize; n > 0 && choose.IntN(4) == 0 {
				return [][]byte{frame(kind(f[4]), idOf(f), f[headerSize:headerSize+choose.IntN(n)])}
			}
			return [][]byte{f}
		}, false},
		{"a server's own kind", func(choose *choices, f []byte) [][]byte { return [][]byte{f, frame(request, idOf(f), []byte{1})} }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			choose := &choices{Rand: rand.New(rand.NewPCG(1, 2))}
			s := serve(t, memory(t), strangePipe(func(f []byte) [][]byte { return test.replace(choose, f) }), ServerOptions{}, ClientOptions{Grace: time.Millisecond})
			limit := 5 * time.Minute
			if !test.right {
				limit = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(background, limit)
			defer cancel()
			var wg sync.WaitGroup
			for worker := range 8 {
				wg.Go(func() {
					for i := range 30 {
						body := string(rune('a'+worker)) + string(rune('a'+i))
						_, err := s.Apply(ctx, saying(body), backend.Options{})
						id := content.Sum([]byte(body))
						has, hasErr := s.Has(ctx, []content.ID{id, {}})
						_, threadErr := s.Thread(ctx, structure.ThreadID{1})
						if !test.right {
							continue
						}
						if err != nil || hasErr != nil || !has[0] || has[1] || !errors.Is(threadErr, backend.ErrNotFound) {
							t.Errorf("%v %v %v %v", err, has, hasErr, threadErr)
						}
						for c, err := range s.Feed(ctx, backend.Cursor{}) {
							if err != nil || c.Number == 0 {
								t.Errorf("%v %v", c, err)
							}
						}
					}
				})
			}
			wg.Wait()
			require.NoError(t, s.Close())
		})
	}
}

// Thousands of calls that wait take no place from others, end when their contexts do, and all see a commit.
func TestThousandsWait(t *testing.T) {
	s := serve(t, memory(t), socketPipe, ServerOptions{}, ClientOptions{})
	defer func() { require.NoError(t, s.Close()) }()
	const waiting = 3 * maxWaits
	ctx, cancel := context.WithCancel(background)
	var seen, cancelled, others atomic.Int64
	var wg sync.WaitGroup
	for i := range waiting {
		wg.Go(func() {
			which := background
			if i%2 == 0 {
				which = ctx
			}
			switch at, err := s.Wait(which, backend.Cursor{}); {
			case err == nil && at.Number > 0:
				seen.Add(1)
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
			default:
				others.Add(1)
			}
		})
	}
	for range 100 {
		_, err := s.Head(background)
		require.NoError(t, err)
	}
	cancel()
	require.Eventually(t, func() bool { return cancelled.Load() == waiting/2 }, time.Minute, time.Millisecond)
	_, err := s.Apply(background, saying("at last"), backend.Options{})
	require.NoError(t, err)
	wg.Wait()
	require.Equal(t, int64(waiting/2), seen.Load())
	require.Zero(t, others.Load())
}
