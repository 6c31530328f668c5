package sources

import (
	"cmp"
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
func exportNative(ctx context.Context, s *app.OpenStore, names []string, to string) error {
	if len(names) > 1 {
		return app.Usagef("--native writes one file: name one")
	}
	sources, err := sourcesToExport(ctx, s, names)
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

// sourcesToExport returns the session file that a name stands for, or without a name that of the current thread. For a
// database it returns the rows of all sessions.
func sourcesToExport(ctx context.Context, s *app.OpenStore, names []string) ([]*follow.Source, error) {
	want, err := sourceToFind(ctx, s, names)
	if err != nil {
		return nil, err
	}
	found, err := findSources(ctx, s.Store, want)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, app.Hint(fmt.Errorf("session file %s: %w", want.name, lineage.ErrNotFound), "'lineage follow' keeps session files; 'lineage follow --list' shows which")
	}
	found = ownOf(found, want.threadOf)
	if len(found) == 1 || sameDatabase(found) {
		return found, nil
	}
	slices.SortFunc(found, func(a, b *follow.Source) int { return cmp.Compare(a.About.Path, b.About.Path) })
	paths := make([]string, 0, mostNamed)
	for _, f := range found[:min(len(found), mostNamed)] {
		paths = append(paths, f.About.Path+" of "+f.About.Machine)
	}
	if more := len(found) - len(paths); more > 0 {
		paths = append(paths, amount.Count(more)+" more")
	}
	return nil, app.Hint(app.Usagef("%s session files are %s: name one by its path, or its thread", amount.Count(len(found)), want.name), "%s", screen.Line(strings.Join(paths, ", ")))
}

// mostNamed limits the files that an error names.
const mostNamed = 3

// sameDatabase reports whether all sources are rows of one database.
func sameDatabase(sources []*follow.Source) bool {
	first := sources[0]
	return first.Database() != "" && !slices.ContainsFunc(sources, func(s *follow.Source) bool {
		return s.Database() != first.Database() || s.About.Machine != first.About.Machine
	})
}

// ownOf returns the files of the session itself if there are files of its subagents too: its id is in their names.
func ownOf(found []*follow.Source, session string) []*follow.Source {
	own := slices.DeleteFunc(slices.Clone(found), func(s *follow.Source) bool {
		path := filepath.ToSlash(s.About.Path)
		return !strings.Contains(path[strings.LastIndexByte(path, '/')+1:], session)
	})
	if session == "" || len(own) == 0 {
		return found
	}
	return own
}

// wantedSource has what a name may stand for: a path or the end of one, the same path without links, and the source id of a
// thread.
type wantedSource struct{ name, real, threadOf string }

// sourceToFind returns what a source is looked for by: what its name may stand for, or without a name the current thread.
func sourceToFind(ctx context.Context, s *app.OpenStore, names []string) (want wantedSource, err error) {
	var t *lineage.Thread
	if len(names) == 1 {
		want.name = follow.RecordedPath(filepath.ToSlash(names[0]))
		want.real = filepath.ToSlash(follow.RecordedPath(realPath(names[0])))
		if t, err = s.Refs.Thread(ctx, names[0]); errors.Is(err, lineage.ErrNotFound) {
			return want, nil
		}
	} else {
		t, err = s.NeedThread()
	}
	if err != nil {
		return want, err
	}
	info, err := t.Info(ctx)
	if want.threadOf = info.SourceID; want.name == "" {
		want.name = show.ShortID(info.ID.String())
	}
	return want, err
}

// findSources returns the sources with a path or, if there are none, those of a session and those with the end of a path.
func findSources(ctx context.Context, store *lineage.Store, want wantedSource) ([]*follow.Source, error) {
	end := "/" + strings.TrimPrefix(want.name, "./")
	var exact, found []*follow.Source // with the path; with that of its database or the end of one
	var damaged error                 // error of one of them
	for source, err := range follow.Sources(ctx, store) {
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
		case path == want.name, path == want.real:
			if err != nil {
				return nil, err
			}
			exact = append(exact, source)
		case want.threadOf != "" && source.Recorded.Session == want.threadOf, strings.HasSuffix(path, end), strings.HasSuffix("/"+database, end), database != "" && database == want.real:
			found, damaged = append(found, source), errors.Join(damaged, err)
		}
	}
	if len(exact) > 0 {
		found, damaged = exact, nil
	}
	if damaged != nil {
		return nil, damaged
	}
	return found, nil
}
