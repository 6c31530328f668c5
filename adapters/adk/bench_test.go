package adk

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/database"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/lineage-store/lineage/lineage"
)

// BenchmarkSteps measures what an event and a fork cost in a session of 100 and of 10,000 events: with the services of the framework,
// which have no fork, so that each event is read and appended again, and with this one. go test -bench Steps -benchtime 1x
func BenchmarkSteps(b *testing.B) {
	for _, steps := range []int{100, 10_000} {
		for _, service := range []string{"memory", "database", "lineage"} {
			b.Run(fmt.Sprint(service, "/", steps), func(b *testing.B) {
				for b.Loop() {
					benchSteps(b, service, steps)
				}
			})
		}
	}
}

func benchSteps(b *testing.B, name string, steps int) {
	dir := b.TempDir()
	var s session.Service
	var store *lineage.Store
	files := filepath.Join(dir, "db.sqlite*")
	switch name {
	case "memory":
		s = session.InMemoryService()
	case "database":
		var err error
		s, err = database.NewSessionService(sqlite.Open(filepath.Join(dir, "db.sqlite")), &gorm.Config{PrepareStmt: true, Logger: logger.Default.LogMode(logger.Silent)})
		require.NoError(b, err)
		require.NoError(b, database.AutoMigrate(s))
	default:
		store = open(b, filepath.Join(dir, "store"))
		defer store.Close()
		s, files = NewService(store), filepath.Join(dir, "store", "journal", "*")
	}
	made := create(b, s, "a", "u", "s", nil)
	before, start := written(b, files), time.Now()
	for i := range steps {
		e := says(fmt.Sprint(i), "user", fmt.Sprint("message ", i, strings.Repeat("x", 200)))
		e.Actions.StateDelta = map[string]any{"i": i}
		require.NoError(b, s.AppendEvent(background, made, e))
	}
	after := written(b, files)
	b.ReportMetric(float64(time.Since(start).Microseconds())/float64(steps), "µs/step")
	b.ReportMetric(float64(after-before)/float64(steps), "bytes/step")
	start = time.Now()
	if store != nil {
		t, err := store.FindThread(background, "a/u/s")
		require.NoError(b, err)
		_, err = t.CreateBranch(background, "fork", lineage.BranchOptions{})
		require.NoError(b, err)
	} else {
		to := create(b, s, "a", "u", "fork", nil)
		for e := range get(b, s, "a", "u", "s").Events().All() {
			copied := *e
			copied.ID += "-"
			require.NoError(b, s.AppendEvent(background, to, &copied))
		}
	}
	b.ReportMetric(float64(time.Since(start).Microseconds()), "µs/fork")
	b.ReportMetric(float64(written(b, files)-after), "bytes/fork")
}

// written returns how many bytes files have before zeros at their end.
func written(b *testing.B, pattern string) (n int) {
	names, err := filepath.Glob(pattern)
	require.NoError(b, err)
	for _, name := range names {
		got, err := os.ReadFile(name)
		require.NoError(b, err)
		n += len(bytes.TrimRight(got, "\x00"))
	}
	return n
}
