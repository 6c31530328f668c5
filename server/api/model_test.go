package api

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// modelThread is what a thread must have: the texts and values of its branches.
type modelThread struct {
	branches map[string][]string
	values   map[string]map[string]int
}

// TestModel makes random changes through two servers of one store, each by its route or in a batch, some of them twice with a
// key, and compares every branch with plain lists after each of them.
func TestModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		of := tb{t, r}
		t := r
		store := lineagetest.New(of, lineage.Options{})
		servers := []*harness{openOf(of, store), openOf(of, store)}
		model := make(map[string]*modelThread)
		steps := rapid.IntRange(1, 25).Draw(t, "steps")
		for i := range steps {
			modelStep(t, servers[rapid.IntRange(0, 1).Draw(t, "server")], model, i)
			h := servers[i%2]
			require.Len(t, h.do("GET", "/v1/threads", nil).items(), len(model))
			for id, one := range model {
				compareThread(t, h, id, one)
			}
		}
	})
}

// tb is a rapid.T where a testing.TB is needed.
type tb struct {
	testing.TB
	r *rapid.T
}

func (t tb) Helper()                           { t.r.Helper() }
func (t tb) Cleanup(f func())                  { t.r.Cleanup(f) }
func (t tb) Context() context.Context          { return t.r.Context() }
func (t tb) Errorf(format string, args ...any) { t.r.Errorf(format, args...) }
func (t tb) FailNow()                          { t.r.FailNow() }

func modelStep(t *rapid.T, h *harness, model map[string]*modelThread, i int) {
	ids := slices.Sorted(maps.Keys(model))
	kind := "create"
	if len(ids) > 0 {
		kind = rapid.SampledFrom([]string{"create", "append", "append", "append", "late", "branch", "delete branch", "move", "value", "unset", "copy", "delete"}).Draw(t, "kind")
	}
	if kind == "create" {
		id := fmt.Sprintf("t/%d", i)
		model[id] = &modelThread{branches: map[string][]string{"main": nil}, values: map[string]map[string]int{"main": {}}}
		changeModel(t, h, 201, "POST", "/v1/threads", "create_thread", map[string]any{"id": id}, nil, i)
		return
	}
	id := rapid.SampledFrom(ids).Draw(t, "thread")
	got, thread := model[id], "="+id
	branch := rapid.SampledFrom(slices.Sorted(maps.Keys(got.branches))).Draw(t, "branch")
	texts := got.branches[branch]
	of := map[string]any{"thread": thread, "context": branch}
	path := "/v1/threads/" + url.PathEscape(thread)
	c := path + "/contexts/" + branch
	at := 0
	if len(texts) > 0 {
		at = rapid.IntRange(1, len(texts)).Draw(t, "at")
	}
	switch kind {
	case "append":
		text := fmt.Sprint("text ", i)
		got.branches[branch] = append(slices.Clone(texts), text, text+"b")
		changeModel(t, h, 201, "POST", c+"/messages", "append", map[string]any{"messages": []any{map[string]any{"text": text}, map[string]any{"text": text + "b"}}}, of, i)
	case "late":
		want := 412
		if len(texts) == 0 {
			return
		}
		changeModel(t, h, want, "POST", c+"/messages", "append", map[string]any{"messages": []any{map[string]any{"text": "late"}}, "if_tip": "empty"}, of, i)
	case "branch":
		if at == 0 {
			return
		}
		name := fmt.Sprint("b", i)
		got.branches[name] = texts[:at]
		changeModel(t, h, 201, "POST", path+"/branches", "create_branch", map[string]any{"name": name, "from": fmt.Sprintf("%s:%d", branch, at)}, map[string]any{"thread": thread}, i)
		// What it inherits depends on when values were set: it begins with what it has.
		got.values[name] = make(map[string]int)
		for _, v := range h.do("GET", path+"/contexts/"+name+"/values", nil).items() {
			got.values[name][v["key"].(string)] = int(v["value"].(float64))
		}
	case "delete branch":
		want := 204
		if branch == "main" {
			want = 409
		} else {
			for key := range got.values {
				if key != branch {
					continue
				}
				delete(got.values, branch)
			}
			delete(got.branches, branch)
		}
		changeModel(t, h, want, "DELETE", path+"/branches/"+branch, "delete_branch", nil, map[string]any{"thread": thread, "branch": branch}, i)
		// A branch that was forked from it inherits nothing any more.
		refresh(h, got, path, "")
	case "move":
		to := "empty"
		if at > 0 {
			to = fmt.Sprintf(":%d", at)
		}
		got.branches[branch] = texts[:at]
		changeModel(t, h, 200, "POST", c+"/move", "move", map[string]any{"to": to}, of, i)
	case "value":
		key := rapid.SampledFrom([]string{"a", "b", "c/d"}).Draw(t, "key")
		got.values[branch][key] = i
		h.do("PUT", c+"/values/"+url.PathEscape(key), fmt.Sprint(i)).is(200)
		refresh(h, got, path, branch)
	case "unset":
		key, want := "a", 204
		if _, set := got.values[branch][key]; !set {
			want = 404
		}
		delete(got.values[branch], key)
		changeModel(t, h, want, "DELETE", c+"/values/a", "delete_value", nil, map[string]any{"thread": thread, "context": branch, "key": key}, i)
		refresh(h, got, path, branch)
	case "copy":
		copied := fmt.Sprintf("t/%d", i)
		model[copied] = &modelThread{branches: maps.Clone(got.branches), values: make(map[string]map[string]int)}
		for name, values := range got.values {
			model[copied].values[name] = maps.Clone(values)
		}
		changeModel(t, h, 201, "POST", path+"/copy", "copy_thread", map[string]any{"id": copied}, map[string]any{"thread": thread}, i)
	case "delete":
		delete(model, id)
		changeModel(t, h, 204, "DELETE", path, "delete_thread", nil, map[string]any{"thread": thread}, i)
	}
}

