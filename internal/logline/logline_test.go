//test:race

package logline_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/logline"
)

func TestLines(t *testing.T) {
	cause := errors.New("disk full")
	tests := map[string]struct {
		log  func(l *slog.Logger)
		want []string
	}{
		"message alone": {func(l *slog.Logger) { l.Warn("index rebuilt") }, []string{"index rebuilt"}},
		"error":         {func(l *slog.Logger) { l.Error("pack", "err", cause) }, []string{"pack: disk full"}},
		"values":        {func(l *slog.Logger) { l.Warn("cut", "file", "a b", "bytes", 3) }, []string{"cut (file=a b, bytes=3)"}},
		"both":          {func(l *slog.Logger) { l.Warn("cut", "bytes", 3, "err", cause) }, []string{"cut: disk full (bytes=3)"}},
		"below level":   {func(l *slog.Logger) { l.Info("opened"); l.Debug("read") }, nil},
		"given before": {func(l *slog.Logger) {
			with := l.With("store", "s")
			with.With("n", 1).Warn("a", "m", 2)
			with.Warn("b")
		}, []string{"a (store=s, n=1, m=2)", "b (store=s)"}},
		"groups": {func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").Warn("m", "b", 2, slog.Group("h", "c", 3, "err", cause), slog.Group("", "d", 4))
		}, []string{"m (a=1, g.b=2, g.h.c=3, g.h.err=disk full, g.d=4)"}},
		"nothing": {func(l *slog.Logger) { l.Warn("m", slog.Attr{}, slog.Group("g")) }, []string{"m"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			test.log(logline.New(slog.LevelWarn, func(line string) { got = append(got, line) }))
			require.Equal(t, test.want, got)
		})
	}
}
