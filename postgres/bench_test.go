package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
)

func BenchmarkHead(b *testing.B) {
	e, err := Open(background, pgtest.DSN(b), Options{Store: "s", Unsafe: true})
	require.NoError(b, err)
	defer e.Close()
	b.Run("head", func(b *testing.B) {
		for b.Loop() {
			_, err := e.Head(background)
			require.NoError(b, err)
		}
	})
	b.Run("select", func(b *testing.B) {
		for b.Loop() {
			var one int
			require.NoError(b, e.log.pool.QueryRow(background, "SELECT 1", exec).Scan(&one))
		}
	})
}
