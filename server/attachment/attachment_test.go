//test:race

package attachment

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"": "content", "a.txt": "a.txt", "../../etc/passwd": "passwd", `C:\x\y.exe`: "y.exe", ".bashrc": "bashrc", "-rf": "rf",
		"a\r\nSet-Cookie: x": "a__Set-Cookie_ x", "a\"b;c": "a_b_c", "\u202egnp.exe": "_gnp.exe", "..": "content", "/": "content",
		strings.Repeat("x", 300) + ".png": strings.Repeat("x", maxName-4) + ".png",
	} {
		require.Equal(t, want, fileName(name), "%q", name)
	}
}

// TestPictures: one that could be decoded is shown, unless decoding it took too much memory.
func TestPictures(t *testing.T) {
	encode := func(width, height int) []byte {
		var b bytes.Buffer
		require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
		return b.Bytes()
	}
	small := encode(100, 100)
	s := NewSender()
	for name, one := range map[string]struct {
		body []byte
		want string
	}{
		"whole":      {small, "inline"},
		"cut off":    {small[:len(small)-20], "attachment"},
		"large":      {encode(5000, 5034), "attachment"},
		"not so":     {encode(500, 500), "inline"},
		"header":     {small[:33], "attachment"},
		"no picture": {[]byte("<svg/>"), "attachment"},
		"long":       {append(bytes.Clone(small), make([]byte, maxImage)...), "attachment"},
		"just right": {append(bytes.Clone(small), make([]byte, maxImage-len(small))...), "inline"},
	} {
		w := httptest.NewRecorder()
		require.NoError(t, s.Send(w, httptest.NewRequest("HEAD", "/", nil), File{Body: bytes.NewReader(one.body)}))
		disposition, _, err := mime.ParseMediaType(w.Header().Get("Content-Disposition"))
		require.NoError(t, err)
		require.Equal(t, one.want, disposition, name)
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, Policy, w.Header().Get("Content-Security-Policy"))
	}
}

// counted counts the bytes that are read.
type counted struct {
	io.ReadSeeker
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadSeeker.Read(b)
	c.n += n
	return n, err
}

// TestDecodedOnce: a picture that is known is not read for an answer without it, and only in part for a part.
func TestDecodedOnce(t *testing.T) {
	var picture bytes.Buffer
	require.NoError(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 300, 300))))
	s := NewSender()
	send := func(tag string, body []byte, header, value string) (*httptest.ResponseRecorder, int) {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set(header, value)
		c := &counted{ReadSeeker: bytes.NewReader(body)}
		require.NoError(t, s.Send(w, r, File{Tag: tag, Body: c}))
		return w, c.n
	}
	_, n := send("a", picture.Bytes(), "Range", "bytes=0-9")
	require.Greater(t, n, 10)
	w, n := send("a", picture.Bytes(), "Range", "bytes=0-9")
	require.Equal(t, http.StatusPartialContent, w.Code)
	require.Equal(t, "image/png", w.Header().Get("Content-Type"))
	require.Equal(t, 10, n)
	w, n = send("a", picture.Bytes(), "If-None-Match", `"a"`)
	require.Equal(t, http.StatusNotModified, w.Code)
	require.Zero(t, n)
	for range 2 {
		w, _ = send("b", []byte("<svg/>"), "X", "")
		require.Equal(t, "application/octet-stream", w.Header().Get("Content-Type"))
	}
}

// failing fails when it is read.
type failing struct{ io.ReadSeeker }

var errRead = errors.New("damaged")

func (failing) Read([]byte) (int, error) { return 0, errRead }

// What cannot be read is an error before anything is sent, also where a decoder reads it.
func TestDamagedBody(t *testing.T) {
	s := NewSender()
	w := httptest.NewRecorder()
	err := s.Send(w, httptest.NewRequest("GET", "/", nil), File{Body: failing{bytes.NewReader([]byte("x"))}})
	require.ErrorIs(t, err, errRead)
	require.Empty(t, w.Body.Bytes())
}

// FuzzSend sends any bytes: they are a decoded picture, or something to save.
func FuzzSend(f *testing.F) {
	var picture bytes.Buffer
	require.NoError(f, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))))
	f.Add("a.png", picture.Bytes())
	f.Add("a.html", []byte("<script>"))
	f.Add("\r\n", []byte("GIF89a"))
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		s := NewSender()
		w := httptest.NewRecorder()
		require.NoError(t, s.Send(w, httptest.NewRequest("GET", "/", nil), File{Name: name, Body: bytes.NewReader(b)}))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, b, append([]byte{}, w.Body.Bytes()...))
		disposition, parameters, err := mime.ParseMediaType(w.Header().Get("Content-Disposition"))
		require.NoError(t, err)
		require.NotContains(t, parameters["filename"], "/")
		kind := w.Header().Get("Content-Type")
		if disposition == "inline" {
			require.Contains(t, []string{"image/png", "image/jpeg", "image/gif"}, kind)
			_, _, err := image.Decode(bytes.NewReader(b))
			require.NoError(t, err)
			return
		}
		require.Equal(t, "attachment", disposition)
		require.Equal(t, "application/octet-stream", kind)
	})
}
