package show

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// ShownTitle returns the title under which a thread is shown.
func ShownTitle(ctx context.Context, s *app.OpenStore, info lineage.ThreadInfo) (string, error) {
	title, err := s.Store.ShownTitle(ctx, info)
	return titleLine(title), err
}

// ShownTitles returns the titles under which threads are shown.
func ShownTitles(ctx context.Context, s *app.OpenStore, infos []lineage.ThreadInfo) ([]string, error) {
	titles, err := s.Store.ShownTitles(ctx, infos)
	for i := range titles {
		titles[i] = titleLine(titles[i])
	}
	return titles, err
}

func titleLine(title string) string { return cmp.Or(screen.Line(title), transcript.Untitled) }

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
