package show

import (
	"fmt"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
)

// Losses counts, by reason, what a format cannot express.
type Losses struct {
	first []lineage.Loss // the first of each reason
	count map[string]int
}

// Add counts a loss.
func (l *Losses) Add(loss lineage.Loss) {
	if l.count == nil {
		l.count = make(map[string]int)
	}
	if l.count[loss.Reason]++; l.count[loss.Reason] == 1 {
		l.first = append(l.first, loss)
	}
}

// maxLosses limits the reasons that are listed.
const maxLosses = 20

// Warn lists what was lost.
func (l *Losses) Warn(a *app.App) {
	for i, loss := range l.first {
		if i == maxLosses {
			a.Warn("lost: … and %s more", amount.Plural(len(l.first)-i, "reason"))
			return
		}
		place := ""
		if loss.Position > 0 {
			place = fmt.Sprintf("message %d: ", loss.Position)
		}
		if n := l.count[loss.Reason]; n > 1 {
			a.Warn("lost: %s%s; and %s more", place, loss.Reason, amount.Count(n-1))
		} else {
			a.Warn("lost: %s%s", place, loss.Reason)
		}
	}
}
