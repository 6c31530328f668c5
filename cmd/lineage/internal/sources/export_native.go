package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
)

// exportNative writes a session file as it was last read.
func exportNative(ctx context.Context, s *app.Session, what []string, to string) error {
	if len(what) > 1 {
		return app.Usagef("--native writes one file: name one")
	}
	sources, err := sourcesToExport(ctx, s, what)
	if err != nil {
		return err
	}
	path := sources[0].About.Path
	if len(sources) > 1 {
		path = sources[0].Database()
	}
	r := records.Exported{File: to, Format: "native"}
	err = writeBinary(s.App, to, func(w io.Writer) error {
		counted := &countingWriter{w: w}
		for _, source := range sources {
			if err := source.Export(ctx, counted); err != nil {
				return err
			}
		}
		r.Bytes = counted.n
		return nil
	})
	switch {
	case errors.Is(err, follow.ErrNotExact):
		return app.Hint(err, "'lineage export' writes the conversation in other formats")
	case errors.Is(err, lineage.ErrErased):
		return app.Hint(err, "a part of it was erased from the store: 'lineage export' writes the rest in other formats")
	case err != nil || to == app.StdoutName:
		return err
	}
	return s.Print(&r, "wrote %s as %s was, %s\n", r.File, path, amount.Bytes(r.Bytes))
}

// realPath returns the full path without links, as files are recorded, also of a file that is gone.
func realPath(path string) string {
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for dir := full; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return full
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// sourcesToExport returns the session file with a path, or with the end of a path, or that of a thread. For a
// database it returns the rows of all sessions.
func sourcesToExport(ctx context.Context, s *app.Session, what []string) ([]*follow.Source, error) {
	name, real, threadOf := "", "", ""
	if len(what) == 1 {
		real = filepath.ToSlash(follow.RecordedPath(realPath(what[0])))
		name = follow.RecordedPath(filepath.ToSlash(what[0]))
		if t, err := s.Refs.Thread(ctx, what[0]); err == nil {
			info, err := t.Info(ctx)
			if err != nil {
				return nil, err
			}
			threadOf = info.SourceID
		} else if !errors.Is(err, lineage.ErrNotFound) {
			return nil, err
		}
	} else {
		t, err := s.NeedThread()
		if err != nil {
			return nil, err
		}
		info, err := t.Info(ctx)
		if err != nil {
			return nil, err
		}
		name, threadOf = show.ShortID(info.ID.String()), info.SourceID
	}
	end := "/" + strings.TrimPrefix(name, "./")
	var exact, found []*follow.Source // with the path; with that of its database or the end of one
	var damaged error                 // error of one of them
	for source, err := range follow.Sources(ctx, s.Store) {
		if err != nil && !errors.Is(err, lineage.ErrCorrupt) {
			return nil, err
		}
		if source == nil {
			continue // so damaged that nothing can be read
		}
		path, database := filepath.ToSlash(source.About.Path), filepath.ToSlash(source.Database())
		if err != nil && database != "" {
			database = path[:max(0, strings.LastIndexByte(path, '/'))] // the session is unknown
		}
		switch {
		case path == name, path == real:
			if err != nil {
				return nil, err
			}
			exact = append(exact, source)
		case threadOf != "" && source.Recorded.Session == threadOf, strings.HasSuffix(path, end), strings.HasSuffix("/"+database, end), database == real:
			found, damaged = append(found, source), errors.Join(damaged, err)
		}
	}
	if len(exact) > 0 {
		found, damaged = exact, nil
	}
	if damaged != nil {
		return nil, damaged
	}
	if len(found) == 0 {
		return nil, app.Hint(fmt.Errorf("session file %s: %w", name, lineage.ErrNotFound), "'lineage follow' keeps session files; 'lineage follow --list' shows which")
	}
	first := found[0]
	other := func(s *follow.Source) bool {
		return s.Database() != first.Database() || s.About.Machine != first.About.Machine
	}
	if len(found) == 1 || first.Database() != "" && !slices.ContainsFunc(found, other) {
		return found, nil
	}
	paths := make([]string, len(found))
	for i, f := range found {
		paths[i] = f.About.Path + " of " + f.About.Machine
	}
	return nil, app.Hint(app.Usagef("%s session files are %s: name one by its path, or its thread", amount.Count(len(found)), name), "%s", screen.Line(strings.Join(paths, ", ")))
}
