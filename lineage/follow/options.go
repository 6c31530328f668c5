package follow

import (
	"time"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
)

// Options configure a run. The zero value of each field is its default.
type Options struct {
	Choice
	// Once ends the run when everything has been read.
	Once bool
	// Machine is the machine that the files belong to. Default Environment.Machine().
	Machine Machine
	// Formats are the formats to read. Default formats.All().
	Formats []archive.Format
	// Limits protect against hostile files.
	Limits archive.Limits
	// Environment determines the folders of agents. Default NewEnvironment(nil).
	Environment *Environment
	// Events, when not nil, is called with events, by one goroutine.
	Events func(Event)
	// Clock is for tests.
	Clock Clock

	watch func() (notifier, error) // for tests
}

// Clock tells the time.
type Clock interface {
	Now() time.Time
	// At returns a channel that gets the time when it is at or later.
	At(at time.Time) <-chan time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) At(at time.Time) <-chan time.Time { return time.After(time.Until(at)) }

// withDefaults returns the options with defaults instead of zero values.
func (o Options) withDefaults() (Options, error) {
	var err error
	if o.Environment == nil {
		if o.Environment, err = NewEnvironment(nil); err != nil {
			return o, err
		}
	}
	if o.Machine.ID == "" {
		if o.Machine, err = o.Environment.Machine(); err != nil {
			return o, err
		}
	}
	if o.Formats == nil {
		o.Formats = formats.All()
	}
	if o.Events == nil {
		o.Events = func(Event) {}
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.watch == nil {
		o.watch = newNotifier
	}
	return o, o.Choice.Check()
}
