package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
)

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
		condition, err := metadataIs(pair)
		if err != nil {
			return q, err
		}
		q.Metadata = append(q.Metadata, condition)
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
	listPage
}

// metadataIs parses KEY=VALUE.
func metadataIs(pair string) (condition lineage.MetadataIs, err error) {
	key, text, ok := strings.Cut(pair, "=")
	if !ok {
		return condition, fmt.Errorf("metadata %.100q: %w: must be KEY=VALUE", pair, lineage.ErrInvalid)
	}
	condition = lineage.MetadataIs{Key: key, Value: json.RawMessage(text)}
	if _, ok := condition.Scalar(); !ok {
		condition.Value, _ = json.Marshal(text) // strings always marshal
	}
	return condition, nil
}

// pageOfThreads returns a page of the threads of a query: those that the caller may read, whose source id as the caller chose it has a
// prefix, and that keep accepts. It also returns the token of the next page, if there may be one. A page ends after maxLooked threads. If
// the last of them may be somebody else's, it ends with the last one of the same time, and the token names only the time. (Of twice
// maxLooked of the same time, it names the last one.)
func (c *call) pageOfThreads(ctx context.Context, q lineage.ThreadQuery, after string, size int, prefix string, keep func(*lineage.ThreadInfo) (bool, error)) (found []*lineage.ListedThread, next string, err error) {
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
		if kept = scope.Allows(&t.Was) && strings.HasPrefix(scope.Chosen(t.Was.SourceID), prefix); kept {
			if kept, err = keep(&t.Was); err != nil {
				return nil, "", err
			}
		}
		if kept {
			found = append(found, t)
		}
	}
	return found, "", nil
}

func (a *API) listThreads(ctx context.Context, c *call, in *threadsQuery) (*list[*records.Thread], error) {
	scope := &c.caller.Scope
	q, err := in.query(scope)
	if err != nil {
		return nil, err
	}
	q.TitlePrefix, q.Oldest = in.Title, in.Oldest
	found, next, err := c.pageOfThreads(ctx, q, in.After, in.size(), in.SourcePrefix, func(*lineage.ThreadInfo) (bool, error) { return true, nil })
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
