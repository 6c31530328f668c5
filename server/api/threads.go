package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/problem"
	"github.com/lineage-store/lineage/structure"
)

const (
	// usualPage and maxPage are the default and maximum number of records in a page.
	usualPage = 100
	maxPage   = 1000
	// maxLooked limits the threads that are examined per page to find those that the caller may read.
	maxLooked = 10_000
)

// page selects a part of a list.
type page struct {
	Limit int    `json:"-" query:"limit" doc:"at most so many; default 100, at most 1000"`
	After string `json:"-" query:"after" doc:"the next of the page before"`
}

func (p *page) size() int {
	if p.Limit == 0 {
		return usualPage
	}
	return min(p.Limit, maxPage)
}

// inHistory parses the token of a page of a history: the span at the end of the history, and the number of messages
// before the page. Without a token, both are zero.
func (p *page) inHistory() (end string, n uint64, err error) {
	if p.After == "" {
		return "", 0, nil
	}
	end, number, _ := strings.Cut(p.After, ":")
	n, err = strconv.ParseUint(number, 10, 62)
	if _, wrong := structure.ParseSpanRef(end); err != nil || wrong != nil {
		return "", 0, fmt.Errorf("after: %w: must be the next value of a page", lineage.ErrInvalid)
	}
	return end, n, nil
}

// settings are the overrides of a context.
type settings struct {
	SystemPrompt *string         `json:"system_prompt,omitempty" doc:"the system prompt"`
	Model        *string         `json:"model,omitempty" doc:"the model that is asked"`
	Overrides    json.RawMessage `json:"overrides,omitempty" doc:"further settings: a JSON object"`
	Metadata     json.RawMessage `json:"metadata,omitempty" doc:"any JSON of the caller"`
}

func (s *settings) overrides() lineage.Overrides {
	return lineage.Overrides{SystemPrompt: s.SystemPrompt, Model: s.Model, JSON: orNil(s.Overrides)}
}

// orNil returns JSON, nil if it is empty or null.
func orNil(j json.RawMessage) json.RawMessage {
	if string(j) == "null" {
		return nil
	}
	return j
}

// among selects threads.
type among struct {
	User     *string   `json:"-" query:"user" doc:"only those of this user"`
	Metadata []string  `json:"-" query:"metadata" doc:"only those with this KEY=VALUE in their metadata, or with VALUE in the array there; VALUE is JSON, or else a string"`
	Agent    string    `json:"-" query:"agent" doc:"only sessions of this agent"`
	Project  string    `json:"-" query:"project" doc:"only sessions that began in this folder"`
	Since    time.Time `json:"-" query:"since" doc:"only those updated at this time or later"`
	Until    time.Time `json:"-" query:"until" doc:"only those updated before this time"`
}

// all reports whether every thread is selected.
func (in *among) all() bool {
	return in.User == nil && len(in.Metadata) == 0 && in.Agent == "" && in.Project == "" && in.Since.IsZero() && in.Until.IsZero()
}

// query returns a query for the selected threads. Its result may include threads that the caller may not read.
func (in *among) query(scope *access.Scope) (q lineage.ThreadQuery, err error) {
	q = lineage.ThreadQuery{User: in.User, From: in.Since, To: in.Until}
	for _, pair := range in.Metadata {
		is, err := metadataIs(pair)
		if err != nil {
			return q, err
		}
		q.Metadata = append(q.Metadata, is)
	}
	project := in.Project
	if project == "" && len(scope.Projects) == 1 {
		project = scope.Projects[0]
	}
	for key, value := range map[string]string{archive.KeyAgent: in.Agent, archive.KeyProject: project} {
		if value != "" {
			text, _ := json.Marshal(value) // strings always marshal
			q.Metadata = append(q.Metadata, lineage.MetadataIs{Key: key, Value: text})
		}
	}
	if q.User == nil && len(scope.Users) == 1 {
		q.User = &scope.Users[0]
	}
	return q, nil
}

