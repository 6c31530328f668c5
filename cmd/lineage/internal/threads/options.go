package threads

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/filters"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/follow"
)

// AppendOptions state what to append, and where.
type AppendOptions struct {
	Context   string
	Text      string
	TextSet   bool
	File      string
	JSONL     string
	Asset     string
	Document  string
	Revision  uint64
	Role      string
	Name      string
	Model     string
	User      string
	MediaType string
	ID        string
	Metadata  app.JSONFlag
	Together  bool
	After     string
}

// BranchOptions describe a new branch.
type BranchOptions struct {
	Name, From string
	Empty      bool
	SwitchTo   bool
	Overrides  app.OverrideFlags
}

// CheckpointOptions describe a new checkpoint.
type CheckpointOptions struct{ Name, At string }

// ContextsOptions select the contexts to list.
type ContextsOptions struct {
	Alone bool
	Limit int
	After string
}

// inDatabase returns the options for listing threads of a database.
func (o *ThreadListOptions) inDatabase() (chat.ListOptions, error) {
	if o.Gone {
		return chat.ListOptions{}, app.Usagef("--gone is about the session files that a store follows, not about a database")
	}
	list := chat.ListOptions{UserID: o.User, IDPrefix: o.Source, TitlePrefix: o.Title, Oldest: o.Oldest, After: o.After}
	if !o.Since.IsZero() {
		list.From = o.Since.UnixMilli()
	}
	if !o.Until.IsZero() {
		list.To = o.Until.UnixMilli()
	}
	for _, wanted := range o.Metadata {
		filter := chat.MetadataFilter{Key: wanted.Key}
		decoder := json.NewDecoder(bytes.NewReader(wanted.Value))
		decoder.UseNumber()
		if err := decoder.Decode(&filter.Value); err != nil {
			return list, err
		}
		list.Metadata = append(list.Metadata, filter)
	}
	return list, nil
}

// DeleteOptions identify what to delete.
type DeleteOptions struct {
	Name       string
	Checkpoint bool
	Yes        bool
}

// LogOptions select the messages of a history to print, and state how.
type LogOptions struct {
	At      string
	Last    uint64
	From    uint64
	To      uint64
	Roles   []string
	Oneline bool
	Follow  bool
	Full    bool
}

// Wants reports whether to print a message that is found by a role, or another kind of entry.
func (o *LogOptions) Wants(kind, role string) bool {
	return len(o.Roles) == 0 || kind == lineage.Message.String() && slices.Contains(o.Roles, role)
}

// SearchOptions describe a search.
type SearchOptions struct {
	Query        string
	Roles        []string
	User         string
	Session      app.SessionFlags
	Since, Until app.TimeFlag
	Limit        int
	// IndexFor is search.Query.UpdateFor.
	IndexFor time.Duration
}

// read returns the text to search for, and the threads to search, nil for all: those that the flags and the filters in the
// query name.
func (o *SearchOptions) read() (among *lineage.ThreadQuery, text string, err error) {
	more, text, err := filters.Read(o.Query, time.Local)
	switch {
	case err != nil:
		return nil, "", app.Usagef("%w", err)
	case more != nil && text == "":
		return nil, "", app.Hint(app.Usagef("%.60q says where to search, and not what for", o.Query), "'lineage thread list' lists the threads of an agent, a project or a time")
	case more == nil && !o.Session.Given() && o.Since.IsZero() && o.Until.IsZero():
		return nil, text, nil
	}
	filter, err := o.Session.Metadata()
	among = &lineage.ThreadQuery{Metadata: filter, From: o.Since.Time, To: o.Until.Time}
	if err != nil || more == nil {
		return among, text, err
	}
	for i := range more.Metadata {
		if filter := &more.Metadata[i]; filter.Key == archive.KeyProject {
			if filter.Value, err = fullProject(filter.Value); err != nil {
				return nil, "", err
			}
		}
	}
	return among, text, filters.Add(among, more)
}

// fullProject returns the full path of a project, as JSON.
func fullProject(named json.RawMessage) (json.RawMessage, error) {
	var project string
	if err := json.Unmarshal(named, &project); err != nil {
		return nil, err
	}
	project, err := app.ProjectPath(project)
	if err != nil {
		return nil, err
	}
	return json.Marshal(project)
}

// ThreadCreateOptions are the settings of a new thread.
type ThreadCreateOptions struct {
	ID, Title, User string
	Metadata        app.JSONFlag
	Overrides       app.OverrideFlags
}

// ThreadListOptions select the threads to list.
type ThreadListOptions struct {
	User, Source, Title string
	Metadata            app.MetadataFlag
	Session             app.SessionFlags
	Since, Until        app.TimeFlag
	After               string
	Oldest, Gone        bool
	Limit               int
}

// query returns the query for the flags.
func (o *ThreadListOptions) query() (q lineage.ThreadQuery, err error) {
	q = lineage.ThreadQuery{
		SourcePrefix: o.Source, TitlePrefix: o.Title, Metadata: o.Metadata, From: o.Since.Time, To: o.Until.Time, Oldest: o.Oldest,
	}
	if o.User != "" {
		q.User = &o.User
	}
	if q.After, err = backend.ParsePageToken(o.After); err != nil {
		return q, app.Usagef("--after: %w", err)
	}
	return q, nil
}

// None returns the note that there are no threads to list.
func (o *ThreadListOptions) None() string {
	if o.User+o.Source+o.Title+o.After == "" && len(o.Metadata) == 0 && o.Since.IsZero() && o.Until.IsZero() && !o.Gone {
		return "no threads; 'lineage follow' reads the sessions of this machine's agents, 'lineage thread create' makes a thread"
	}
	if doubt := o.Session.Doubt(AgentNames()); doubt != "" {
		return "no such threads; " + doubt
	}
	return "no such threads"
}

// AgentNames returns the names of the agents that can be followed.
func AgentNames() (names []string) {
	for _, agent := range follow.Agents() {
		names = append(names, agent.Name)
	}
	return names
}

// ThreadSetOptions state what to change in a thread.
type ThreadSetOptions struct {
	Thread, Title, User string
	Metadata            app.JSONFlag
	Given               func(flag string) bool
}

// TreeOptions select the thread to draw.
type TreeOptions struct {
	Thread string
	Full   bool
}
