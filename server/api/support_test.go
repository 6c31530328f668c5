package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	h.mux.ServeHTTP(w, r)
	return &answer{w.Code, w.Result().Header, w.Body.Bytes(), h}
}

// is checks the status and reads the body.
func (a *answer) is(status int) map[string]any {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, "%s", a.Body)
	if len(a.Body) == 0 {
		return nil
	}
	var is map[string]any
	require.NoError(a.t, json.Unmarshal(a.Body, &is), "%s", a.Body)
	return is
}

// items returns the items of a list.
func (a *answer) items() (all []map[string]any) {
	a.t.Helper()
	for _, one := range a.is(200)["items"].([]any) {
		all = append(all, one.(map[string]any))
	}
	return all
}
