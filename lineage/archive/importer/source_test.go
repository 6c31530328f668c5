package importer_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/backend"
)

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func zstdCompressed(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll(b, nil)
}

type file struct {
	name string
	body []byte
}

func zipped(t require.TestingT, files ...file) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		m, err := w.Create(f.name)
		require.NoError(t, err)
		_, err = m.Write(f.body)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func chatGPTExport(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(fixture("chatgpt-export-studio/conversations.json"))
	require.NoError(t, err)
	return b
}

// The compression of an archive, and whether it is a file or a stream, makes no difference.
func TestWrappings(t *testing.T) {
	ctx := context.Background()
	plain := chatGPTExport(t)
	want := storetest.New(t)
	_, err := importer.Import(ctx, want, archive.Stream("", bytes.NewReader(plain)), importer.Options{})
	require.NoError(t, err)
	for name, b := range map[string][]byte{
		"plain":              plain,
		"gzip":               gzipped(t, plain),
		"zstd":               zstdCompressed(t, plain),
		"zip":                zipped(t, file{"conversations.json", plain}, file{"chat.html", []byte("<html>")}, file{"user.json", []byte("{}")}),
		"gzip in zip":        zipped(t, file{"a/b/conversations.json.gz", gzipped(t, plain)}),
		"zip in zip":         zipped(t, file{"inner.bin", zipped(t, file{"conversations.json", plain})}),
		"zip in gzip":        gzipped(t, zipped(t, file{"conversations.json", plain})),
		"byte order mark":    append([]byte("\xef\xbb\xbf"), plain...),
		"zip that is opaque": zipped(t, file{"data", plain}),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "archive")
			require.NoError(t, os.WriteFile(path, b, 0o600))
			for kind, src := range map[string]archive.Source{
				"file": archive.Path(path), "folder": archive.Path(filepath.Dir(path)), "stream": archive.Stream("-", bytes.NewReader(b)),
			} {
				s := storetest.New(t)
				report, err := importer.Import(ctx, s, src, importer.Options{})
				require.NoError(t, err, kind)
				require.Empty(t, report.Skipped)
				require.EqualValues(t, 2, report.Conversations, kind)
				require.Equal(t, stored(t, want), stored(t, s))
			}
		})
	}
}

func TestUnknownFormats(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	for _, b := range [][]byte{[]byte("hello"), []byte("{}"), []byte(`[1,2]`), {0, 1, 2}, []byte(`{"a":{"b":1}}`)} {
		_, err := importer.Import(ctx, s, archive.Stream("x", bytes.NewReader(b)), importer.Options{})
		require.ErrorIs(t, err, archive.ErrUnknownFormat, "%q", b)
	}
	_, err := importer.Import(ctx, s, archive.Stream("x", strings.NewReader("")), importer.Options{})
	require.ErrorIs(t, err, archive.ErrNothingFound)
	_, err = importer.Import(ctx, s, archive.Path(t.TempDir()), importer.Options{})
	require.ErrorIs(t, err, archive.ErrNothingFound)
	_, err = importer.Import(ctx, s, archive.Path(filepath.Join(t.TempDir(), "none")), importer.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = importer.Import(ctx, s, archive.Stream("x", strings.NewReader("{}")), importer.Options{Format: "nosuch"})
	require.ErrorIs(t, err, archive.ErrUnknownFormat)
	head, err := s.View().Head(ctx)
	require.NoError(t, err)
	require.Zero(t, head)
}

func TestLinksAreRefused(t *testing.T) {
	ctx := context.Background()
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "conversations.json"), chatGPTExport(t), 0o600))
	dir := t.TempDir()
	for _, link := range []struct{ to, name string }{{outside, "folder"}, {filepath.Join(outside, "conversations.json"), "file"}, {".", "loop"}} {
		if err := os.Symlink(link.to, filepath.Join(dir, link.name)); err != nil {
			require.Equal(t, "windows", runtime.GOOS)
			return
		}
	}
	s := storetest.New(t)
	report, err := importer.Import(ctx, s, archive.Path(dir), importer.Options{})
	require.NoError(t, err)
	require.Zero(t, report.Conversations)
	require.EqualValues(t, 3, report.SkippedCount)
	for _, d := range report.Skipped {
		require.ErrorIs(t, d, archive.ErrRefused)
	}
}

