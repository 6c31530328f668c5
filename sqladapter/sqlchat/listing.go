package sqlchat

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
)

// Chats are listed in pages. Each page begins after the last chat of the previous one. The database applies the
// filters. For some of them it may return additional chats, which are filtered out here.
//
// The filters are inside of CASE. A planner that does not know their parameters would assume that they exclude most
// chats, and would read and sort the whole list for each page.

var listSQL = struct {
	newest, oldest, newestOfUser, oldestOfUser, latest, byIDs, titles sqladapter.Statement
	nthNewest, nthOldest, nthNewestOfUser, nthOldestOfUser            sqladapter.Statement
}{
	newest: `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE {after:<} AND {until:>=} ` +
		`AND CASE WHEN "id" LIKE ? AND LOWER(COALESCE("title", '')) LIKE ? {metadata} THEN 1 ELSE 0 END > 0 {kept:chats.id} ` +
		`ORDER BY "updatedAt" DESC, "id" DESC {limit}`,
	oldest: `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE {after:>} AND {until:<=} ` +
		`AND CASE WHEN "id" LIKE ? AND LOWER(COALESCE("title", '')) LIKE ? {metadata} THEN 1 ELSE 0 END > 0 {kept:chats.id} ` +
		`ORDER BY "updatedAt", "id" {limit}`,
	newestOfUser: `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE {after:user <} AND {until:>=} ` +
		`AND CASE WHEN "id" LIKE ? AND LOWER(COALESCE("title", '')) LIKE ? {metadata} THEN 1 ELSE 0 END > 0 {kept:chats.id} ` +
		`ORDER BY "updatedAt" DESC, "id" DESC {limit}`,
	oldestOfUser: `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE {after:user >} AND {until:<=} ` +
		`AND CASE WHEN "id" LIKE ? AND LOWER(COALESCE("title", '')) LIKE ? {metadata} THEN 1 ELSE 0 END > 0 {kept:chats.id} ` +
		`ORDER BY "updatedAt", "id" {limit}`,
	nthNewest:       `SELECT "updatedAt", "id" FROM "chats" WHERE {after:<} AND {until:>=} {kept:chats.id} ORDER BY "updatedAt" DESC, "id" DESC {nth}`,
	nthOldest:       `SELECT "updatedAt", "id" FROM "chats" WHERE {after:>} AND {until:<=} {kept:chats.id} ORDER BY "updatedAt", "id" {nth}`,
	nthNewestOfUser: `SELECT "updatedAt", "id" FROM "chats" WHERE {after:user <} AND {until:>=} {kept:chats.id} ORDER BY "updatedAt" DESC, "id" DESC {nth}`,
	nthOldestOfUser: `SELECT "updatedAt", "id" FROM "chats" WHERE {after:user >} AND {until:<=} {kept:chats.id} ORDER BY "updatedAt", "id" {nth}`,

	latest: `SELECT COALESCE(MAX("updatedAt"), 0) AS "latest" FROM "chats"`,
	byIDs:  `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE "id" IN ({list}) {kept:chats.id}`,
	titles: `SELECT "id", "title" FROM "chats" WHERE "id" > ? {kept:chats.id} ORDER BY "id" {limit}`,
}

// listPage is the maximum number of chats per statement.
const listPage = 200

// listing is the state of a listing.
type listing struct {
	*store
	chat.ListOptions
	from, to int64
	// at is the chat after which the next page begins.
	at   listKey
	like [2]string
	// size is the number of chats in the next page, before filters that the database does not
	// apply.
	size int
	// metadata are the parameters of the filters that the database applies; filters is their
	// number.
	metadata []any
	filters  int
	// byKeys is set if keys has the rest of the list.
	byKeys bool
	keys   []listKey
}

// listKey is a position in a list of chats.
type listKey struct {
	updated int64
	id      string
}

func (k listKey) String() string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(k.updated)), k.id...))
}

