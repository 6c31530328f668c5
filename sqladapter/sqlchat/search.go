package sqlchat

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/structure"
)

var searchSQL = struct {
	cards, idsOfUser sqladapter.Statement
}{
	cards:     `SELECT "chatId", "card" FROM "lineage_messages"`,
	idsOfUser: `SELECT "id" FROM "chats" WHERE "userId" = ? {kept:chats.id}`,
}

// activeSearch is a search in progress. The index of the database returns candidates. Their cards decide whether and how
// well they match, in the same way for all databases. Only the messages of the hits are read.
type activeSearch struct {
	db      *sqladapter.DB
	options chat.SearchOptions
	q       *query.Query
	matcher *query.Matcher
	// chat is the searched chat, empty for all. chats, when not nil, are the searched chats: those of one user.
	chat  string
	chats map[string]bool

	matches query.Matches
	// deleting are chats that are being deleted.
	deleting []string
	// unknown are messages that could not be indexed. Their cards are outdated.
	unknown map[string]bool
	// unlisted are messages whose card does not exist, or lacks some words.
	unlisted []string
}

// newFinding returns a search, nil if the query is empty.
func newFinding(db *sqladapter.DB, text string, o chat.SearchOptions) (*activeSearch, error) {
	if o.Limit < 0 {
		return nil, fmt.Errorf("limit %d: %w", o.Limit, chat.ErrInvalid)
	}
	o.Limit = cmp.Or(o.Limit, chat.DefaultSearchLimit)
	q, err := query.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, chat.ErrInvalid)
	}
	if q == nil {
		return nil, nil
	}
	return &activeSearch{db: db, options: o, q: q, matcher: query.NewMatcher(q)}, nil
}

// SearchMessages implements chat.Store.
func (s *store) SearchMessages(ctx context.Context, chatID, text string, o chat.SearchOptions) ([]chat.SearchResult, error) {
	f, err := newFinding(s.db, text, o)
	if err != nil || f == nil {
		return nil, err
	}
	defer f.matches.Close()
	f.chat = chatID
	unknown, messages, err := refreshChat(ctx, s.db, chatID)
	if err != nil {
		return nil, err
	}
	f.ignore(unknown)
	most, err := hasMost(ctx, s.db, messages)
	if err != nil {
		return nil, err
	}
	syntax := s.db.Dialect().Search()
	args, n := syntax.Condition(chatID, most, f.q.Condition())
	err = s.db.Read(ctx, func(c *sqladapter.Conn) error {
		rows, err := c.QueryN(ctx, syntax.Candidates, n, args...)
		return f.readCards(rows, err, chatID)
	})
	if err != nil {
		return nil, err
	}
	f.unlisted = append(f.unlisted, unknown...)
	return f.finish(ctx, map[string]int{chatID: messages})
}

// hasMost reports whether a chat has a large part of all messages, as far as that is known without counting.
func hasMost(ctx context.Context, db *sqladapter.DB, messages int) (most bool, err error) {
	if !db.Dialect().Search().Counted {
		return false, nil
	}
	err = db.Read(ctx, func(c *sqladapter.Conn) error {
		last, err := chatrows.LastIndexed(ctx, c)
		most = last <= 4*int64(messages)
		return err
	})
	return most, err
}

// SearchAll returns the matching messages of all chats, or of one user's chats if userID is not empty, best first.
// The rank of a message is its rank within its chat.
func SearchAll(ctx context.Context, db *sqladapter.DB, userID, text string, o chat.SearchOptions) ([]chat.SearchResult, error) {
	f, err := newFinding(db, text, o)
	if err != nil || f == nil {
		return nil, err
	}
	defer f.matches.Close()
	if userID != "" {
		if f.chats, err = chatsOfUser(ctx, db, userID); err != nil || len(f.chats) == 0 {
			return nil, err
		}
	}
	f.deleting, err = lists.Read(ctx, db, func(c *sqladapter.Conn) ([]string, error) { return chatrows.Deletions(ctx, c) })
	if err != nil {
		return nil, err
	}
	unknown, err := refreshAll(ctx, db, userID)
	if err != nil {
		return nil, err
	}
	f.ignore(unknown)
	syntax := db.Dialect().Search()
	statement, n, args := searchSQL.cards, 1, []any(nil)
	if condition := f.q.Condition(); !condition.IsAny() {
		statement = syntax.AllCandidates
		const most = false
		args, n = syntax.Condition("", most, condition)
	}
	err = db.Read(ctx, func(c *sqladapter.Conn) error {
		rows, err := c.QueryN(ctx, statement, n, args...)
		return f.readCards(rows, err, "")
	})
	if err != nil {
		return nil, err
	}
	f.unlisted = append(f.unlisted, unknown...)
	return f.finish(ctx, nil)
}

// chatsOfUser returns the chats of a user.
func chatsOfUser(ctx context.Context, db *sqladapter.DB, userID string) (map[string]bool, error) {
	chats := make(map[string]bool)
	err := db.Read(ctx, func(c *sqladapter.Conn) error {
		ids, err := lists.Collect(ctx, c, lists.ScanString, searchSQL.idsOfUser, userID)
		for _, id := range ids {
			chats[id] = true
		}
		return err
	})
	return chats, err
}

