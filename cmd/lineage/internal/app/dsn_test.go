package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServedStore(t *testing.T) {
	for named, want := range map[string]servedName{
		"postgres://u:p@h:1/db?store=main":                   {"postgres://u:p@h:1/db", "main", false},
		"postgresql:///db?host=%2Frun&store=a+b&unsafe=true": {"postgresql:///db?host=%2Frun", "a b", true},
		"postgres://h/db?options=-c%20a%3Db&store=x":         {"postgres://h/db?options=-c%20a%3Db", "x", false},
		"postgres://h/db":             {},
		"postgres://h/db?store=":      {},
		"sqlserver://h/db?store=x":    {},
		"/a/directory?store=x":        {},
		"host=h dbname=d store=x":     {},
		"postgres://h:port/d?store=x": {},
	} {
		got, ok := servedStore(named)
		require.Equal(t, want, got, named)
		require.Equal(t, want.store != "", ok, named)
		require.False(t, IsServed(named) && IsDSN(named), named)
	}
}
