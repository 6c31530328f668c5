package main

import (
	"net/url"
	"strings"
)

// isDSN reports whether a store is named that is a database.
func isDSN(store string) bool {
	for _, scheme := range []string{"sqlite:", "postgres://", "postgresql://", "sqlserver://"} {
		if strings.HasPrefix(store, scheme) {
			return true
		}
	}
	return false
}

// sqliteFile returns the file of a database that is one.
func sqliteFile(dsn string) (path string, isFile bool) {
	path, isFile = strings.CutPrefix(dsn, "sqlite:")
	return strings.TrimPrefix(path, "//"), isFile
}

// redact returns the name of a database without its password.
func redact(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		scheme, _, _ := strings.Cut(dsn, ":")
		return scheme + ":…"
	}
	query := u.Query()
	if query.Has("password") {
		query.Set("password", "xxxxx")
		u.RawQuery = query.Encode()
	}
	return u.Redacted()
}
