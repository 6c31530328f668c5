package manifest_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/manifest"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

func TestMain(m *testing.M) {
	campaign.Checks(300)
	os.Exit(m.Run())
}

// file is a session file, as lines with their messages.
type file struct {
	session string
	lines   [][]byte
	spans   [][]structure.SpanRef
	of      []*manifest.Message
}

func (f *file) add(line string, m *manifest.Message, spans ...structure.SpanRef) {
	f.lines, f.of, f.spans = append(f.lines, []byte(line)), append(f.of, m), append(f.spans, spans)
}

// blocks returns the manifest of a file, and the lines that are kept whole.
func (f *file) blocks() (blocks [][]byte, whole [][]byte) {
	b := manifest.NewBuilder(f.session)
	for i, line := range f.lines {
		known := rawjson.Valid(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("\ufeff"))) // as readers of lines find out
		if w := b.Add(line, f.spans[i], f.of[i], known); w != nil {
			whole = append(whole, bytes.Clone(w))
		}
		if b.Full() {
			blocks = append(blocks, b.Block())
		}
	}
	return append(blocks, b.Block()), whole
}

// check requires that the file comes back from its blocks.
func (f *file) check(t require.TestingT, blocks, whole [][]byte) {
	var got []byte
	i := 0
	for _, raw := range blocks {
		b, err := manifest.Read(raw)
		require.NoError(t, err)
		for n := range b.Lines() {
			require.Equal(t, f.spans[i+n], append([]structure.SpanRef(nil), b.Spans(n)...), "line %d", i+n)
		}
		at := i
		for line, err := range b.Join(f.session, func(span structure.SpanRef) (*manifest.Message, error) {
			for f.spans[at] == nil || f.spans[at][0] != span {
				at++
			}
			return f.of[at], nil
		}, func() ([]byte, error) {
			first := whole[0]
			whole = whole[1:]
			return first, nil
		}) {
			require.NoError(t, err)
			require.Equal(t, string(f.lines[i]), string(line), "line %d", i)
			got = append(got, line...)
			i++
		}
	}
	require.Len(t, f.lines, i)
	require.Equal(t, string(bytes.Join(f.lines, nil)), string(got))
	require.Empty(t, whole)
}

// session returns a session in the form of an agent.
func session(id string, lines int) *file {
	f := &file{session: id}
	parent := "null"
	run, log := structure.RunID{1}, structure.RunID{2}
	for i := range lines {
		uuid := fmt.Sprintf("10000000-0000-4000-8000-%012x", int64(i)*0x9e3779b1)
		at := time.UnixMilli(1770000000000 + int64(i)*1713).UTC()
		body := fmt.Sprintf(`{"role":"user","content":"line %d says something"}`, i)
		m := &manifest.Message{ID: uuid, Created: at, Body: []byte(body), Metadata: fmt.Appendf(nil, `{"cwd":"/home/ada","toolUseResult":{"stdout":"out %d"},"slug":"a name"}`, i)}
		f.add(fmt.Sprintf("{\"parentUuid\":%s,\"isSidechain\":false,\"cwd\":\"/home/ada\",\"sessionId\":%q,\"type\":\"user\",\"message\":%s,\"uuid\":%q,\"timestamp\":%q,\"toolUseResult\":{\"stdout\":\"out %d\"},\"slug\":\"a name\"}\n",
			parent, id, body, uuid, at.Format("2006-01-02T15:04:05.000Z"), i), m, structure.SpanRef{Run: run, Seq: uint64(i + 1)})
		parent = `"` + uuid + `"`
		if i%4 == 3 {
			rest := fmt.Sprintf(`{"type":"progress","data":{"text":"running %d"}}`, i)
			f.of = append(f.of, &manifest.Message{Body: []byte(rest)})
			f.lines = append(f.lines, fmt.Appendf(nil, `{"type":"progress","sessionId":%q,"data":{"text":"running %d"}}`+"\r\n", id, i))
			f.spans = append(f.spans, []structure.SpanRef{{Run: log, Seq: uint64(i/4 + 1)}})
		}
	}
	return f
}

// A copy with another session id has equal blocks, a line costs little, and nothing that was said is in them.
func TestCopies(t *testing.T) {
	one, another := session("5d1c0a9e-0000-4000-8000-000000000001", 2000), session("5d1c0a9e-0000-4000-8000-000000000002", 2000)
	blocks, whole := one.blocks()
	require.Empty(t, whole)
	copied, _ := another.blocks()
	require.Equal(t, blocks, copied)
	one.check(t, blocks, nil)
	another.check(t, blocks, nil)
	size := len(bytes.Join(blocks, nil))
	t.Logf("%.2f bytes a line", float64(size)/float64(len(one.lines)))
	require.Less(t, size, 2*len(one.lines))
}

