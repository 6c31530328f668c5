package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

func BenchmarkZZ(b *testing.B) {
	ctx := context.Background()
	c := Config{MessageBytes: 500}
	c.setDefaults()
	for _, size := range []int{100, 10_000} {
		texts := textsOf(newMessages(&c, uint64(size)).some(size))
		for _, system := range []string{"embedded", "sqlite"} {
			var e *engines
			var err error
			if system == "embedded" {
				e, err = newEmbeddedEngines(ctx, filepath.Join(b.TempDir(), "store"))
			} else {
				var db *sqladapter.DB
				if db, err = sqlite.Open(ctx, filepath.Join(b.TempDir(), "ours.db"), sqladapter.Options{}); err == nil {
					e = &engines{chats: sqlchat.On(db), close: db.Close}
				}
			}
			if err != nil {
				b.Fatal(err)
			}
			if err := e.load(ctx, fmt.Sprint("chat-", size), texts); err != nil {
				b.Fatal(err)
			}
			if e.settle != nil {
				if err := e.settle(ctx); err != nil {
					b.Fatal(err)
				}
			}
			for _, name := range []string{"chain", "resolve", "graph", "search", "save"} {
				b.Run(fmt.Sprint(system, "/", size, "/", name), func(b *testing.B) {
					b.ReportAllocs()
					before := processTime()
					for i := range b.N {
						if err := e.do(ctx, name, i); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64((processTime()-before).Microseconds())/float64(b.N), "cpuµs/op")
				})
			}
			e.close()
		}
	}
}