// readCards evaluates the cards of candidates. The candidates are all of one chat or have their chat in the first
// column. It can be called again after an error.
func (f *activeSearch) readCards(rows *sqladapter.Rows, err error, chatID string) error {
	f.matches.Close()
	f.unlisted = nil
	if err != nil {
		return err
	}
	defer rows.Close()
	var chat, b sql.RawBytes
	var last string // chatID as bytes
	into := []any{&chat, &b}
	if chatID != "" {
		into = into[1:]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if f.chat == "" && last != string(chat) {
			last, chatID = string(chat), rows.Text(chat)
		}
		if err := f.readCard(chatID, b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ignore makes the search read these messages instead of using their cards.
func (f *activeSearch) ignore(unknown []string) {
	f.unknown = make(map[string]bool, len(unknown))
	for _, id := range unknown {
		f.unknown[id] = true
	}
}

// readCard evaluates the card of a message.
func (f *activeSearch) readCard(chatID string, b []byte) error {
	c, ok := query.ReadCard(b)
	if !ok {
		return &sqladapter.TableError{Table: "lineage_messages", Err: sqladapter.ErrCorrupt, Detail: "a card that is none"}
	}
	if f.unknown[string(c.ID)] {
		return nil
	}
	if !f.wants(chatID) || len(f.options.Roles) > 0 && !slices.ContainsFunc(f.options.Roles, func(r string) bool { return r == string(c.Role) }) {
		return nil
	}
	if !c.Listed {
		f.unlisted = append(f.unlisted, string(c.ID))
		return nil
	}
	matches, ok := f.matcher.MatchCard(&c)
	if !ok {
		return &sqladapter.TableError{Table: "lineage_messages", Err: sqladapter.ErrCorrupt, Detail: fmt.Sprintf("the card of message %q", c.ID)}
	}
	if matches {
		f.matches.Add(chatID, c.ID, c.CreatedAt, c.Words, f.matcher.Found)
	}
	return nil
}

// wants reports whether messages of a chat are in scope.
func (f *activeSearch) wants(chatID string) bool {
	if f.chat != "" {
		return chatID == f.chat
	}
	return (f.chats == nil || f.chats[chatID]) && !slices.Contains(f.deleting, chatID)
}

// matchMessage reports whether a message itself matches.
func (f *activeSearch) matchMessage(m *chat.Message) (text string, words []query.Word, matches bool) {
	if !f.wants(m.ChatID) || len(f.options.Roles) > 0 && !slices.Contains(f.options.Roles, m.Name) {
		return "", nil, false
	}
	text = form.Searched(m.Data, m.Name)
	words = query.Words(text)
	return text, words, f.matcher.MatchWords(words)
}

// finish evaluates messages without cards, and returns the hits. sizes has the number of messages
// of the searched chats.
func (f *activeSearch) finish(ctx context.Context, sizes map[string]int) ([]chat.SearchResult, error) {
	if len(f.unlisted) > 0 { // another process may just have indexed some
		indexed := make(map[string]bool, len(f.unlisted))
		for _, id := range f.unlisted {
			indexed[id] = true
		}
		f.unlisted = slices.Sorted(maps.Keys(indexed))
		f.matches.Drop(indexed)
	}
	for batch := range lists.Batches(f.unlisted, chatrows.ReadBatch) {
		found, err := chatrows.ReadMessages(ctx, f.db, batch)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if _, words, matches := f.matchMessage(&m); matches {
				f.matches.Add(m.ChatID, []byte(m.ID), m.CreatedAt, len(words), f.matcher.Found)
			}
		}
	}
	if sizes == nil {
		var err error
		if sizes, err = sizesOf(ctx, f.db, f.matches.Chats); err != nil {
			return nil, err
		}
	}
	for try := 0; ; try++ {
		if err := f.matches.Rank(sizes); err != nil {
			return nil, err
		}
		results, gone, err := f.results(ctx, f.matches.Best(f.options.Limit))
		if err != nil || len(gone) == 0 || try == 3 {
			return results, err
		}
		f.matches.Drop(gone)
	}
}

// results reads the messages of matches, in order. gone are those that other programs have deleted or overwritten in
// the meantime.
func (f *activeSearch) results(ctx context.Context, best []query.Match) (results []chat.SearchResult, gone map[string]bool, err error) {
	for batch := range lists.Batches(best, chatrows.ReadBatch) {
		ids := make([]string, len(batch))
		for i := range batch {
			ids[i] = string(batch[i].ID)
		}
		found, err := chatrows.ReadMessages(ctx, f.db, ids)
		if err != nil {
			return nil, nil, err
		}
		for i, id := range ids {
			m, ok := found[id]
			var text string
			var words []query.Word
			if ok {
				text, words, ok = f.matchMessage(&m)
			}
			if !ok {
				if gone == nil {
					gone = make(map[string]bool)
				}
				gone[id] = true
				continue
			}
			results = append(results, chat.SearchResult{Message: m, Rank: batch[i].Rank, Snippet: f.snippet(&m, text, words)})
		}
	}
	return results, gone, nil
}

// snippet returns the snippet of a message that matches. It is of what is shown where messages are read, if that matches by
// itself.
func (f *activeSearch) snippet(m *chat.Message, text string, words []query.Word) string {
	var passages []transcript.Passage
	form.EachSearched(m.Data, m.Name, func(p *form.Piece, text string) {
		switch {
		case p.Kind == structure.TextPiece && !p.JSON:
			passages = append(passages, transcript.Passages(m.Name, text, nil)...)
		case p.Kind != structure.DataPiece:
			passages = append(passages, transcript.Passage{Text: text})
		}
	})
	if len(passages) == 0 { // the message is data that only its format explains
		passages = transcript.PassagesOf(m.Transcribe())
	}
	if snippet := f.matcher.Snippet(passages); snippet != "" {
		return snippet
	}
	f.matcher.MatchWords(words)
	return query.Snippet(text, words, f.matcher.Found)
}