// A copy with other ids and times of its lines costs little more than the ids.
func TestCopiesWithOtherIDs(t *testing.T) {
	one := session("5d1c0a9e-0000-4000-8000-000000000001", 2000)
	copied := &file{session: one.session, of: one.of, spans: one.spans}
	random := rand.New(rand.NewPCG(1, 2))
	ids := make(map[string]string)
	anew := func(id []byte) []byte {
		if ids[string(id)] == "" {
			ids[string(id)] = fmt.Sprintf("%08x-%04x-4000-8000-%012x", random.Uint32(), random.Uint32()&0xffff, random.Uint64()>>16)
		}
		return []byte(ids[string(id)])
	}
	for i, line := range one.lines {
		line = regexp.MustCompile(`10000000-[0-9a-f-]{27}`).ReplaceAllFunc(line, anew)
		line = regexp.MustCompile(`"timestamp":"[^"]+"`).ReplaceAllFunc(line, func([]byte) []byte {
			return fmt.Appendf(nil, `"timestamp":%q`, time.UnixMilli(1790000000000+int64(i)*1713+random.Int64N(1000)).UTC().Format("2006-01-02T15:04:05.000Z"))
		})
		copied.lines = append(copied.lines, line)
	}
	blocks, whole := copied.blocks()
	require.Empty(t, whole)
	copied.check(t, blocks, nil)
	size := float64(len(bytes.Join(blocks, nil))) / float64(len(one.lines))
	t.Logf("%.2f bytes a line", size)
	require.Less(t, size, 20.0)
}

func TestWhatIsKeptWhole(t *testing.T) {
	f := &file{session: "s"}
	span := structure.SpanRef{Run: structure.RunID{1}, Seq: 1}
	m := &manifest.Message{ID: "m", Body: []byte(`{"a":"said"}`)}
	for _, kept := range []string{
		`{"message":{"a":"said"},"more":"also said"}`, // not in the message
		`{"a key that says something":1}`,
		`{"message":{"a":"said"}`, // broken
		`"`, `{"`, `[{"a":{"`, `,"`, `"\"`, `{"a`,
		"\x0b", "\xff", "{\"a\":\"\x01\"}", `"text"`, `{"a":1}{}`,
		strings.Repeat(" ", 5<<10), `[` + strings.Repeat("1,", 40<<10) + `1]`,
		`{"type":"` + strings.Repeat("a", 100) + `"}`,
	} {
		f.add(kept, m, span)
	}
	count := len(f.lines)
	for _, line := range []string{``, "\n", "\r\n", " \t\n", "\xef\xbb\xbf{}\n", `[]`, `7`, `null`, `{"message":{"a":"said"}}`, `{"a":"said"}`, `{"id":"m", "n": [1, 2, {"createdAt":"2026-01-01"}]}` + "\n"} {
		f.add(line, m, span)
	}
	f.add("{}\r\r\n", nil)
	blocks, whole := f.blocks()
	var got, want []string
	for i := range whole {
		got = append(got, fmt.Sprintf("%.40q", whole[i]))
	}
	for _, line := range f.lines[:count] {
		want = append(want, fmt.Sprintf("%.40q", line))
	}
	require.Equal(t, want, got)
	f.check(t, blocks, whole)
	empty, _ := (&file{}).blocks()
	b, err := manifest.Read(empty[0])
	require.NoError(t, err)
	require.Zero(t, b.Lines())
}

// A large block ends before it exceeds its size.
func TestFullBlocks(t *testing.T) {
	f := &file{session: "s"}
	for i := range 3000 {
		f.add(fmt.Sprintf(`{"is%dId":"%s"}`, i, strings.Repeat(string(rune('a'+i%26)), 255))+strings.Repeat(" ", 3000), nil)
	}
	blocks, whole := f.blocks()
	require.Empty(t, whole)
	require.Greater(t, len(blocks), 3)
	f.check(t, blocks, nil)
}

func TestGolden(t *testing.T) {
	f := session("s", 12)
	f.add(`{"id":"m","n":1.5,"parentId":"10000000-0000-4000-8000-000000000000"}`, &manifest.Message{ID: "m", Body: []byte("text")}, structure.SpanRef{Run: structure.RunID{3}, Seq: 300})
	f.add("broken", nil)
	blocks, whole := f.blocks()
	d, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer d.Close()
	got, err := d.DecodeAll(blocks[0], nil)
	require.NoError(t, err)
	path := filepath.Join("testdata", "block.golden")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(hex.Dump(got)), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), hex.Dump(got))
	f.check(t, blocks, whole)
}

