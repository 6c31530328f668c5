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
	// all usages in runs that belong to the home, also of those that no context leads to. It
	// is the zero time where there are none.
	LastMessage(ctx context.Context, home structure.Home) (time.Time, error)
	// ListThreads yields the threads that pass a query, by the time of their last update. A
	// query that is not valid is ErrInvalid. See [ThreadQuery] for what it costs.
	ListThreads(ctx context.Context, q ThreadQuery) iter.Seq2[ThreadListing, error]
}

// ThreadQuery chooses threads. The zero value chooses all, the one updated last first.
//
// A listing costs what it yields, and not what the store holds, with no filter and with
// those for a user, metadata and times, alone or together. An engine may add a cost for
// threads that were updated a short time ago. With SourcePrefix or TitlePrefix, each
// listing looks at up to [ManyMatches] threads that match; where more do, it goes through the
// threads that pass the other filters and leaves out those that do not match.
type ThreadQuery struct {
	// User, when not nil, is the user whose threads are wanted. Threads without a user have
	// the empty one; they are found by going through all threads.
	User *string
	// SourcePrefix is what the source id begins with.
	SourcePrefix string
	// TitlePrefix is what the title begins with, in upper or lower case.
	TitlePrefix string
	// Metadata are values that the thread's metadata must all have.
	Metadata []MetadataIs
	// From and To bound the time of the last update: not before From, and before To. Zero
	// times are no bounds.
	From, To time.Time
	// Oldest reverses the order: the thread that was not updated for longest comes first.
	Oldest bool
	// After continues behind a thread that was listed, wherever it is now. The zero value
	// begins at the start.
	After PageToken
}

const (
	// ManyMatches is how many threads that begin with a prefix are looked up by it.
	ManyMatches = 1024
	// MaxMetadata is how many values of metadata a query may have.
	MaxMetadata = 64
)

// Check refuses a query that is not valid with ErrInvalid.
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

// Matches reports whether a thread passes the filters of a valid query.
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

// FoldCase returns a text without the difference between upper and lower case.
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

// Token returns where a listing continues behind the thread.
func (l ThreadListing) Token() PageToken {
	return PageToken{Updated: OrderTime(l.Updated()), Thread: l.ID}
}

// OrderTime returns the time by which threads are ordered, in Unix milliseconds. Times more
// than 4,000 years from now count as the greatest or least of these.
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

// PageToken is a place in the order of threads: after those that were updated at a time and
// have a certain id. It does not depend on whether that thread is still there.
type PageToken struct {
	Updated int64 // Unix milliseconds
	Thread  structure.ThreadID
}

// IsZero reports whether the token is the start of a listing.
func (p PageToken) IsZero() bool { return p == PageToken{} }

// Compare orders places by time, and those of the same time by thread.
func (p PageToken) Compare(o PageToken) int {
	if p.Updated != o.Updated {
		if p.Updated < o.Updated {
			return -1
		}
		return 1
	}
	return bytes.Compare(p.Thread[:], o.Thread[:])
}

// String returns the token as text, which ParsePageToken reads.
func (p PageToken) String() string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(p.Updated)), p.Thread[:]...))
}

// ParsePageToken reads the text of a token. The empty text is the start.
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
