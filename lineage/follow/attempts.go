package follow

import (
	"errors"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// attempts are the attempts of Run, each of which begins with what the store has.
type attempts struct {
	events func(Event)
	// failing is set since the store has failed, until an attempt has read and saved everything.
	failing bool
	// readOnly is set if the store has accepted nothing since it failed with ErrReadOnly.
	readOnly bool
	// sent has the last text of each event that was sent: no attempt sends an event again with the same text.
	sent map[sentEvent]string
}

type sentEvent struct {
	kind Kind
	path string
}

// send sends an event of an attempt, unless an earlier attempt has sent it.
func (a *attempts) send(e Event) {
	switch e.Kind {
	case Waiting:
		if a.failing {
			a.events(Event{Kind: StoreWorks})
		}
		a.failing, a.readOnly = false, false
	case Found, Slow, Failed:
		event, reason := sentEvent{e.Kind, e.Path}, e.Reason
		if e.Err != nil {
			reason = e.Err.Error()
		}
		if before, ok := a.sent[event]; a.failing && ok && before == reason {
			return
		}
		a.sent[event] = reason
	}
	a.events(e)
}

// ends reports whether Run ends with an error of the store. A store whose disk has failed is opened again by its next
// use, so ErrReadOnly may pass.
func (a *attempts) ends(store *lineage.Store, err error) bool {
	for _, lasting := range []error{lineage.ErrClosed, lineage.ErrCorrupt, lineage.ErrDiverged, backend.ErrNewerFormat, backend.ErrOlderFormat} {
		if errors.Is(err, lasting) {
			return true
		}
	}
	before := a.readOnly
	a.readOnly = errors.Is(err, lineage.ErrReadOnly)
	return a.readOnly && (before || store.Damage() != nil)
}
