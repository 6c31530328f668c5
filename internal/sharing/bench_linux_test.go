//test:race

package sharing

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// BenchmarkRoles compares operations of the engine alone, of an owner and of a guest.
// BenchmarkHead of internal/remote has the bare round trip.
func BenchmarkRoles(b *testing.B) {
	dir := b.TempDir()
	owner := open(b, dir, normal)
	apply(b, owner, "t")
	own := owner.current.Load().own
	roles := []struct {
		name   string
		engine backend.Engine
	}{{"engine", own}, {"owner", owner}, {"guest", open(b, dir, normal)}}
	for _, role := range roles {
		b.Run("thread/"+role.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := role.engine.Thread(background, threadID("t"))
				require.NoError(b, err)
			}
		})
	}
	made := 0
	for _, role := range roles {
		b.Run("commit/"+role.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				made++
				_, err := role.engine.Apply(background, newThread(fmt.Sprint(made)), backend.Options{})
				require.NoError(b, err)
			}
		})
	}
}
