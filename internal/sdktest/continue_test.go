package sdktest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/lineage/message"
)

var bg = context.Background()

func open(t *testing.T) *lineage.Store {
	s, err := lineage.Open(bg, t.TempDir(), lineage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// archives returns the archives of the tests of imports.
func archives(t *testing.T) []string {
	var files []string
	root := filepath.Join("..", "..", "lineage", "archive", "testdata")
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "golden" {
			return filepath.SkipDir
		}
		if d.Name() == "prompt-logs" { // a format of folders
			files = append(files, path)
			return filepath.SkipDir
		}
		if !d.IsDir() && d.Name() != "LICENSE" && d.Name() != "README.md" {
			files = append(files, path)
		}
		return nil
	}))
	require.NotEmpty(t, files)
	return files
}

// spoken checks that every API accepts what a conversation is resolved to, and returns how
// many calls of tools with a result that has.
func spoken(t *testing.T, e *engine.Engine) int {
	r, err := e.Resolve(bg, engine.ResolveOptions{})
	require.NoError(t, err)
	for _, to := range apis {
		out, err := r.Encode(to)
		require.NoError(t, err)
		check(t, to, out.Items, e.ChatID())
	}
	calls := 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if _, ok := p.Tool(); ok && len(p.Output) > 0 {
				calls++
			}
		}
	}
	return calls
}

// A conversation of any archive is continued, exported, imported and continued again, with
// every API. The API of each format accepts the export.
func TestImportedConversationsGoOn(t *testing.T) {
	calls := make(map[string]int)
	for _, file := range archives(t) {
		s := open(t)
		_, err := importer.Import(bg, s, archive.Path(file), importer.Options{UserID: "ada"})
		if errors.Is(err, archive.ErrUnknownFormat) && strings.Contains(filepath.ToSlash(file), "/agents/") {
			continue // a file beside a session
		}
		require.NoError(t, err, file)
		format := strings.Split(filepath.ToSlash(file), "/")[5]
		calls[format] += goOn(t, s, "and now?")

		for format, to := range map[export.Format]message.Dialect{
			export.OpenAI: message.OpenAI, export.Responses: message.Responses, export.Anthropic: message.Anthropic,
		} {
			var lines bytes.Buffer
			require.NoError(t, export.Write(bg, s, &lines, format, export.Options{}))
			for line := range bytes.Lines(lines.Bytes()) {
				var request struct{ Messages, Input []json.RawMessage }
				require.NoError(t, json.Unmarshal(line, &request))
				check(t, to, append(request.Messages, request.Input...), file)
			}
		}
		var written bytes.Buffer
		require.NoError(t, export.Write(bg, s, &written, export.OpenAI, export.Options{}))
		if written.Len() == 0 {
			continue
		}
		again := open(t)
		report, err := importer.Import(bg, again, archive.Stream("", &written), importer.Options{Format: "openai", UserID: "ada"})
		require.NoError(t, err, file)
		require.Empty(t, report.Skipped, file)
		calls[format] += goOn(t, again, "and then?")
	}
	for _, format := range []string{"claude-code-log", "claude-code-made", "claude-made", "codex-made", "sharegpt", "openai", "tau-bench", "swe-agent"} {
		require.NotZero(t, calls[format], "%s: %v", format, calls)
	}
}

// goOn continues every conversation of a store.
func goOn(t *testing.T, s *lineage.Store, text string) (calls int) {
	chats := chat.On(s)
	var threads []lineage.ThreadInfo
	for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info, err := thread.Info(bg)
		require.NoError(t, err)
		threads = append(threads, info)
	}
	for _, info := range threads {
		id := info.SourceID
		if id == "" {
			id = info.ID.String()
		}
		e, err := engine.Open(bg, chats, engine.Options{ChatID: id, UserID: cmp.Or(info.UserID, "ada")})
		require.NoError(t, err)
		require.NoError(t, e.Set(engine.User(text)))
		calls += spoken(t, e)
		_, err = e.Save(bg)
		require.NoError(t, err)
		spoken(t, e)
		r, err := e.Resolve(bg, engine.ResolveOptions{})
		require.NoError(t, err)
		require.Equal(t, text, r.Messages[len(r.Messages)-1].Text())
	}
	return calls
}