func parseListKey(text string) (k listKey, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 8 {
		return k, fmt.Errorf("page token %.80q: %w", text, chat.ErrInvalid)
	}
	return listKey{int64(binary.BigEndian.Uint64(b)), string(b[8:])}, nil
}

// ListChats implements chat.Store.
func (s *store) ListChats(ctx context.Context, o chat.ListOptions) iter.Seq2[chat.ChatInfo, error] {
	return func(yield func(chat.ChatInfo, error) bool) {
		l, err := s.list(ctx, o)
		left, skip, more := o.Limit, o.Offset, err == nil
		if more {
			var skipped bool
			if skipped, more, err = l.skip(ctx, skip); skipped {
				skip = 0
			}
		}
		for more && err == nil {
			var page []chat.Chat
			if page, more, err = l.next(ctx); err != nil {
				break
			}
			dropped := min(skip, len(page))
			page, skip = page[dropped:], skip-dropped
			if left > 0 {
				page = page[:min(left, len(page))]
			}
			var infos []chat.ChatInfo
			if infos, err = s.chatInfos(ctx, page); err != nil {
				break
			}
			for _, info := range infos {
				if !yield(info, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
		}
		if err != nil {
			yield(chat.ChatInfo{}, err)
		}
	}
}

// list prepares a listing.
func (s *store) list(ctx context.Context, o chat.ListOptions) (*listing, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	l := &listing{store: s, ListOptions: o, from: math.MinInt64, to: math.MaxInt64, at: listKey{updated: math.MaxInt64}}
	if o.From != 0 {
		l.from = o.From
	}
	if o.To != 0 {
		l.to = o.To - 1
	}
	if o.Oldest {
		l.at.updated = math.MinInt64
		// A chat that is updated during the listing moves to the end of the list. The end is fixed now, so that the
		// listing ends.
		err := s.db.Read(ctx, func(c *sqladapter.Conn) error {
			var latest int64
			_, err := c.Get(ctx, listSQL.latest, nil, &latest)
			l.to = min(l.to, latest)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if o.After != "" {
		var err error
		if l.at, err = parseListKey(o.After); err != nil {
			return nil, err
		}
	}
	l.size = listPage
	if o.Limit > 0 {
		l.size = min(listPage, o.Limit+min(o.Offset, listPage))
	}
	l.like = [2]string{likePrefix(o.IDPrefix, false), likePrefix(o.TitlePrefix, true)}
	syntax := s.db.Dialect().Syntax().Metadata
	for _, f := range o.Metadata {
		if value, ok := metadataValue(f); ok {
			l.metadata = append(l.metadata, syntax.Args(value)...)
			l.filters++
		}
	}
	if l.filters > 0 && syntax.Keys != "" {
		return l, l.readKeys(ctx, &syntax)
	}
	return l, nil
}

// readKeys reads the keys of the chats that match the metadata filters. If there are many, it does not: reading all
// chats in order then soon fills a page.
func (l *listing) readKeys(ctx context.Context, syntax *sqladapter.MetadataSyntax) error {
	statement, args, from, to := syntax.Keys, []any(nil), l.from, l.to
	if l.UserID != "" {
		statement, args = syntax.KeysOfUser, []any{l.UserID}
	}
	if l.Oldest {
		from = max(from, l.at.updated)
	} else {
		to = min(to, l.at.updated)
	}
	args = append(append(append(args, from, to), l.metadata...), l.at.id)
	return l.db.Read(ctx, func(c *sqladapter.Conn) error {
		l.keys, l.byKeys = nil, false
		rows, err := c.QueryN(ctx, statement, l.filters, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		n := 0
		for rows.Next() {
			var k listKey
			var less bool
			if err := rows.Scan(&k.id, &k.updated, &less); err != nil {
				return err
			}
			n++
			if k.updated != l.at.updated || l.Oldest && !less && k.id != l.at.id || !l.Oldest && less {
				l.keys = append(l.keys, k)
			}
		}
		if l.Oldest {
			slices.Reverse(l.keys)
		}
		l.byKeys = n <= syntax.Few
		return rows.Err()
	})
}

// nextOfKeys is like next, for a listing whose keys are known.
func (l *listing) nextOfKeys(ctx context.Context, limit int) (page []chat.Chat, more bool, err error) {
	var ids []string
	for _, k := range l.keys[:min(limit, len(l.keys))] {
		ids = append(ids, k.id)
	}
	l.keys = l.keys[len(ids):]
	if len(ids) == 0 {
		return nil, false, nil
	}
	found := make(map[string]chat.Chat, len(ids))
	err = l.db.Read(ctx, func(c *sqladapter.Conn) error {
		chats, err := lists.CollectList(ctx, c, chatrows.ScanChat, listSQL.byIDs, ids)
		for _, info := range chats {
			found[info.ID] = info
		}
		return err
	})
	for _, id := range ids {
		if info, ok := found[id]; ok && l.Passes(info) {
			page = append(page, info)
		}
	}
	return page, len(l.keys) > 0, err
}

// next returns the next matching chats, and whether there may be more.
func (l *listing) next(ctx context.Context) (page []chat.Chat, more bool, err error) {
	limit := l.size
	l.size = min(2*limit, listPage)
	if l.byKeys {
		return l.nextOfKeys(ctx, limit)
	}
	statement := l.choose(listSQL.newest, listSQL.oldest, listSQL.newestOfUser, listSQL.oldestOfUser)
	args := append(l.behind(), l.like[0], l.like[1])
	args = append(append(args, l.metadata...), limit)
	err = l.db.Read(ctx, func(c *sqladapter.Conn) error {
		rows, err := c.QueryN(ctx, statement, l.filters, args...)
		page, err = lists.All(rows, err, chatrows.ScanChat)
		return err
	})
	if err != nil || len(page) == 0 {
		return nil, false, err
	}
	last := page[len(page)-1]
	l.at, more = keyOf(last), len(page) == limit
	passing := page[:0]
	for _, c := range page {
		if l.Passes(c) {
			passing = append(passing, c)
		}
	}
	return passing, more, nil
}

// choose returns the statement for the order and the user of the listing.
func (l *listing) choose(newest, oldest, newestOfUser, oldestOfUser sqladapter.Statement) sqladapter.Statement {
	statement, whole := newest, l.From == 0
	switch {
	case l.Oldest && l.UserID != "":
		statement, whole = oldestOfUser, l.To == 0
	case l.Oldest:
		statement = oldest
	case l.UserID != "":
		statement = newestOfUser
	}
	if l.UserID != "" && whole && l.db.Dialect().Syntax().RowValues == sqladapter.AllColumns {
		return statement.OfAllTimes()
	}
	return statement
}

// behind returns the parameters for the rest of the list: the user, if there is one, the position after which the
// next page begins, and the last time of the list.
func (l *listing) behind() (args []any) {
	if l.UserID != "" {
		args = append(args, l.UserID)
	}
	at, last := l.at, l.from
	switch {
	case l.Oldest:
		if last = l.to; l.from > at.updated {
			at = listKey{updated: l.from}
		}
	case l.to < at.updated && l.to < math.MaxInt64:
		at = listKey{updated: l.to + 1}
	}
	return append(args, at.updated, at.id, last)
}

// skip skips n chats of the list. It reports whether that was possible and whether there may be more. Filters that
// the database does not apply exactly need the chats themselves.
func (l *listing) skip(ctx context.Context, n int) (done, more bool, err error) {
	loose := l.UserID != "" && l.db.Dialect().Limits().Loose
	if n == 0 || l.IDPrefix != "" || l.TitlePrefix != "" || len(l.Metadata) > 0 || loose {
		return false, true, nil
	}
	err = l.db.Read(ctx, func(c *sqladapter.Conn) error {
		var at listKey
		statement := l.choose(listSQL.nthNewest, listSQL.nthOldest, listSQL.nthNewestOfUser, listSQL.nthOldestOfUser)
		more, err = c.Get(ctx, statement, append(l.behind(), n-1), &at.updated, &at.id)
		if more {
			l.at = at
		}
		return err
	})
	if l.Limit > 0 {
		l.size = min(listPage, l.Limit)
	}
	return true, more, err
}

func keyOf(c chat.Chat) listKey { return listKey{c.UpdatedAt, c.ID} }

// likePrefix returns a LIKE pattern that matches at least all texts with a prefix, ignoring case if
// anyCase is set.
func likePrefix(prefix string, anyCase bool) string {
	var b strings.Builder
	for _, r := range prefix {
		switch {
		case anyCase && strings.ContainsRune("skiSKI", r):
			b.WriteByte('_') // other characters have these as their upper or lower case
			continue
		case anyCase && 'A' <= r && r <= 'Z':
			r += 'a' - 'A'
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune(" -.:/@#", r):
		default:
			return b.String() + "%"
		}
		b.WriteRune(r)
	}
	return b.String() + "%"
}

// metadataValue returns the value of a filter. It returns false if databases cannot apply the filter, because it has
// no value or one that they cannot store.
func metadataValue(f chat.MetadataFilter) (v sqladapter.MetadataValue, ok bool) {
	if f.Value == nil {
		return v, false
	}
	v.Path = strings.Split(f.Key, ".")
	var err error
	if v.JSON, err = json.Marshal(f.Value); err != nil || !utf8.ValidString(f.Key) {
		return v, false
	}
	d := json.NewDecoder(strings.NewReader(string(v.JSON)))
	d.UseNumber()
	if d.Decode(&v.Value) != nil {
		return v, false
	}
	switch value := v.Value.(type) {
	case string:
		if !utf8.ValidString(value) {
			return v, false
		}
	case json.Number:
		n, err := strconv.ParseFloat(string(value), 64)
		_, exponent, ok := backend.Decimal(string(value))
		if err != nil || !ok || exponent < -300 || exponent > 300 {
			return v, false
		}
		about := math.Abs(n) * 1e-9
		v.Least, v.Greatest = n-about, n+about
	}
	return v, true
}

// chatInfos returns chats with their counts.
func (s *store) chatInfos(ctx context.Context, chats []chat.Chat) (infos []chat.ChatInfo, err error) {
	if len(chats) == 0 {
		return nil, nil
	}
	ids := make([]string, len(chats))
	for i := range chats {
		ids[i] = chats[i].ID
	}
	err = s.db.Read(ctx, func(c *sqladapter.Conn) error {
		infos = nil
		messages, err := chatrows.MessageCounts(ctx, c, ids)
		if err != nil {
			return err
		}
		branches, err := chatrows.BranchCounts(ctx, c, ids)
		for _, found := range chats {
			infos = append(infos, chat.ChatInfo{
				Chat: found, MessageCount: messages[found.ID], BranchCount: branches[found.ID], Page: keyOf(found).String(),
			})
		}
		return err
	})
	return infos, err
}

// titlePage is the number of titles per query.
const titlePage = 1000

// Titles yields the ids and titles of all chats, ordered by id. It is cheaper than ListChats, which counts messages.
func (s *store) Titles(ctx context.Context) iter.Seq2[chat.Chat, error] {
	return func(yield func(chat.Chat, error) bool) {
		for after := ""; ; {
			var page []chat.Chat
			err := s.db.Read(ctx, func(c *sqladapter.Conn) error {
				rows, err := c.Query(ctx, listSQL.titles, after, titlePage)
				page, err = lists.All(rows, err, func(rows *sqladapter.Rows) (found chat.Chat, err error) {
					var title sql.NullString
					err = rows.Scan(&found.ID, &title)
					found.Title = title.String
					return found, err
				})
				return err
			})
			if err != nil {
				yield(chat.Chat{}, err)
				return
			}
			for _, found := range page {
				if !yield(found, nil) {
					return
				}
			}
			if len(page) < titlePage {
				return
			}
			after = page[len(page)-1].ID
		}
	}
}
