package server

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/attachment"
)

func pictures(t *testing.T) map[string][]byte {
	pixels := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{color.Black, color.White})
	var p, j, g bytes.Buffer
	require.NoError(t, png.Encode(&p, pixels))
	require.NoError(t, jpeg.Encode(&j, pixels, nil))
	require.NoError(t, gif.Encode(&g, pixels, nil))
	return map[string][]byte{"image/png": p.Bytes(), "image/jpeg": j.Bytes(), "image/gif": g.Bytes()}
}

// TestContent sends what could be a document, or pretends to be a picture, as something to save.
func TestContent(t *testing.T) {
	h := open(t)
	bearer := h.token(access.Token{})
	put := func(body string, kind string) string {
		block, _, err := h.store.Put(t.Context(), strings.NewReader(body), lineage.BlockOptions{Type: kind})
		require.NoError(t, err)
		return "/content/" + block.ID.String()
	}
	all := pictures(t)
	hostile := map[string]string{
		"markup":            "<script>alert(1)</script>",
		"svg":               `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`,
		"pdf":               "%PDF-1.7",
		"half a picture":    string(all["image/png"][:40]),
		"a header alone":    string(all["image/png"][:33]),
		"a bomb":            bomb(t),
		"markup in pixels":  "\x89PNG\r\n\x1a\n<html><script>alert(1)</script>",
		"markup, then more": "<html>" + string(all["image/gif"]),
	}
	for name, body := range hostile {
		got := h.get(put(body, "text/html"), bearer)
		require.Equal(t, 200, got.status, name)
		require.Equal(t, body, got.body, name)
		require.Equal(t, "application/octet-stream", got.header.Get("Content-Type"), name)
		require.True(t, strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment"), name)
		require.Equal(t, attachment.Policy, got.header.Get("Content-Security-Policy"), name)
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"), name)
		require.Equal(t, "same-origin", got.header.Get("Cross-Origin-Resource-Policy"), name)
	}
	for kind, body := range all {
		got := h.get(put(string(body), "text/html"), bearer)
		require.Equal(t, kind, got.header.Get("Content-Type"))
		require.True(t, strings.HasPrefix(got.header.Get("Content-Disposition"), "inline"))
		require.Equal(t, attachment.Policy, got.header.Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
	}

	path := put(strings.Repeat("large ", 100_000), "text/plain")
	part := h.get(path, bearer, "Range: bytes=6-10")
	require.Equal(t, http.StatusPartialContent, part.status)
	require.Equal(t, "large", part.body)
	require.Equal(t, http.StatusNotModified, h.get(path, bearer, "If-None-Match: "+part.header.Get("ETag")).status)
	beyond := h.get(path, bearer, "Range: bytes=700000-")
	require.Equal(t, http.StatusRequestedRangeNotSatisfiable, beyond.status)
	require.Equal(t, "bytes */600000", beyond.header.Get("Content-Range"))
	require.Equal(t, "application/problem+json", beyond.header.Get("Content-Type"))
	require.Empty(t, beyond.header.Get("Content-Disposition"))
	require.JSONEq(t, `{"type":"urn:lineage:problem:no-such-range","title":"no such range","status":416,"detail":"Content-Range has the size"}`, beyond.body)
	require.Equal(t, http.StatusOK, h.get(path, bearer, "Range: lines=1-2").status)
	other := h.get(path, bearer, `If-Match: "another"`)
	require.Equal(t, http.StatusPreconditionFailed, other.status)
	require.JSONEq(t, `{"type":"urn:lineage:problem:other-content","title":"other content","status":412,"detail":"the content is not that of If-Match"}`, other.body)
	require.Equal(t, http.StatusNotFound, h.get("/content/"+strings.Repeat("0", 64), bearer).status)
	for _, id := range []string{"x", strings.Repeat("0", 63), strings.Repeat("g", 64), "..%2f..%2fetc"} {
		require.Equal(t, http.StatusBadRequest, h.get("/content/"+id, bearer).status, id)
	}
	id, err := content.ParseID(strings.TrimPrefix(path, "/content/"))
	require.NoError(t, err)
	require.NoError(t, h.store.Erase(t.Context(), id))
	require.Equal(t, http.StatusGone, h.get(path, bearer, "If-None-Match: "+part.header.Get("ETag")).status)
}

// bomb returns a small file that states a picture of 65,000 by 65,000 pixels.
func bomb(t *testing.T) string {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))))
	config := b.Bytes()
	copy(config[16:], []byte{0, 0, 0xfd, 0xe8, 0, 0, 0xfd, 0xe8})
	return string(config)
}

// A token for some threads reads content of these only, and of what they share with others.
func TestContentOfThreads(t *testing.T) {
	h := open(t)
	thread(t, h.store, lineage.ThreadOptions{UserID: "ada", Metadata: []byte(`{"cwd":"/src/a"}`)}, "of ada", "of both")
	bob, bobs := thread(t, h.store, lineage.ThreadOptions{UserID: "bob", Metadata: []byte(`{"cwd":["/src/a"]}`)}, "of bob", "of both")
	ada := h.token(access.Token{Scope: access.Scope{Users: []string{"ada"}}})
	project := h.token(access.Token{Scope: access.Scope{Projects: []string{"/src/a"}}})
	neither := h.token(access.Token{Scope: access.Scope{Users: []string{"bob"}, Projects: []string{"/src/a"}}})
	status := func(text, bearer string) int {
		return h.get("/content/"+content.Sum([]byte(text)).String(), bearer).status
	}
	for _, bearer := range []string{ada, project} {
		require.Equal(t, 200, status("of ada", bearer))
		require.Equal(t, 200, status("of both", bearer))
		require.Equal(t, http.StatusNotFound, status("of bob", bearer))
	}
	require.Equal(t, http.StatusNotFound, status("of both", neither))
	require.Equal(t, 200, status("of bob", h.token(access.Token{})))

	// A fork in another thread shares a message of one that the caller may not read. It is read as a message of the fork.
	carol := h.token(access.Token{Scope: access.Scope{Users: []string{"carol"}}})
	fork, err := h.store.CreateThread(t.Context(), lineage.ThreadOptions{UserID: "carol"})
	require.NoError(t, err)
	span, err := bobs.Tip(t.Context())
	require.NoError(t, err)
	first, err := h.store.At(t.Context(), span, 1)
	require.NoError(t, err)
	_, err = fork.CreateBranch(t.Context(), "of bob", lineage.BranchOptions{From: bobs, At: first})
	require.NoError(t, err)
	of := func(text, thread, bearer string) int {
		return h.get("/content/"+content.Sum([]byte(text)).String()+"?thread="+thread, bearer).status
	}
	require.Equal(t, http.StatusNotFound, status("of bob", carol))
	require.Equal(t, 200, of("of bob", fork.ID().String(), carol))
	require.Equal(t, http.StatusNotFound, of("of both", fork.ID().String(), carol), "it comes later")
	require.Equal(t, http.StatusNotFound, of("of bob", bob.ID().String(), carol))
	require.Equal(t, http.StatusNotFound, of("of bob", fork.ID().String(), ada), "of another user's fork")
	require.Equal(t, http.StatusBadRequest, of("of bob", "x", carol))
}
