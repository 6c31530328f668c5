package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schema returns a schema of the document, or any other part of it.
func schema(at string) (*jsonschema.Schema, error) {
	compiled.Lock()
	defer compiled.Unlock()
	if compiled.compiler == nil {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(document(New(fixtureOptions()).routes)))
		if err != nil {
			return nil, err
		}
		compiled.compiler = jsonschema.NewCompiler()
		if err := compiled.compiler.AddResource("api.json", document); err != nil {
			return nil, err
		}
	}
	return compiled.compiler.Compile("api.json" + at)
}

var compiled struct {
	sync.Mutex
	compiler *jsonschema.Compiler
}

// harness is the API of a store, called without a network by several callers.
type harness struct {
	testing.TB
	store   *lineage.Store
	api     *API
	mux     *http.ServeMux
	callers map[string]*access.Caller
}

func always(time.Time) bool { return true }

// open returns the API of a store in memory.
func open(t testing.TB, change ...func(*Options)) *harness {
	return openOf(t, lineagetest.New(t, lineage.Options{}), change...)
}

func openOf(t testing.TB, store *lineage.Store, change ...func(*Options)) *harness {
	o := Options{Store: store}
	for _, change := range change {
		change(&o)
	}
	h := &harness{TB: t, store: store, api: New(o), mux: http.NewServeMux(), callers: map[string]*access.Caller{
		"":      {ID: "local", Writes: true, Valid: always},
		"ada":   {ID: "t-ada", Writes: true, Scope: access.Scope{Users: []string{"ada"}}, Valid: always},
		"bob":   {ID: "t-bob", Writes: true, Scope: access.Scope{Users: []string{"bob"}}, Valid: always},
		"proj":  {ID: "t-proj", Writes: true, Scope: access.Scope{Projects: []string{"/projects/a"}}, Valid: always},
		"reads": {ID: "t-reads", Valid: always},
		"other": {ID: "t-other", Writes: true, Valid: always},
	}}
	for _, r := range h.api.Routes() {
		h.mux.Handle(r.Pattern, r.Handler)
	}
	return h
}

// answer is what was answered.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
	t      testing.TB
}

// do makes a request. Headers are "Name: value"; "Caller: ada" says who asks.
func (h *harness) do(method, path string, body any, headers ...string) *answer {
	h.Helper()
	var in io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(body)
	default:
		b, err := json.Marshal(body)
		require.NoError(h, err)
		in = bytes.NewReader(b)
	}
	r := httptest.NewRequestWithContext(h.Context(), method, path, in)
	who := ""
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Caller" {
			who = value
			continue
		}
		r.Header.Add(name, value)
	}
	require.NotNil(h, h.callers[who])
	r = r.WithContext(access.With(r.Context(), h.callers[who]))
	w := httptest.NewRecorder()
	_, pattern := h.mux.Handler(r)
	h.mux.ServeHTTP(w, r)
	a := &answer{w.Code, w.Result().Header, w.Body.Bytes(), h}
	h.validate(pattern, a)
	return a
}

// validate compares an answer with the document, by a validator that knows nothing of this package.
func (h *harness) validate(pattern string, a *answer) {
	h.Helper()
	method, path, found := strings.Cut(pattern, " ")
	if !found || a.Status == http.StatusNotModified {
		return
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	kind := strings.Split(a.Header.Get("Content-Type"), ";")[0]
	at := "#/paths/" + escape.Replace(path) + "/" + strings.ToLower(method) + "/responses/"
	if a.Status >= 400 {
		at += "default"
		require.Equal(h, "application/problem+json", kind, "%s %d", pattern, a.Status)
	} else {
		at += strconv.Itoa(a.Status)
	}
	body := a.Body
	if a.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		require.NoError(h, err)
		body, err = io.ReadAll(z)
		require.NoError(h, err)
	}
	if len(body) == 0 {
		_, err := schema(at)
		require.NoError(h, err, "the status is not in the document: %s %d", pattern, a.Status)
		return
	}
	if !strings.HasSuffix(kind, "json") {
		return
	}
	media := at + "/content/" + escape.Replace(kind)
	_, err := schema(media)
	require.NoError(h, err, "%s %d", pattern, a.Status)
	of, err := schema(media + "/schema")
	if err != nil { // of any JSON
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	require.NoError(h, err)
	require.NoError(h, of.Validate(value), "%s %d: %s", pattern, a.Status, body)
}

// is checks the status and reads the body.
func (a *answer) is(status int) map[string]any {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, "%s", a.Body)
	if len(a.Body) == 0 {
		return nil
	}
	var got map[string]any
	require.NoError(a.t, json.Unmarshal(a.Body, &got), "%s", a.Body)
	return got
}

// items returns the items of a list.
func (a *answer) items() (all []map[string]any) {
	a.t.Helper()
	for _, one := range a.is(200)["items"].([]any) {
		all = append(all, one.(map[string]any))
	}
	return all
}
