package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/attachment"
)

const levelError = slog.LevelError

func attr(key, value string) slog.Attr { return slog.String(key, value) }

// list is a page of records.
type list[R records.Record] struct {
	Items []R
	// Next continues after the page. It is empty on the last page.
	Next string
	// Behind is the number of the last commits that a search does not see yet.
	Behind uint64
}

// lister is a list of records of any type.
type lister interface {
	element() reflect.Type
	encode(b *bytes.Buffer) error
}

func (*list[R]) element() reflect.Type { return reflect.TypeFor[R]() }

func (l *list[R]) encode(b *bytes.Buffer) error {
	b.WriteString(`{"items":[`)
	for i, r := range l.Items {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encode(b, r); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	if l.Next != "" {
		next, _ := json.Marshal(l.Next) // strings always marshal
		b.WriteString(`,"next":`)
		b.Write(next)
	}
	if l.Behind > 0 {
		fmt.Fprintf(b, `,"behind":%d`, l.Behind)
	}
	b.WriteString("}\n")
	return nil
}

// encode writes a record without the newline at its end.
func encode(b *bytes.Buffer, r records.Record) error {
	line, err := records.Encode(r)
	b.Write(bytes.TrimSuffix(line, []byte("\n")))
	return err
}

// send answers with a record or a list.
func (c *call) send(status int, out any) error {
	if r, ok := out.(records.Record); ok {
		line, err := records.Encode(r)
		if err != nil {
			return err
		}
		return c.sendJSON(status, line)
	}
	var b bytes.Buffer
	if l, ok := out.(lister); ok {
		if err := l.encode(&b); err != nil {
			return err
		}
	}
	return c.sendJSON(status, b.Bytes())
}

// minCompressed is the minimum size of answers that are compressed.
const minCompressed = 1 << 10

// sendJSON answers with JSON. For a read it also sends a tag, and tells a caller that has the tag already that
// nothing has changed.
func (c *call) sendJSON(status int, body []byte) error {
	h := c.w.Header()
	h["Content-Type"] = typeJSON
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		h.Set("Cache-Control", "no-cache, private")
		h.Add("Vary", "Accept-Encoding, Authorization")
		sum := sha256.Sum256(body)
		tag := hex.EncodeToString(sum[:12])
		if c.tag != "" {
			tag = c.tag + "." + tag
		}
		tag = `W/"` + tag + `"`
		h.Set("ETag", tag)
		if matches(c.r.Header.Get("If-None-Match"), tag) {
			h.Del("Content-Type")
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	if len(body) >= minCompressed && accepts(c.r, "gzip") {
		h.Set("Content-Encoding", "gzip")
		c.w.WriteHeader(status)
		z, _ := gzip.NewWriterLevel(c.w, gzip.BestSpeed) // a level there is
		_, _ = z.Write(body)                             // the caller may be gone
		_ = z.Close()
		return nil
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body)
	return nil
}

// matches reports whether a header with tags contains the tag, or matches any.
func matches(header, tag string) bool {
	for element := range strings.SplitSeq(header, ",") {
		element = strings.TrimSpace(element)
		if element == "*" || element != "" && strings.TrimPrefix(element, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// accepts reports whether a caller accepts an encoding.
func accepts(r *http.Request, encoding string) bool {
	for element := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(element), ";")
		if strings.EqualFold(strings.TrimSpace(name), encoding) {
			q = strings.ReplaceAll(q, " ", "")
			return q != "q=0" && !strings.HasPrefix(q, "q=0.000") && q != "q=0.0" && q != "q=0.00"
		}
	}
	return false
}

// Values of the headers of every answer. They are shared: Set and Add of a header create new values.
var (
	policies = []string{attachment.Policy}
	typeJSON = []string{"application/json"}
)
