package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/titles"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

// ShownTitle returns the title under which a thread is shown.
func ShownTitle(ctx context.Context, s *app.OpenStore, info lineage.ThreadInfo) (string, error) {
	title, err := s.Store.ShownTitle(ctx, info)
	return cmp.Or(screen.Line(title), transcript.Untitled), err
}

// fewTitles is the number of titles up to which the first messages of threads are read for them.
const fewTitles = 100

// ShownTitles returns the titles under which threads are shown. Those of many threads without a title are kept in a file.
func ShownTitles(ctx context.Context, s *app.OpenStore, list []*records.Thread) ([]string, error) {
	all := make([]titles.Thread, len(list))
	untitled := 0
	for i, r := range list {
		t := &all[i]
		t.SourceID, t.Title, t.Tip = r.SourceID, r.Title, r.Tip
		var err error
		if t.ID, err = structure.ParseID[lineage.ThreadID](r.ID); err != nil {
			return nil, err
		}
		if r.Context != "" {
			if t.Active, err = structure.ParseID[lineage.ContextID](r.Context); err != nil {
				return nil, err
			}
		}
		if t.Title == "" {
			untitled++
		}
	}
	shown, err := keptTitles(ctx, s, all, untitled > fewTitles)
	if err != nil {
		return nil, err
	}
	for i := range shown {
		shown[i] = cmp.Or(screen.Line(shown[i]), transcript.Untitled)
	}
	return shown, nil
}

// keptTitles returns titles from the file, or from the first messages if there is no need for it or it cannot be used.
func keptTitles(ctx context.Context, s *app.OpenStore, all []titles.Thread, kept bool) (shown []string, err error) {
	if kept {
		x, err := titles.Open(ctx, s.Store, s.Dir)
		if err == nil {
			shown, err = x.Shown(ctx, all)
			err = errors.Join(err, x.Close())
		}
		if err == nil || ctx.Err() != nil {
			return shown, err
		}
		shown = nil
	}
	for i := range all {
		title, err := s.Store.ShownTitle(ctx, all[i].ThreadInfo)
		if err != nil {
			return nil, err
		}
		shown = append(shown, title)
	}
	return shown, nil
}

// painted returns a label in the style of its kind.
func painted(a *app.App, l graph.Label) string {
	switch text := screen.Line(l.String()); {
	case l.Active:
		return a.Out.Paint(screen.Green+";"+screen.Bold, text+" *")
	case l.Kind == graph.KindBranch:
		return a.Out.Paint(screen.Green, text)
	case l.Kind == graph.KindCheckpoint:
		return a.Out.Paint(screen.Yellow, "◆ "+text)
	default:
		return a.Out.Paint(screen.Blue, text)
	}
}

// maxLabels limits the names that are shown at one message.
const maxLabels = 6

// LabelText returns the names that point to a message, painted.
func LabelText(a *app.App, names []graph.Label) string {
	var texts []string
	for i, name := range names {
		if i == maxLabels {
			texts = append(texts, fmt.Sprintf("and %d more", len(names)-maxLabels))
			break
		}
		texts = append(texts, painted(a, name))
	}
	return strings.Join(texts, ", ")
}