// refresh reads the values of the branches of a thread but one. What the library lets forks inherit is not the subject of the
// model.
func refresh(h *harness, thread *modelThread, path, but string) {
	for name := range thread.branches {
		if name == but {
			continue
		}
		thread.values[name] = make(map[string]int)
		for _, v := range h.do("GET", path+"/contexts/"+name+"/values", nil).items() {
			thread.values[name][v["key"].(string)] = int(v["value"].(float64))
		}
	}
}

// changeModel makes a change by its route or in a batch, perhaps twice with a key.
func changeModel(t *rapid.T, h *harness, want int, method, path, op string, body, of map[string]any, i int) {
	var headers []string
	times := 1
	if rapid.Bool().Draw(t, "key") {
		headers = []string{fmt.Sprintf("Idempotency-Key: %d", i)}
		times = 2
	}
	var sent any = body
	if body == nil {
		sent = nil
	}
	if rapid.Bool().Draw(t, "batch") {
		operation := map[string]any{"op": op}
		maps.Copy(operation, body)
		maps.Copy(operation, of)
		method, path, sent = "POST", "/v1/batch", map[string]any{"operations": []any{operation}}
		if want < 300 {
			want = 200
		}
	} else if body["if_tip"] != nil {
		headers = append(headers, `If-Match: "empty"`)
		rest := maps.Clone(body)
		delete(rest, "if_tip")
		sent = rest
	}
	for range times {
		a := h.do(method, path, sent, headers...)
		require.Equal(t, want, a.Status, "%s %s %v: %s", method, path, sent, a.Body)
	}
}

// compareThread compares the branches of a thread and their values with a model, read by pages.
func compareThread(t *rapid.T, h *harness, id string, thread *modelThread) {
	path := "/v1/threads/" + url.PathEscape("="+id)
	var names []string
	for _, b := range h.do("GET", path+"/branches", nil).items() {
		names = append(names, b["name"].(string))
	}
	require.Equal(t, slices.Sorted(maps.Keys(thread.branches)), names)
	for name, want := range thread.branches {
		var texts []string
		for after := ""; ; {
			page := h.do("GET", path+"/contexts/"+name+"/messages?limit=3&after="+url.QueryEscape(after), nil).is(200)
			for _, m := range page["items"].([]any) {
				texts = append(texts, m.(map[string]any)["text"].(string))
			}
			next, more := page["next"].(string)
			if !more {
				break
			}
			after = next
		}
		require.Equal(t, append([]string(nil), want...), texts, "%s %s", id, name)
		values := make(map[string]int)
		for _, v := range h.do("GET", path+"/contexts/"+name+"/values", nil).items() {
			values[v["key"].(string)] = int(v["value"].(float64))
		}
		require.Equal(t, thread.values[name], values, "%s %s", id, name)
	}
}
