package backend

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/lineage-store/lineage/structure"
)

// ThreadReader lists threads.
type ThreadReader interface {
	// LastMessage returns the time of the latest message of a thread: the greatest time of
	// all usages in runs that belong to the home, in contexts or not. It is the zero time if
	// there are none.
	LastMessage(ctx context.Context, home structure.Home) (time.Time, error)
	// ListThreads yields the threads that match a query, by the time of their last update.
	// An invalid query is ErrInvalid. See [ThreadQuery] for the cost.
	ListThreads(ctx context.Context, q ThreadQuery) iter.Seq2[ThreadListing, error]
}

// ThreadQuery selects threads. The zero value selects all, the last updated first.
//
// With no filter, and with filters for user, metadata and times, alone or combined, the cost
// of a listing depends on its length, not on the size of the store. An engine may need extra
// time for recently updated threads. With SourcePrefix or TitlePrefix, each listing reads up
// to [ManyMatches] matching threads; if there are more, it reads all threads that match the
// other filters and skips those without the prefix.
type ThreadQuery struct {
	// User, if not nil, is the user of the threads. Threads without a user have the empty
	// one; to find them, all threads are read.
	User *string
	// SourcePrefix is a prefix of the source id.
	SourcePrefix string
	// TitlePrefix is a prefix of the title, ignoring case.
	TitlePrefix string
	// Metadata are values that the thread's metadata must all have.
	Metadata []MetadataIs
	// From and To limit the time of the last update: not before From, and before To. Zero
	// times are no limits.
	From, To time.Time
	// Oldest reverses the order: the least recently updated thread comes first.
	Oldest bool
	// After continues after a listed thread, wherever it is now. The zero value is the
	// start.
	After PageToken
}

const (
	// ManyMatches is the largest number of threads that are looked up by a prefix.
	ManyMatches = 1024
	// MaxMetadata is the largest number of metadata values in a query.
	MaxMetadata = 64
)

// Check returns ErrInvalid for an invalid query.
func (q *ThreadQuery) Check() error {
	if len(q.Metadata) > MaxMetadata {
		return fmt.Errorf("list threads: more than %d values of metadata: %w", MaxMetadata, ErrInvalid)
	}
	for _, m := range q.Metadata {
		if _, ok := m.Scalar(); !ok {
			return fmt.Errorf("list threads: metadata %.80q must be a string, number or bool: %w", m.Key, ErrInvalid)
		}
	}
	return nil
}

// Matches reports whether a thread matches a valid query.
func (q *ThreadQuery) Matches(l ThreadListing) bool {
	at := l.Updated()
	switch {
	case q.User != nil && *q.User != l.UserID,
		!strings.HasPrefix(l.SourceID, q.SourcePrefix),
		!strings.HasPrefix(FoldCase(l.Title), FoldCase(q.TitlePrefix)),
		!q.From.IsZero() && at.Before(q.From),
		!q.To.IsZero() && !at.Before(q.To):
		return false
	}
	if len(q.Metadata) == 0 {
		return true
	}
	has := Scalars(l.Metadata)
	for _, m := range q.Metadata {
		if wanted, ok := m.Scalar(); !ok || !slices.Contains(has, wanted) {
			return false
		}
	}
	return true
}

// FoldCase returns a text without differences in case.
func FoldCase(s string) string {
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, s)
}

// ThreadListing is a thread and the time of its last message, zero if it has none.
type ThreadListing struct {
	*structure.Thread
	LastMessage time.Time
}

// Updated returns when the thread was last changed or got a message, whichever is later.
func (l ThreadListing) Updated() time.Time {
	if l.LastMessage.After(l.UpdatedAt) {
		return l.LastMessage
	}
	return l.UpdatedAt
}

// Token returns the token to continue a listing after the thread.
func (l ThreadListing) Token() PageToken {
	return PageToken{Updated: OrderTime(l.Updated()), Thread: l.ID}
}

// OrderTime returns the time by which threads are ordered, in Unix milliseconds. Times more
// than 4,000 years from 1970 are clamped.
func OrderTime(t time.Time) int64 {
	const limit = 1 << 47
	switch s := t.Unix(); { // UnixMilli can overflow
	case s < -limit/1000:
		return -limit
	case s > limit/1000:
		return limit - 1
	}
	return min(max(t.UnixMilli(), -limit), limit-1)
}

// PageToken is a position in the order of threads: after the thread with a time of update
// and an id, whether it still exists or not.
type PageToken struct {
	Updated int64 // Unix milliseconds
	Thread  structure.ThreadID
}

// IsZero reports whether the token is the start of a listing.
func (p PageToken) IsZero() bool { return p == PageToken{} }

// Compare orders positions by time and then by thread.
func (p PageToken) Compare(o PageToken) int {
	if p.Updated != o.Updated {
		if p.Updated < o.Updated {
			return -1
		}
		return 1
	}
	return bytes.Compare(p.Thread[:], o.Thread[:])
}

// String returns the token as text for ParsePageToken.
func (p PageToken) String() string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(p.Updated)), p.Thread[:]...))
}

// ParsePageToken parses the text of a token. The empty text is the start.
func ParsePageToken(s string) (p PageToken, err error) {
	if s == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != 8+len(p.Thread) {
		return p, fmt.Errorf("page token %.80q: %w", s, ErrInvalid)
	}
	p.Updated = int64(binary.BigEndian.Uint64(b))
	copy(p.Thread[:], b[8:])
	return p, nil
}

// UpdatedAt returns when a thread was last changed or got a message, whichever is later.
func UpdatedAt(ctx context.Context, r ThreadReader, t *structure.Thread) (time.Time, error) {
	last, err := r.LastMessage(ctx, t.Home())
	return ThreadListing{t, last}.Updated(), err
}

// ThreadsAhead is implemented by snapshots whose reads are round trips.
type ThreadsAhead interface {
	// ThreadsAhead reads at once what is about to be read of threads: their records, branches and active contexts, with
	// the lengths of these. It need not be complete.
	ThreadsAhead(context.Context, []structure.ThreadID) error
	// RunsAhead reads at once runs that are about to be read.
	RunsAhead(context.Context, []structure.RunID) error
	// LastsAhead reads at once the last spans of runs, and all runs before them.
	LastsAhead(context.Context, []structure.RunID) error
	// ReachAhead reads at once what the reach of threads is found by: contexts, checkpoints, and the runs to which they
	// lead. It need not be complete.
	ReachAhead(context.Context, []structure.ThreadID) error
}
