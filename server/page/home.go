package page

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
)

const (
	// listed is the number of conversations on a page of the list.
	listed = 60
	// runs is the time after its last message during which a conversation is displayed as running.
	runs = 2 * time.Minute
	// imported is the minimum age of a running conversation: an import of messages without times creates it together
	// with all of its messages.
	imported = time.Second
)

// homeView is the list of conversations.
type homeView struct {
	Rows []*homeRow
	// Next is the address of the next page, or empty.
	Next   string
	Filter homeFilter
	First  bool
	// Pending is set if the costs are going to change without a change of the store.
	Pending bool
}

// MessageCount returns the number of messages.
func (r *homeRow) MessageCount() string { return records.MessageCount(r.Messages, r.OfSubagents) }

// homeFilter selects the conversations in the list.
type homeFilter struct{ Agent, Project, Branch, User, Title, Since string }

func (f homeFilter) Given() bool { return f != homeFilter{} }

// homeRow is a row of the list.
type homeRow struct {
	ID, Title, Agent, Project, Branch, User, Last, Speaker, Cost string
	Messages, OfSubagents                                        uint64
	Branches                                                     int
	Updated                                                      time.Time
	Running                                                      bool
}

// filterOf parses the filter in a query.
func filterOf(q url.Values) (f homeFilter, query lineage.ThreadQuery, err error) {
	f = homeFilter{Agent: q.Get("agent"), Project: q.Get("project"), Branch: q.Get("branch"), User: q.Get("user"), Title: q.Get("title"), Since: q.Get("since")}
	for key, value := range map[string]string{archive.KeyAgent: f.Agent, archive.KeyProject: f.Project, archive.KeyGitBranch: f.Branch} {
		if value != "" {
			quoted, err := json.Marshal(value)
			if err != nil {
				return f, query, err
			}
			query.Metadata = append(query.Metadata, lineage.MetadataIs{Key: key, Value: quoted})
		}
	}
	if f.User != "" {
		query.User = &f.User
	}
	query.TitlePrefix = f.Title
	if f.Since != "" {
		if query.From, err = time.Parse(time.DateOnly, f.Since); err != nil {
			return f, query, notDate(f.Since)
		}
	}
	if query.After, err = backend.ParsePageToken(q.Get("after")); err != nil {
		return f, query, refuse("This address of a part of the list is not whole: %v.", err)
	}
	return f, query, query.Check()
}

func (p *Page) home(w http.ResponseWriter, r *http.Request) error {
	filter, query, err := filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	v := &homeView{Filter: filter, First: !r.URL.Query().Has("after")}
	v.Pending = p.costsPending(r.Context()) // before the costs: those of some rows may be older than the others
	var infos []lineage.ThreadInfo
	for t, err := range p.o.Store.Threads(r.Context(), query) {
		if err != nil {
			return err
		}
		infos = append(infos, t.Was)
		if len(infos) == listed {
			next := r.URL.Query()
			next.Del("part")
			next.Set("after", t.Page.String())
			v.Next = "/?" + next.Encode()
			break
		}
	}
	if v.Rows, err = p.rows(r.Context(), infos); err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "home", &pageData{Title: "Conversations", Body: v})
}

// rows returns the rows of conversations, without those that were deleted meanwhile.
func (p *Page) rows(ctx context.Context, infos []lineage.ThreadInfo) (rows []*homeRow, err error) {
	ids := make([]lineage.ThreadID, len(infos))
	for i := range infos {
		ids[i] = infos[i].ID
	}
	titles, err := p.o.Store.ShownTitles(ctx, infos)
	if err != nil {
		return nil, err
	}
	all, err := records.OfThreads(ctx, p.o.Store, ids)
	if err != nil {
		return nil, err
	}
	last, err := p.o.Store.LastEntries(ctx, ids)
	if err != nil {
		return nil, err
	}
	known := make(map[string]*records.Thread, len(all))
	for _, r := range all {
		known[r.ID] = r
	}
	for i := range infos {
		r := known[infos[i].ID.String()]
		if r == nil {
			continue
		}
		row, err := p.row(ctx, &infos[i], r, last[i])
		if err != nil {
			return nil, err
		}
		row.Title = shortTitle(titles[i])
		rows = append(rows, row)
	}
	return rows, nil
}

// row returns the row of a conversation, given its last message, nil for none.
func (p *Page) row(ctx context.Context, info *lineage.ThreadInfo, r *records.Thread, last *lineage.Entry) (*homeRow, error) {
	row := &homeRow{
		ID: r.ID, User: info.UserID, Updated: info.UpdatedAt, Agent: states(info, archive.KeyAgent), Project: states(info, archive.KeyProject),
		Branch:   states(info, archive.KeyGitBranch),
		Running:  info.LastMessage.Sub(info.CreatedAt) > imported && p.o.now().Sub(info.LastMessage) < runs,
		Branches: r.Branches, OfSubagents: r.SubagentMessages,
	}
	if p.o.Cost != nil {
		row.Cost = p.o.Cost(info.ID)
	}
	if last == nil {
		return row, nil
	}
	row.Messages = last.Position
	message, err := p.o.Store.Transcribe(ctx, last, preview)
	if err != nil {
		return nil, err
	}
	row.Speaker, row.Last = transcript.Line(message)
	row.Last = short(words(row.Last), 200)
	return row, nil
}
