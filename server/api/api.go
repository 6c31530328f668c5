package api

import (
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/lineage-store/lineage/server/access"
)

// API answers requests.
type API struct {
	o       Options
	routes  []route
	openAPI func() []byte // returns the document
	// bodies is the number of bytes of bodies in memory.
	bodies  atomic.Int64
	keys    keeper
	handles handles
}

// needs states what a route requires of its caller.
type needs struct {
	writes bool
	// whole is set for routes that concern more than single threads. The caller must have access to the whole store.
	whole bool
}

// route is a row of the table.
type route struct {
	pattern string
	needs   needs
	doc     string
	// in is the type of the input: a struct with members from the path, the query and the body.
	in reflect.Type
	// answer is the kind of answer: a record, a list of records, or bytes of a media type.
	answer answers
	// op is the name of the operation in a batch, empty if the route is not an operation.
	op      string
	streams bool
	// upload is set for a body that is not JSON and is read while it arrives.
	upload bool
	serve  func(a *API, c *call) error
}

// answers is the kind of a route's answer.
type answers struct {
	status int
	// record is the type of the record, or of the records in a list. It is nil for none.
	record reflect.Type
	list   bool
	// behind is set if the list may be that of a search that does not see the last commits yet.
	behind bool
	// media is the media type, if the answer is not a record.
	media string
	// or is set if the answer may also be a request for another API.
	or bool
}

// method returns the method of the pattern, path its path.
func (r *route) method() string { return strings.Fields(r.pattern)[0] }

func (r *route) path() string { return strings.Fields(r.pattern)[1] }

const (
	// maxBody is the maximum size of a JSON body. maxUpload is that of a body that is read while it arrives.
	maxBody   = 16 << 20
	maxUpload = 4 << 30
)

func (r *route) bodySize() int64 {
	switch {
	case r.upload:
		return maxUpload
	case r.needs.writes && r.method() != http.MethodDelete:
		return maxBody
	}
	return 0
}

// call is a request in progress.
type call struct {
	a      *API
	route  *route
	w      http.ResponseWriter
	r      *http.Request
	caller *access.Caller
	within
	// body is the JSON body, once it was read.
	body []byte
	// tag is prepended to the hash in the ETag of the answer.
	tag string
}
