package export_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// lists are the formats of APIs: the dialect of each, and the member of a line with its messages.
var lists = map[export.Format]struct {
	dialect message.Dialect
	member  string
}{
	export.OpenAI:    {message.OpenAI, "messages"},
	export.Responses: {message.Responses, "input"},
	export.Anthropic: {message.Anthropic, "messages"},
}

// requireAccepted checks that the API of each format accepts every line of an export.
func requireAccepted(t require.TestingT, s *lineage.Store, written func(export.Format) string) {
	for format, one := range lists {
		for line := range strings.Lines(written(format)) {
			var fields map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
			var items []json.RawMessage
			require.NoError(t, json.Unmarshal(fields[one.member], &items), line)
			require.NoError(t, messagetest.Check(one.dialect, items), "%s: %s", format, line)
		}
	}
}

// samples returns the archives of the tests of imports, and those of the demonstration.
func samples(t *testing.T) []string {
	paths, err := filepath.Glob("../testdata/*")
	require.NoError(t, err)
	demo, err := filepath.Glob("../../../testdata/demo/*.gz")
	require.NoError(t, err)
	require.NotEmpty(t, demo)
	return append(paths, demo...)
}

// The API of a format accepts the export of an archive of any format.
func TestArchivesAreAccepted(t *testing.T) {
	for _, path := range samples(t) {
		if filepath.Base(path) == "golden" {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := storetest.NewTicking(t)
			_, err := importer.Import(bg, s, archive.Path(path), importer.Options{})
			require.NoError(t, err)
			requireAccepted(t, s, func(f export.Format) string { return written(t, s, f, export.Options{}) })
		})
	}
}

// The API of a format accepts the export of any messages.
func TestAnyHistoryIsAccepted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.NewTicking(t)
		_, main := newThread(t, s, prompt(rapid.SampledFrom([]string{"", "Be brief.", " ", "\xff"}).Draw(rt, "prompt")))
		var items []lineage.Item
		for _, body := range messagetest.Wild(rt) {
			item := lineage.Item{Role: body.Role, Type: body.Type, Body: []byte(body.Bytes), Name: rapid.SampledFrom([]string{"", "", "ada", "b \"c\""}).Draw(rt, "name")}
			if item.Role == "" {
				item.Role = "user"
			}
			items = append(items, item)
		}
		_, err := main.Extend(bg, items...)
		require.NoError(rt, err)
		requireAccepted(rt, s, func(f export.Format) string { return written(t, s, f, export.Options{}) })
	})
}

// A turn of ShareGPT has one of its roles, and the results of calls follow the calls.
func TestTurnsOfShareGPT(t *testing.T) {
	for _, path := range samples(t) {
		if filepath.Base(path) == "golden" {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := storetest.NewTicking(t)
			_, err := importer.Import(bg, s, archive.Path(path), importer.Options{})
			require.NoError(t, err)
			var all []struct {
				Conversations []struct{ From, Value string }
			}
			require.NoError(t, json.Unmarshal([]byte(written(t, s, export.ShareGPT, export.Options{})), &all))
			for _, c := range all {
				open := 0
				for i, turn := range c.Conversations {
					require.Contains(t, []string{"system", "human", "gpt", "function_call", "observation"}, turn.From)
					type call struct {
						Name      string
						Arguments json.RawMessage
					}
					switch turn.From {
					case "function_call":
						var calls []call
						if json.Unmarshal([]byte(turn.Value), &calls) != nil {
							calls = make([]call, 1)
							require.NoError(t, json.Unmarshal([]byte(turn.Value), &calls[0]))
						}
						open = len(calls)
						require.NotEmpty(t, calls[0].Name)
						require.NotEmpty(t, calls[0].Arguments)
					case "observation":
						require.NotZero(t, open, i)
						open--
					default:
						require.Zero(t, open, i)
					}
				}
			}
		})
	}
}

// What a format cannot express is reported with its place.
func TestLossesAreReported(t *testing.T) {
	s, thread := sample(t)
	for format, want := range map[export.Format][]lineage.Loss{
		export.OpenAI:    {{Position: 4, Reason: "a call without a result: written as text"}, {Position: 6, Reason: "no place for reasoning that is not its own: left out"}},
		export.Anthropic: {{Position: 10, Reason: "no place for image/svg+xml there: written as text"}, {Reason: "the list of tools is in another format: left out"}},
		export.Responses: {{Position: 6, Reason: "no place for reasoning that is not its own: left out"}},
		export.ShareGPT:  {{Reason: "no place for image/png: written as text"}},
	} {
		var lost []export.Loss
		written(t, s, format, export.Options{Lost: func(l export.Loss) { lost = append(lost, l) }})
		for _, l := range want {
			require.Contains(t, lost, export.Loss{Thread: thread.ID(), Loss: l}, format)
		}
	}
	for _, format := range []export.Format{export.OpenAI, export.ShareGPT} {
		written(t, s, format, export.Options{AsGiven: true, Lost: func(l export.Loss) { require.Fail(t, l.Reason) }})
	}
}

// Every part of every message of an archive is in a transcript once, with results in calls or by themselves.
func TestTranscriptsOfArchives(t *testing.T) {
	for _, path := range samples(t) {
		if filepath.Base(path) == "golden" {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := storetest.NewTicking(t)
			_, err := importer.Import(bg, s, archive.Path(path), importer.Options{})
			require.NoError(t, err)
			for c, err := range s.View().Contexts(bg, lineage.ThreadID{}, lineage.ContextID{}) {
				require.NoError(t, err)
				requireTranscribed(t, s, c.Tip)
			}
			for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
				require.NoError(t, err)
				for c, err := range thread.Thread.Contexts(bg) {
					require.NoError(t, err)
					tip, err := c.Tip(bg)
					require.NoError(t, err)
					requireTranscribed(t, s, tip)
				}
			}
		})
	}
}

func requireTranscribed(t *testing.T, s *lineage.Store, tip lineage.SpanRef) {
	t.Helper()
	want, got := make(map[string]int), make(map[string]int)
	for e, err := range s.History(bg, tip, lineage.Window{}) {
		require.NoError(t, err)
		body, err := s.Original(bg, e)
		require.NoError(t, err)
		if e.Kind != lineage.Message {
			want["file"]++
			continue
		}
		for _, m := range message.Decode(body, e.Type, e.Role) {
			for i := range m.Parts {
				p := &m.Parts[i]
				if p.Kind != message.TextKind && p.Kind != message.ReasoningKind && p.Name != "step-start" {
					want[p.Kind.String()]++
				} else if p.Kind == message.ReasoningKind && strings.TrimSpace(p.Text) != "" {
					want["thinking"]++
				}
			}
		}
	}
	for i, err := range s.Transcript(bg, tip, lineage.Window{}, transcript.Options{}) {
		require.NoError(t, err)
		switch i.Kind {
		case transcript.Call:
			got["call"]++
			if len(i.Call.Results) > 0 {
				got["result"] += len(i.Call.Results)
			}
		case transcript.Result, transcript.File, transcript.Data, transcript.Thinking:
			got[i.Kind.String()]++
		}
	}
	require.Equal(t, want, got)
}
