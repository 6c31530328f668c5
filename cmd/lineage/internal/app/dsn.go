package app

import (
	"net/url"
	"slices"
	"strings"
)

// IsDSN reports whether a name is that of a database of chats.
func IsDSN(store string) bool {
	schemes := []string{"sqlite:", "postgres://", "postgresql://", "sqlserver://"}
	return !IsServed(store) && slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(store, scheme) })
}

// servedName is the name of a store on a PostgreSQL server.
type servedName struct {
	dsn, store string
	unsafe     bool // accept a server with fsync=off
}

// servedStore parses the URL of a database with the parameter store, and possibly unsafe=true.
func servedStore(named string) (servedName, bool) {
	u, err := url.Parse(named)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return servedName{}, false
	}
	query := u.Query()
	s := servedName{store: query.Get("store"), unsafe: query.Get("unsafe") == "true"}
	if s.store == "" {
		return servedName{}, false
	}
	query.Del("store")
	query.Del("unsafe")
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // a plus is itself in the URL of a database
	s.dsn = u.String()
	return s, true
}

// IsServed reports whether a name is that of a store on a PostgreSQL server.
func IsServed(store string) bool {
	_, ok := servedStore(store)
	return ok
}

// sqliteFile returns the file of a SQLite database.
func sqliteFile(dsn string) (path string, isFile bool) {
	path, isFile = strings.CutPrefix(dsn, "sqlite:")
	return strings.TrimPrefix(path, "//"), isFile
}

// Redact returns the name of a database without its password.
func Redact(dsn string) string {
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