// threadsOf yields the threads of a query that are in a scope.
func threadsOf(ctx context.Context, store *lineage.Store, q lineage.ThreadQuery, scope *access.Scope) iter.Seq2[*lineage.ListedThread, error] {
	return func(yield func(*lineage.ListedThread, error) bool) {
		for t, err := range store.Threads(ctx, q) {
			if err == nil && !scope.Allows(&t.Was) {
				continue
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

type threadsQuery struct {
	among
	SourcePrefix string `json:"-" query:"source_prefix" doc:"only those whose source id has this prefix"`
	Title        string `json:"-" query:"title" doc:"only those whose title has this prefix, in upper or lower case"`
	Oldest       bool   `json:"-" query:"oldest" doc:"the one that was updated first first"`
	page
}

// metadataIs parses KEY=VALUE.
func metadataIs(pair string) (is lineage.MetadataIs, err error) {
	key, text, ok := strings.Cut(pair, "=")
	if !ok {
		return is, fmt.Errorf("metadata %.100q: %w: must be KEY=VALUE", pair, lineage.ErrInvalid)
	}
	is = lineage.MetadataIs{Key: key, Value: json.RawMessage(text)}
	if _, ok := is.Scalar(); !ok {
		is.Value, _ = json.Marshal(text) // strings always marshal
	}
	return is, nil
}

var errPage = fmt.Errorf("after: %w: must be the next value of a page", lineage.ErrInvalid)

// pageOfThreads returns a page of the threads of a query: those that the caller may read, whose source id as the caller chose it has a
// prefix, and that keep accepts. It also returns the token of the next page, if there may be one. A page ends after maxLooked threads. If
// the last of them may be somebody else's, it ends with the last one of the same time, and the token names only the time. (Of twice
// maxLooked of the same time, it names the last one.)
func (c *call) pageOfThreads(ctx context.Context, q lineage.ThreadQuery, after string, size int, prefix string, keep func(*lineage.ThreadInfo) bool) (found []*lineage.ListedThread, next string, err error) {
	scope := &c.caller.Scope
	if scope.All() {
		q.SourcePrefix = prefix
	}
	if q.After, err = backend.ParsePageToken(after); err != nil {
		return nil, "", errPage
	}
	var last backend.PageToken
	looked, kept := 0, false
	for t, err := range c.store.Threads(ctx, q) {
		if err != nil {
			return nil, "", err
		}
		switch {
		case len(found) == size, looked >= c.a.o.looked && (kept || scope.All()), looked == 2*c.a.o.looked:
			return found, last.String(), nil
		case looked >= c.a.o.looked && t.Page.Updated != last.Updated:
			last.Thread = firstThread
			if q.Oldest {
				last.Thread = lastThread
			}
			return found, last.String(), nil
		}
		looked, last = looked+1, t.Page
		kept = scope.Allows(&t.Was) && strings.HasPrefix(scope.Chosen(t.Was.SourceID), prefix) && keep(&t.Was)
		if kept {
			found = append(found, t)
		}
	}
	return found, "", nil
}

// firstThread and lastThread are before and after all threads of the same time.
var (
	firstThread = lineage.ThreadID{len(lineage.ThreadID{}) - 1: 1}
	lastThread  = lineage.ThreadID(bytes.Repeat([]byte{0xff}, len(lineage.ThreadID{})))
)

func (a *API) listThreads(ctx context.Context, c *call, in *threadsQuery) (*list[*records.Thread], error) {
	scope := &c.caller.Scope
	q, err := in.query(scope)
	if err != nil {
		return nil, err
	}
	q.TitlePrefix, q.Oldest = in.Title, in.Oldest
	found, next, err := c.pageOfThreads(ctx, q, in.After, in.size(), in.SourcePrefix, func(*lineage.ThreadInfo) bool { return true })
	if err != nil {
		return nil, err
	}
	out := &list[*records.Thread]{Next: next}
	ids := make([]lineage.ThreadID, len(found))
	for i, t := range found {
		ids[i] = t.ID()
	}
	if out.Items, err = records.OfThreads(ctx, a.o.Store, ids); err != nil {
		return nil, err
	}
	for _, r := range out.Items {
		r.SourceID = scope.Chosen(r.SourceID)
	}
	return out, nil
}

type ofThread struct {
	Thread string `json:"thread,omitempty" path:"thread" doc:"the id of the thread, or = and the source id"`
}

func (a *API) getThread(ctx context.Context, c *call, in *ofThread) (*records.Thread, error) {
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	return c.threadRecord(ctx, t)
}

// mayHave refuses to create a thread that the caller could not read.
func (w *within) mayHave(t *lineage.ThreadInfo) error {
	if !w.caller.Scope.Allows(t) {
		return problem.New(http.StatusForbidden, "not allowed", "the token is not for threads of this user or project")
	}
	return nil
}

type createThread struct {
	ID       string          `json:"id,omitempty" doc:"an id of your choice, unique in the store"`
	Reuse    bool            `json:"reuse,omitempty" doc:"with an id: if there is such a thread, it is the answer, unchanged"`
	User     string          `json:"user,omitempty" doc:"the user it belongs to"`
	Title    string          `json:"title,omitempty" doc:"the title"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"any JSON of the caller; the members of an object can be listed by"`
	Keep     bool            `json:"keep,omitempty" doc:"keep every message as long as the thread, also when no context leads to it"`

	SystemPrompt *string         `json:"system_prompt,omitempty" doc:"the system prompt of the main branch"`
	Model        *string         `json:"model,omitempty" doc:"the model of the main branch"`
	Overrides    json.RawMessage `json:"overrides,omitempty" doc:"further settings of the main branch: a JSON object"`
}

func (o *createThread) do(ctx context.Context, w *within) (made, error) {
	is := lineage.ThreadInfo{UserID: o.User, Metadata: orNil(o.Metadata)}
	if users := w.caller.Scope.Users; is.UserID == "" && len(users) == 1 {
		is.UserID = users[0]
	}
	if err := w.mayHave(&is); err != nil {
		return made{}, err
	}
	id := o.ID
	if id != "" {
		if there, err := o.found(ctx, w); err != nil || there.Found {
			return there, err
		}
		id = w.caller.Scope.Space(&is) + id
	}
	t, err := w.store.CreateThread(ctx, lineage.ThreadOptions{
		SourceID: id, UserID: is.UserID, Title: o.Title, Metadata: is.Metadata, Keep: o.Keep,
		Overrides: lineage.Overrides{SystemPrompt: o.SystemPrompt, Model: o.Model, JSON: orNil(o.Overrides)},
	})
	if err != nil {
		return made{}, err
	}
	return made{Thread: t.ID().String()}, nil
}

// found returns the thread for which the id was chosen already, nothing if there is none that the caller may see.
func (o *createThread) found(ctx context.Context, w *within) (made, error) {
	t, err := w.chosen(ctx, o.ID)
	if errors.Is(err, lineage.ErrNotFound) {
		return made{}, nil
	}
	if err == nil && !o.Reuse {
		err = fmt.Errorf("thread %.100q: %w", o.ID, lineage.ErrExists)
	}
	if err != nil {
		return made{}, err
	}
	info, err := t.Info(ctx)
	if err == nil && o.User != "" && info.UserID != o.User {
		err = fmt.Errorf("thread %.100q: %w", o.ID, lineage.ErrOtherUser)
	}
	return made{Thread: t.ID().String(), Found: true}, err
}

type updateThread struct {
	ofThread
	Title    *string         `json:"title,omitempty" doc:"the title"`
	User     *string         `json:"user,omitempty" doc:"the user it belongs to, if it has none yet"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"in place of what was there; null for none"`
	Merge    json.RawMessage `json:"merge,omitempty" doc:"what to change in the metadata, which are an object or none: a merge patch (RFC 7396)"`
	If       json.RawMessage `json:"if_metadata,omitempty" doc:"only if these are the metadata, null for none; conflict if another program has changed them"`
}

func (o *updateThread) do(ctx context.Context, w *within) (made, error) {
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	if o.Merge != nil && (o.Metadata != nil || !rawjson.IsObject(o.Merge)) {
		return made{}, fmt.Errorf("merge: %w: must be an object, and cannot be combined with metadata", lineage.ErrInvalid)
	}
	err = t.Update(ctx, func(info *lineage.ThreadInfo) error {
		if o.If != nil && !sameJSON(orNil(o.If), info.Metadata) {
			return fmt.Errorf("metadata of thread %s: %w", info.ID, lineage.ErrConflict)
		}
		if o.Merge != nil && info.Metadata != nil && !rawjson.IsObject(info.Metadata) {
			return fmt.Errorf("merge: %w: the metadata of thread %s are no object", lineage.ErrInvalid, info.ID)
		}
		if o.Merge != nil {
			info.Metadata = rawjson.MergePatch(info.Metadata, o.Merge)
		}
		if o.Title != nil {
			info.Title = *o.Title
		}
		if o.User != nil {
			info.UserID = *o.User
		}
		if o.Metadata != nil {
			info.Metadata = orNil(o.Metadata)
		}
		return w.mayHave(info)
	})
	return made{Thread: t.ID().String()}, err
}

type deleteThread struct {
	ofThread
	User *string `json:"user,omitempty" query:"user" doc:"only if it belongs to this user"`
}

func (o *deleteThread) do(ctx context.Context, w *within) (made, error) {
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	return made{}, t.Delete(ctx, func(info *lineage.ThreadInfo) error {
		if o.User != nil && info.UserID != *o.User {
			return notFound("thread", o.Thread)
		}
		return nil
	})
}

type copyThread struct {
	ofThread
	ID       string          `json:"id,omitempty" doc:"an id of your choice for the copy, unique in the store"`
	Reuse    bool            `json:"reuse,omitempty" doc:"with an id: if there is such a thread, it is the answer, unchanged"`
	User     string          `json:"user,omitempty" doc:"the user it belongs to; default that of the thread"`
	Title    *string         `json:"title,omitempty" doc:"default that of the thread"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"default that of the thread; null for none"`
}

func (o *copyThread) do(ctx context.Context, w *within) (made, error) {
	from, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	was, err := from.Info(ctx)
	if err != nil {
		return made{}, err
	}
	create := &createThread{ID: o.ID, Reuse: o.Reuse, User: o.User, Title: was.Title, Metadata: o.Metadata, Keep: was.Keeps}
	if create.User == "" {
		create.User = was.UserID
	}
	if o.Title != nil {
		create.Title = *o.Title
	}
	if create.Metadata == nil {
		create.Metadata = was.Metadata
	}
	is, err := create.do(ctx, w)
	if err != nil || is.Found {
		return is, err
	}
	to, err := w.thread(ctx, is.Thread)
	if err != nil {
		return made{}, err
	}
	return is, w.copyBranches(ctx, from, to)
}

// copyBranches copies the branches of a thread to a new one, with their names, settings and values, and sets its
// checkpoints. The copies are not forks of the branches. A fork would also inherit values that are set later at the
// message where it starts, and would lose what it inherits when the thread is deleted.
func (w *within) copyBranches(ctx context.Context, from, to *lineage.Thread) error {
	first, err := to.Active(ctx)
	if err != nil {
		return err
	}
	// The initial branch of the thread is renamed if another one needs its name.
	room := first.ID().String()
	if err := to.NameBranch(ctx, room, first); err != nil {
		return err
	}
	branches, err := from.Branches(ctx)
	if err != nil {
		return err
	}
	active := ""
	values := [][2]lineage.Owner{{{Thread: from.ID()}, {Thread: to.ID()}}}
	for _, b := range branches {
		c, err := w.store.Context(ctx, b.Context)
		if err != nil {
			return err
		}
		info, err := c.Info(ctx)
		if err != nil {
			return err
		}
		settings, err := c.Effective(ctx)
		if err != nil {
			return err
		}
		forked, err := first.Fork(ctx, lineage.ForkOptions{At: b.Head, Empty: b.Head.IsZero(), Overrides: settings, Metadata: info.Metadata})
		if err != nil {
			return err
		}
		if err := to.NameBranch(ctx, b.Name, forked); err != nil {
			return err
		}
		if b.Active {
			active = b.Name
		}
		values = append(values, [2]lineage.Owner{{Context: c.ID()}, {Context: forked.ID()}})
	}
	if active != "" {
		if err := to.Switch(ctx, active); err != nil {
			return err
		}
	}
	if len(branches) == 0 {
		err = to.NameBranch(ctx, lineage.MainBranch, first)
	} else {
		err = to.DeleteBranch(ctx, room)
	}
	if err != nil {
		return err
	}
	checkpoints, err := from.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for _, c := range checkpoints {
		if _, err := to.SetCheckpoint(ctx, c.Name, lineage.CheckpointOptions{At: c.Span}); err != nil {
			return err
		}
	}
	for _, of := range values {
		if err := w.copyValues(ctx, of[0], of[1]); err != nil {
			return err
		}
	}
	return nil
}

// copyValues copies the values of an owner to another one. A transaction cannot list, so the keys are those outside
// of it and those that earlier operations have set. The values are read inside. This comes after everything else that
// a copy reads. All of that must be unchanged when the transaction is committed, so the copy is of one moment, that
// of the list.
func (w *within) copyValues(ctx context.Context, from, to lineage.Owner) error {
	keys := make(map[string]bool)
	for v, err := range w.outside.Values(from).All(w.outer, "") {
		if errors.Is(err, lineage.ErrNotFound) {
			break // an earlier operation created the owner
		}
		if err != nil {
			return err
		}
		keys[v.Key] = true
	}
	for i := range w.made {
		if v := w.made[i].Value; v != nil && v.Context == records.ID(from.Context) && v.Thread == records.ID(from.Thread) {
			keys[v.Key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		v, err := w.store.Values(from).Get(ctx, key)
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if err == nil {
			err = w.store.Values(to).Set(ctx, key, v.JSON)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