func TestZipNamesThatLeaveAreRefused(t *testing.T) {
	ctx := context.Background()
	plain := chatGPTExport(t)
	for _, name := range []string{"../conversations.json", "/conversations.json", "a/../../conversations.json", "a//b.json", "./c.json"} {
		s := storetest.New(t)
		report, err := importer.Import(ctx, s, archive.Stream("z", bytes.NewReader(zipped(t, file{name, plain}, file{"ok.json", plain}))), importer.Options{})
		require.NoError(t, err, name)
		require.EqualValues(t, 2, report.Conversations)
		require.Len(t, report.Skipped, 1)
		require.ErrorIs(t, report.Skipped[0], archive.ErrRefused)
		require.Contains(t, report.Skipped[0].Error(), name)
	}
}

func TestZipLinksAndDoublesAreRefused(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	h := &zip.FileHeader{Name: "link"}
	h.SetMode(os.ModeSymlink | 0o777)
	m, err := w.CreateHeader(h)
	require.NoError(t, err)
	_, err = m.Write([]byte("/etc/passwd"))
	require.NoError(t, err)
	for range 2 {
		m, err := w.Create("conversations.json")
		require.NoError(t, err)
		_, err = m.Write(chatGPTExport(t))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	report, err := importer.Import(context.Background(), storetest.New(t), archive.Stream("z", bytes.NewReader(out.Bytes())), importer.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 2, report.Conversations)
	require.Len(t, report.Skipped, 2)
	for _, d := range report.Skipped {
		require.ErrorIs(t, d, archive.ErrRefused)
	}
}

func TestDepthOfArchives(t *testing.T) {
	b := chatGPTExport(t)
	for depth := range 6 {
		report, err := importer.Import(context.Background(), storetest.New(t), archive.Stream("z", bytes.NewReader(b)), importer.Options{})
		require.NoError(t, err)
		if depth <= 3 {
			require.EqualValues(t, 2, report.Conversations, "%d archives", depth)
		} else {
			require.Zero(t, report.Conversations)
			require.Len(t, report.Skipped, 1)
			require.ErrorIs(t, report.Skipped[0], archive.ErrTooDeep)
		}
		if depth%2 == 0 {
			b = zipped(t, file{"inner", b})
		} else {
			b = gzipped(t, b)
		}
	}
}

// endless is a conversation that never ends.
type endless struct{ begun bool }

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	if !e.begun {
		e.begun = true
		n = copy(p, `[{"mapping":{"a":{"message":{"content":{"parts":["`)
	}
	for i := n; i < len(p); i++ {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestBombs(t *testing.T) {
	ctx := context.Background()
	limits := archive.Limits{Item: 1 << 20, Total: 64 << 20, Ratio: 100, RatioFrom: 4 << 20}
	var bomb []byte
	{
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := io.CopyN(w, &endless{}, 16<<20)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		bomb = out.Bytes()
	}
	var inner []byte
	{
		var out bytes.Buffer
		r, err := gzip.NewReader(bytes.NewReader(bomb))
		require.NoError(t, err)
		_, err = io.Copy(&out, r)
		require.NoError(t, err)
		inner = out.Bytes()
	}
	for name, b := range map[string][]byte{
		"gzip": bomb, "zstd": zstdCompressed(t, inner), "zip": zipped(t, file{"conversations.json", inner}),
		"zip of gzip": zipped(t, file{"conversations.json.gz", bomb}), "many": zipped(t, file{"1.json", inner[:3<<20]}, file{"2.json", inner[:3<<20]}, file{"3.json", inner[:3<<20]}),
	} {
		t.Run(name, func(t *testing.T) {
			report, err := importer.Import(ctx, storetest.New(t), archive.Stream("z", bytes.NewReader(b)), importer.Options{Limits: limits})
			require.NoError(t, err)
			require.Zero(t, report.Conversations)
			require.NotZero(t, report.SkippedCount)
			refused := false
			for _, d := range report.Skipped {
				refused = refused || errors.Is(d, archive.ErrRefused)
			}
			require.True(t, refused, "%v", report.Skipped)
		})
	}
	t.Run("without end", func(t *testing.T) {
		// Uncompressed: memory is limited by the size of an item, and the whole input is skipped.
		report, err := importer.Import(ctx, storetest.New(t), archive.Stream("z", io.LimitReader(&endless{}, 32<<20)), importer.Options{Limits: limits})
		require.NoError(t, err)
		require.Len(t, report.Skipped, 1)
	})
	t.Run("total", func(t *testing.T) {
		limits := archive.Limits{Item: 1 << 20, Total: 2 << 20, Ratio: 1 << 40}
		report, err := importer.Import(ctx, storetest.New(t), archive.Stream("z", bytes.NewReader(bomb)), importer.Options{Limits: limits})
		require.NoError(t, err)
		require.ErrorIs(t, report.Skipped[0], archive.ErrTooLarge)
	})
	t.Run("files", func(t *testing.T) {
		var files []file
		for i := range 20 {
			files = append(files, file{fmt.Sprintf("%d.json", i), []byte("{}")})
		}
		report, err := importer.Import(ctx, storetest.New(t), archive.Stream("z", bytes.NewReader(zipped(t, files...))), importer.Options{Limits: archive.Limits{Files: 10}})
		require.NoError(t, err)
		require.ErrorIs(t, report.Skipped[0], archive.ErrTooLarge)
	})
}

// A conversation that is too large is skipped and reported with its position; the others are
// imported.
func TestLargeItemsAreSkipped(t *testing.T) {
	ctx := context.Background()
	conversation := func(id string, size int) string {
		return fmt.Sprintf(`{"conversation_id":%q,"mapping":{"m":{"id":"m","parent":null,"message":{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":[%q]}}}}}`, id, strings.Repeat("x", size))
	}
	text := "[" + conversation("a", 10) + ",\n" + conversation("b", 100_000) + "," + conversation("c", 10) + "]"
	s := storetest.New(t)
	report, err := importer.Import(ctx, s, archive.Stream("f", strings.NewReader(text)), importer.Options{Limits: archive.Limits{Item: 10_000}})
	require.NoError(t, err)
	require.EqualValues(t, 2, report.Conversations)
	require.Len(t, report.Skipped, 1)
	require.ErrorIs(t, report.Skipped[0], archive.ErrTooLarge)
	require.EqualValues(t, 2, report.Skipped[0].At.Item)
	require.EqualValues(t, strings.Index(text, `{"conversation_id":"b"`), report.Skipped[0].At.Offset)
	_, err = s.FindThread(ctx, "c")
	require.NoError(t, err)
}

// Damage inside an array affects one item; a truncated array loses the rest.
func TestDamagedItems(t *testing.T) {
	ctx := context.Background()
	good := func(id string) string {
		return fmt.Sprintf(`{"conversation_id":%q,"mapping":{"m":{"id":"m","parent":null,"message":{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]}}}}}`, id)
	}
	for name, c := range map[string]struct {
		text          string
		conversations int64
		err           error
	}{
		"bad literal":    {"[" + good("a") + `,{"mapping":{"m":nul}},` + good("b") + "]", 2, archive.ErrMalformed},
		"not an object":  {"[" + good("a") + `,17,` + good("b") + "]", 2, archive.ErrMalformed},
		"bad escape":     {"[" + good("a") + `,{"mapping":{"m":"\q"}},` + good("b") + "]", 2, archive.ErrMalformed},
		"missing comma":  {"[" + good("a") + `{"x":1 "y":2}` + good("b") + "]", 2, archive.ErrMalformed},
		"breaks off":     {"[" + good("a") + "," + good("b")[:40], 1, archive.ErrMalformed},
		"no end":         {"[" + good("a") + "," + good("b"), 2, archive.ErrMalformed},
		"closed twice":   {"[" + good("a") + "]]" + good("b"), 1, archive.ErrMalformed},
		"string no end":  {"[" + good("a") + `,{"a":"` + good("b") + "]", 1, archive.ErrMalformed},
		"nested deeply":  {"[" + good("a") + `,{"mapping":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}," + good("b") + "]", 2, archive.ErrTooDeep},
		"millions deep":  {"[" + good("a") + "," + strings.Repeat("[", 3_000_000), 1, archive.ErrMalformed},
		"huge number":    {"[" + good("a") + `,{"mapping":` + strings.Repeat("9", 100_000) + "}," + good("b") + "]", 2, archive.ErrMalformed},
		"control letter": {"[" + good("a") + ",{\"mapping\":{\"\x01\":1}}," + good("b") + "]", 2, archive.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			report, err := importer.Import(ctx, s, archive.Stream("f", strings.NewReader(c.text)), importer.Options{Format: "chatgpt"})
			require.NoError(t, err)
			require.Equal(t, c.conversations, report.Conversations)
			require.Len(t, report.Skipped, 1, "%v", report.Skipped)
			require.ErrorIs(t, report.Skipped[0], c.err)
			require.NotZero(t, report.Skipped[0].At.Item)
		})
	}
}

// Text that is not Unicode is kept byte for byte; names are repaired.
func TestInvalidText(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	text := "[{\"conversation_id\":\"a\",\"title\":\"t\xff\",\"x\xff\":\"y\xfe\",\"mapping\":{\"m\":{\"id\":\"m\",\"parent\":null,\"message\":{\"id\":\"m\",\"author\":{\"role\":\"user\"},\"content\":{\"content_type\":\"text\",\"parts\":[\"hi\xff\xfe\"]}}}}}]"
	report, err := importer.Import(ctx, s, archive.Stream("f", strings.NewReader(text)), importer.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Skipped)
	require.Equal(t, "hi\uFFFD\uFFFD", found(t, s, "a", "m").Excerpt())
	require.Contains(t, string(found(t, s, "a", "m").Body), "[\"hi\xff\xfe\"]")
	thread, err := s.FindThread(ctx, "a")
	require.NoError(t, err)
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "t\uFFFD", info.Title)
	require.Contains(t, string(info.Metadata), "\"x\uFFFD\":\"y\uFFFD\"")
}

func TestImportIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := storetest.New(t)
	reader, writer := io.Pipe()
	go func() {
		fmt.Fprint(writer, "[")
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(writer, `{"conversation_id":"c%d","mapping":{"m":{"id":"m","parent":null,"message":{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["hi %d"]}}}}},`, i, i); err != nil {
				return
			}
			if i == 5000 {
				cancel()
			}
		}
	}()
	_, err := importer.Import(ctx, s, archive.Stream("endless", reader), importer.Options{})
	require.ErrorIs(t, err, context.Canceled)
	reader.Close()
	requireSound(t, s)
}

// waiting is a pipe that delivers some text and then blocks, and reports that it does.
type waiting struct {
	io.Reader
	idle func()
}

func (w *waiting) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	w.idle()
	select {}
}

// When the context ends, reading stops, even if it is blocked on a pipe.
func TestWaitingEndsWithTheContext(t *testing.T) {
	line := `{"messages":[{"role":"user","content":"hi"}]}` + "\n"
	whole := zipped(t, file{"a.jsonl", []byte(line)})
	errEnough := errors.New("enough")
	for name, text := range map[string]string{
		"nothing": "", "a beginning": "[", "a line": line, "lines": strings.Repeat(line, 2_000), "half a zip": string(whole[:len(whole)/2]),
		"gzip": string(gzipped(t, []byte(line))[:12]), "zstd": string(zstdCompressed(t, []byte(line))[:8]),
	} {
		for _, format := range []string{"", "openai"} {
			t.Run(name+format, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(context.Background())
				src := archive.Stream("", &waiting{strings.NewReader(text), func() { cancel(errEnough) }})
				report, err := importer.Import(ctx, storetest.New(t), src, importer.Options{Format: format})
				require.ErrorIs(t, err, errEnough)
				require.Empty(t, report.Skipped, "what was not brought is not damaged")
			})
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	var last error
	for _, err := range archive.Read(ctx, archive.Stream("", &waiting{strings.NewReader(line), func() { cancel(errEnough) }}), archive.ReadOptions{Formats: formats.All()}) {
		last = err
	}
	require.ErrorIs(t, last, errEnough)
}

func TestProgressAndOptions(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	var last importer.Progress
	report, err := importer.Import(ctx, s, archive.Path(fixture("chatgpt-export-studio/conversations.json")), importer.Options{
		UserID: "ada", Prefix: "work:", Progress: func(p importer.Progress) { last = p },
	})
	require.NoError(t, err)
	require.Equal(t, report.Messages, last.Messages)
	require.EqualValues(t, len(chatGPTExport(t)), last.Read)
	thread, err := s.FindThread(ctx, "work:conv-001")
	require.NoError(t, err)
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "ada", info.UserID)
	for _, id := range []string{"msg-001", "msg-002"} {
		e := found(t, s, "work:conv-001", id)
		require.Empty(t, e.Origin.UserID, "it is that of the thread")
		author, _, err := s.Author(ctx, e)
		require.NoError(t, err)
		require.Equal(t, "ada", author.UserID)
	}
}

// Changes that others made to a thread after an import are not reverted by the next.
func TestImportKeepsChangesOfOthers(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	src := func() archive.Source { return archive.Path(fixture("chatgpt-made/conversations.json")) }
	_, err := importer.Import(ctx, s, src(), importer.Options{})
	require.NoError(t, err)
	thread, err := s.FindThread(ctx, "c-branching")
	require.NoError(t, err)
	require.NoError(t, thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.Title = "my title"; return nil }))
	require.NoError(t, thread.Switch(ctx, "main-v2"))
	main, err := thread.BranchContext(ctx, "main")
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.User("going on"))
	require.NoError(t, err)
	requireImportedAgain(t, s, src())
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "my title", info.Title)
	branches, err := thread.Branches(ctx)
	require.NoError(t, err)
	require.Len(t, branches, 3)
	requireSound(t, s)
}

// A deleted thread is imported again as a whole, with or without a collection in between.
func TestImportAfterDeletion(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	src := archive.Path(fixture("chatgpt-made/conversations.json"))
	_, err := importer.Import(ctx, s, src, importer.Options{})
	require.NoError(t, err)
	want := stored(t, s)
	for _, collect := range []bool{false, true} {
		thread, err := s.FindThread(ctx, "c-branching")
		require.NoError(t, err)
		require.NoError(t, thread.Delete(ctx))
		if collect {
			_, err := s.Collect(ctx, lineage.CollectOptions{})
			require.NoError(t, err)
		}
		report, err := importer.Import(ctx, s, src, importer.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 1, report.NewConversations)
		require.EqualValues(t, 7, report.NewMessages)
		require.Equal(t, want, stored(t, s))
		require.Equal(t, "question", found(t, s, "c-branching", "u1").Excerpt())
		requireImportedAgain(t, s, src)
	}
	requireSound(t, s)
}

// Erased content does not return into an existing thread.
func TestImportLeavesErasedContentErased(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	src := archive.Path(fixture("chatgpt-made/conversations.json"))
	_, err := importer.Import(ctx, s, src, importer.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Erase(ctx, found(t, s, "c-branching", "u1").Content))
	requireImportedAgain(t, s, src)
	require.True(t, found(t, s, "c-branching", "u1").Erased)
}

// A newer export adds what is new; importing an older one afterwards reverts nothing.
func TestNewerAndOlderExports(t *testing.T) {
	ctx := context.Background()
	export := func(updated int, title, current, more string) archive.Source {
		return archive.Stream("f", strings.NewReader(fmt.Sprintf(`[{"conversation_id":"c","title":%q,"update_time":%d,"current_node":%q,"x":%d,"mapping":{
"u":{"id":"u","parent":null,"message":{"id":"u","author":{"role":"user"},"content":{"content_type":"text","parts":["question"]}}},
"a":{"id":"a","parent":"u","message":{"id":"a","author":{"role":"assistant"},"content":{"content_type":"text","parts":["first"]}}}%s}}]`, title, updated, current, updated, more)))
	}
	const second = `,"b":{"id":"b","parent":"u","message":{"id":"b","author":{"role":"assistant"},"content":{"content_type":"text","parts":["second"]}}}`
	s := storetest.New(t)
	older := func() archive.Source { return export(1700000000, "old", "a", "") }
	newer := func() archive.Source { return export(1700000100, "new", "b", second) }
	report, err := importer.Import(ctx, s, older(), importer.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 2, report.NewMessages)
	report, err = importer.Import(ctx, s, newer(), importer.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 1, report.NewMessages)
	require.Zero(t, report.NewConversations)

	check := func() {
		thread, err := s.FindThread(ctx, "c")
		require.NoError(t, err)
		info, err := thread.Info(ctx)
		require.NoError(t, err)
		require.Equal(t, "new", info.Title)
		require.Contains(t, string(info.Metadata), `"x":1700000100`)
		branch, err := thread.Branch(ctx, "")
		require.NoError(t, err)
		require.Equal(t, "main-v2", branch.Name)
		last, err := s.Span(ctx, branch.Head)
		require.NoError(t, err)
		require.Equal(t, "second", last[0].Excerpt())
	}
	check()
	requireImportedAgain(t, s, older())
	requireImportedAgain(t, s, newer())
	check()

	// Without times, older exports are still recognised.
	requireNothing := func(src archive.Source) {
		_, err := importer.Import(ctx, s, src, importer.Options{})
		require.NoError(t, err)
	}
	requireNothing(export(0, "third", "a", second))
	requireImportedAgain(t, s, export(0, "third", "a", second))
	requireImportedAgain(t, s, newer())
}

// Concurrent imports of different threads into a store do not affect each other.
func TestImportsSideBySide(t *testing.T) {
	s := storetest.New(t)
	const imports = 4
	errs := make(chan error, imports)
	for i := range imports {
		go func() {
			_, err := importer.Import(context.Background(), s, archive.Path(fixture("claude-code-made")), importer.Options{Prefix: fmt.Sprintf("%d:", i)})
			errs <- err
		}()
	}
	for range imports {
		require.NoError(t, <-errs)
	}
	requireSound(t, s)
	for i := range imports {
		head, err := s.View().Head(context.Background())
		require.NoError(t, err)
		_, err = importer.Import(context.Background(), s, archive.Path(fixture("claude-code-made")), importer.Options{Prefix: fmt.Sprintf("%d:", i)})
		require.NoError(t, err)
		now, err := s.View().Head(context.Background())
		require.NoError(t, err)
		require.Equal(t, head, now)
	}
}

// TestUserOfTheArchive imports an archive that names a user with another Options.UserID: the
// archive's user wins.
func TestUserOfTheArchive(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	importText(t, s, "", `[{"uuid":"c","name":"n","account":{"uuid":"acc-1"},"chat_messages":[{"uuid":"m","sender":"human","text":"hi","created_at":"2025-01-01T00:00:00Z"}]}]`,
		importer.Options{UserID: "ada"})
	author, _, err := s.Author(ctx, found(t, s, "c", "m"))
	require.NoError(t, err)
	require.Equal(t, "acc-1", author.UserID)
}

// A conversation whose id is longer than a source id can be is imported under a part of it. A prefix that would make source
// ids too long is refused.
func TestLongIDsOfConversations(t *testing.T) {
	s, long := storetest.New(t), strings.Repeat("x", 2*backend.MaxSourceID)
	conversation := func(id string) string {
		return `{"title":"t","create_time":1,"id":"` + id + `","mapping":{"a":{"id":"a","message":{"id":"a","author":{"role":"user"},"content":{"content_type":"text","parts":["hello"]}},"parent":null,"children":[]}},"current_node":"a"}`
	}
	text := "[" + conversation(long+"1") + "," + conversation("short") + "," + conversation(long+"2") + "]"
	for _, want := range []int64{3, 0} {
		report := importText(t, s, "c.json", text, importer.Options{Prefix: strings.Repeat("p", 1024)})
		require.Empty(t, report.Skipped)
		require.Equal(t, want, report.NewConversations)
	}
	_, err := importer.Import(t.Context(), s, archive.Stream("c.json", strings.NewReader(text)), importer.Options{Prefix: strings.Repeat("p", 1025)})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	require.ErrorContains(t, err, "at most 1024")
}

// Conversations of two users whose ids are the same are not mixed: the second is reported, or imported with a prefix. The
// conversation itself can be imported again for another user.
func TestConversationsOfTwoUsersWithOneID(t *testing.T) {
	s := storetest.New(t)
	conversation := func(first, second string) string {
		message := func(id, parent string) string {
			return `"` + id + `":{"id":"` + id + `","message":{"id":"` + id + `","author":{"role":"user"},"content":{"content_type":"text","parts":["` + id + `"]}},"parent":` + parent + `,"children":[]}`
		}
		return `[{"title":"t","create_time":1,"id":"1","mapping":{` + message(first, "null") + "," + message(second, `"`+first+`"`) + `},"current_node":"` + second + `"}]`
	}
	load := func(text string, o importer.Options) importer.Report {
		report, err := importer.Import(t.Context(), s, archive.Stream("c.json", strings.NewReader(text)), o)
		require.NoError(t, err)
		return report
	}
	require.EqualValues(t, 2, load(conversation("a", "b"), importer.Options{UserID: "ada"}).NewMessages)
	report := load(conversation("x", "y"), importer.Options{UserID: "bob"})
	require.Zero(t, report.NewMessages)
	require.Len(t, report.Skipped, 1)
	require.ErrorIs(t, report.Skipped[0], lineage.ErrOtherUser)
	require.ErrorContains(t, report.Skipped[0], "conversation 1")
	require.EqualValues(t, 2, load(conversation("x", "y"), importer.Options{UserID: "bob", Prefix: "bob/"}).NewMessages)
	thread, err := s.FindThread(t.Context(), "1")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a b"}, idsOf(t, thread))

	for text, want := range map[string]int64{conversation("a", "b"): 0, conversation("a", "c"): 1} {
		report := load(text, importer.Options{UserID: "bob"})
		require.Empty(t, report.Skipped)
		require.Equal(t, want, report.NewMessages)
	}
	require.EqualValues(t, 2, load(conversation("x", "y"), importer.Options{}).NewMessages, "of a user who is not known")
}