// Any file comes back, whatever its lines and messages are.
func TestAnyFile(t *testing.T) {
	word := rapid.SampledFrom([]string{"10000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-00000000000A", "2026-01-02T03:04:05.007Z", "1969-01-02T03:04:05.000Z", "a", "id", "uuid", "type", "text", "s", "2026-01-02T03:04:05.006Z", "said by somebody", "é\u2028\"", ""})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			switch kind := rapid.IntRange(0, 6).Draw(t, "kind"); {
			case kind < 3 || depth == 0:
				return word.Draw(t, "text")
			case kind == 3:
				return rapid.Float64Range(-1e6, 1e6).Draw(t, "number")
			case kind == 4:
				return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "literal")
			case kind == 5:
				return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list")
			}
			return rapid.MapOfN(word, value(depth-1), 0, 4).Draw(t, "object")
		})
	}
	encode := func(v any) []byte {
		b, _ := json.Marshal(v)
		return b
	}
	rapid.Check(t, func(t *rapid.T) {
		f := &file{session: word.Draw(t, "session")}
		for i := range rapid.IntRange(0, 40).Draw(t, "lines") {
			raw := encode(value(3).Draw(t, "line"))
			var m *manifest.Message
			var spans []structure.SpanRef
			if rapid.Bool().Draw(t, "has a message") {
				m = &manifest.Message{ID: word.Draw(t, "id"), Metadata: encode(value(2).Draw(t, "metadata")), Body: []byte(word.Draw(t, "body"))}
				var members map[string]json.RawMessage
				if json.Unmarshal(raw, &members) == nil && rapid.Bool().Draw(t, "is a member") {
					for _, one := range members {
						m.Body = one
					}
				}
				if rapid.Bool().Draw(t, "has a time") {
					m.Created = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
				}
				spans = []structure.SpanRef{{Run: structure.RunID{byte(rapid.IntRange(1, 3).Draw(t, "run"))}, Seq: uint64(i + 1)}, {Seq: 7}}[:rapid.IntRange(1, 2).Draw(t, "spans")]
			}
			end := rapid.SampledFrom([]string{"\n", "\r\n", "", " \n"}).Draw(t, "end")
			f.add(string(raw)+end, m, spans...)
		}
		blocks, whole := f.blocks()
		f.check(t, blocks, whole)
	})
}

func FuzzAdd(f *testing.F) {
	f.Add([]byte(`{"uuid":"m","message":{"a":"said"}}`+"\n"), []byte(`{"a":"said"}`), []byte(`{"cwd":"/x"}`), "m", "s")
	f.Fuzz(func(t *testing.T, line, body, metadata []byte, id, session string) {
		made := &file{session: session}
		made.add(string(line), &manifest.Message{ID: id, Body: body, Metadata: metadata}, structure.SpanRef{Seq: 1})
		made.add(string(line), &manifest.Message{ID: id, Body: body, Metadata: metadata}, structure.SpanRef{Seq: 2})
		blocks, whole := made.blocks()
		made.check(t, blocks, whole)
	})
}

func FuzzRead(f *testing.F) {
	blocks, _ := session("s", 20).blocks()
	f.Add(blocks[0])
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := manifest.Read(raw)
		if err != nil {
			require.ErrorIs(t, err, manifest.ErrMalformed)
			return
		}
		for line := range b.Join("s", func(structure.SpanRef) (*manifest.Message, error) {
			return &manifest.Message{ID: "m", Body: []byte("{}")}, nil
		}, func() ([]byte, error) { return nil, nil }) {
			_ = line
		}
	})
}

// That a line is known to be JSON changes nothing but the time: not what is kept whole, and not the block. Space that JSON does not have is
// not taken for JSON.
func TestKnownToBeJSON(t *testing.T) {
	for _, line := range []string{
		`{"uuid":"a","n":1}`, ` {"uuid":"a"} `, "\v{\"uuid\":\"a\"}", "{\"uuid\":\"a\"}\u00a0", "\ufeff{\"uuid\":\"a\"}", "\ufeff {\"uuid\":\"a\"}", " \ufeff{\"uuid\":\"a\"}",
		`{"text":"what somebody said"}`, `[1]`, `7`,
	} {
		f := &file{session: "s"}
		f.add(line+"\n", nil)
		blocks, whole := f.blocks()
		f.check(t, blocks, whole)
		b := manifest.NewBuilder("s")
		w := b.Add([]byte(line+"\n"), nil, nil, false)
		require.Equal(t, w != nil, len(whole) == 1, "%q", line)
		require.Equal(t, b.Block(), blocks[0], "%q", line)
	}
}
