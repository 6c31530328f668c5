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
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
)

// exportNative writes a session file as it was read last.
func exportNative(ctx context.Context, s *app.Session, o *exportOptions) error {
	if o.format != "" || o.all || o.given || o.prune || o.title != "" {
		return app.Usagef("--native writes a file as it is: it goes with --output only")
	}
	if len(o.what) > 1 {
		return app.Usagef("--native writes one file: name one")
	}
	sources, err := sourcesToExport(ctx, s, o.what)
	if err != nil {
		return err
	}
	path := sources[0].About.Path
	if len(sources) > 1 {
		path = sources[0].Database()
	}
	r := records.Exported{File: o.to, Format: "native"}
	err = writeBinary(s.App, o.to, func(w io.Writer) error {
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
	case err != nil || o.to == app.StdoutName:
		return err
	}
	return s.Print(&r, "wrote %s as %s was, %s\n", r.File, path, screen.Bytes(r.Bytes))
}

// sourcesToExport returns the session file with a path, or the end of one, or that of a thread; of a database the rows of all sessions.
func sourcesToExport(ctx context.Context, s *app.Session, what []string) ([]*follow.Source, error) {
	name, threadOf := "", ""
	if len(what) == 1 {
		name = filepath.ToSlash(what[0])
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
	var found []*follow.Source
	for source, err := range follow.Sources(ctx, s.Store) {
		if err != nil && !errors.Is(err, lineage.ErrCorrupt) {
			return nil, err
		}
		path := filepath.ToSlash(source.About.Path)
		switch {
		case path == name:
			return []*follow.Source{source}, err
		case err != nil: // another one is damaged
		case threadOf != "" && source.Is.Session == threadOf, strings.HasSuffix(path, end), strings.HasSuffix("/"+filepath.ToSlash(source.Database()), end):
			found = append(found, source)
		}
	}
	if len(found) == 0 {
		return nil, app.Hint(fmt.Errorf("session file %s: %w", name, lineage.ErrNotFound), "'lineage follow' keeps session files; 'lineage follow --list' shows which")
	}
	if of := found[0].Database(); len(found) == 1 || of != "" && !slices.ContainsFunc(found, func(s *follow.Source) bool { return s.Database() != of }) {
		return found, nil
	}
	paths := make([]string, len(found))
	for i, f := range found {
		paths[i] = f.About.Path
	}
	return nil, app.Hint(app.Usagef("%s session files are %s: name one by its path", screen.Count(len(found)), name), "%s", screen.Line(strings.Join(paths, ", ")))
}
