package importer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// antigravityStep returns a line of a session of Antigravity, as the program writes it.
func antigravityStep(step int, kind, more string) string {
	source := map[string]string{"USER_INPUT": "USER_EXPLICIT", "CHECKPOINT": "SYSTEM"}[kind]
	if source == "" {
		source = "MODEL"
	}
	return fmt.Sprintf(`{"step_index":%d,"source":%q,"type":%q,"status":"DONE","created_at":"2026-08-04T08:49:05Z"%s}`, step, source, kind, more) + "\n"
}

const antigravityFile = "brain/82084ec2-09ba-42bd-8aef-93492f96a3f9/.system_generated/logs/transcript_full.jsonl"

// Antigravity writes a call after its result if the tool was faster. Steps are put in order, those of missing numbers and
// those that come again stay where they are.
func TestStepsOfAntigravity(t *testing.T) {
	call := `,"tool_calls":[{"name":"run_command","args":{"CommandLine":"ls","Cwd":"/p"}}]`
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"in order": {[]string{antigravityStep(0, "USER_INPUT", ""), antigravityStep(1, "PLANNER_RESPONSE", call), antigravityStep(2, "RUN_COMMAND", "")}, "step 0 step 1 step 2"},
		"a late call": {
			[]string{antigravityStep(0, "USER_INPUT", ""), antigravityStep(2, "RUN_COMMAND", ""), antigravityStep(1, "PLANNER_RESPONSE", call), antigravityStep(3, "PLANNER_RESPONSE", "")},
			"step 0 step 1 step 2 step 3",
		},
		"a late call, after a checkpoint": {
			[]string{antigravityStep(0, "USER_INPUT", ""), antigravityStep(3, "RUN_COMMAND", ""), antigravityStep(1, "CHECKPOINT", ""), antigravityStep(2, "PLANNER_RESPONSE", call)},
			"step 0 step 2 step 3",
		},
		"a gap":   {[]string{antigravityStep(0, "USER_INPUT", ""), antigravityStep(5, "PLANNER_RESPONSE", ""), antigravityStep(9, "USER_INPUT", "")}, "step 0 step 5 step 9"},
		"again":   {[]string{antigravityStep(7, "USER_INPUT", ""), antigravityStep(8, "PLANNER_RESPONSE", ""), antigravityStep(1, "USER_INPUT", ""), antigravityStep(2, "PLANNER_RESPONSE", "")}, "step 7 step 8 step 1 step 2"},
		"first":   {[]string{antigravityStep(1, "PLANNER_RESPONSE", ""), antigravityStep(0, "USER_INPUT", "")}, "step 1 step 0"},
		"too far": {[]string{antigravityStep(0, "USER_INPUT", ""), antigravityStep(2, "A", ""), antigravityStep(3, "A", ""), antigravityStep(4, "A", ""), antigravityStep(5, "A", ""), antigravityStep(6, "A", ""), antigravityStep(1, "A", "")}, "step 0 step 2 step 3 step 4 step 5 step 6 step 1"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s := storetest.New(t)
			for range 2 { // again, nothing is new
				_, err := importer.Import(ctx, s, archive.Stream(antigravityFile, strings.NewReader(strings.Join(test.lines, ""))), importer.Options{})
				require.NoError(t, err)
				thread, err := s.FindThread(ctx, "82084ec2-09ba-42bd-8aef-93492f96a3f9")
				require.NoError(t, err)
				require.Contains(t, idsOf(t, thread), test.want)
				branches, err := thread.Branches(ctx)
				require.NoError(t, err)
				require.Len(t, branches, 1)
			}
		})
	}
}

// transcript.jsonl, the shortened form of a session, has arguments as JSON in strings. The project is without the quotes.
func TestShortenedSessionOfAntigravity(t *testing.T) {
	s := storetest.New(t)
	_, err := importer.Import(context.Background(), s, archive.Stream(antigravityFile, strings.NewReader(antigravityStep(0, "USER_INPUT", `,"content":"a"`)+
		antigravityStep(1, "PLANNER_RESPONSE", `,"tool_calls":[{"name":"run_command","args":{"CommandLine":"\"ls\"","Cwd":"\"/p\""}}]`))), importer.Options{})
	require.NoError(t, err)
	thread, err := s.FindThread(context.Background(), "82084ec2-09ba-42bd-8aef-93492f96a3f9")
	require.NoError(t, err)
	info, err := thread.Info(context.Background())
	require.NoError(t, err)
	require.Contains(t, string(info.Metadata), `"cwd":"/p"`)
}

// The model is what the user has selected last, the project where the first command ran.
func TestModelOfAntigravity(t *testing.T) {
	ctx := context.Background()
	selects := func(from, to string) string {
		return fmt.Sprintf(`,"content":"<USER_REQUEST>\ngo to `+"`Model Selection` from A to B.\\n</USER_REQUEST>\\n<USER_SETTINGS_CHANGE>\\nThe user changed setting `Model Selection` from %s to %s. No need to comment.\\n</USER_SETTINGS_CHANGE>"+`"`, from, to)
	}
	s := storetest.New(t)
	_, err := importer.Import(ctx, s, archive.Stream(antigravityFile, strings.NewReader(
		antigravityStep(0, "USER_INPUT", selects("None", "Gemini 3.6 Flash (Medium)"))+antigravityStep(1, "PLANNER_RESPONSE", `,"content":"a"`)+
			antigravityStep(2, "USER_INPUT", `,"content":"<USER_REQUEST>\n`+"`Model Selection` from A to B."+`\n</USER_REQUEST>"`)+antigravityStep(3, "PLANNER_RESPONSE", `,"tool_calls":[{"name":"run_command","args":{"Cwd":"/p"}}]`)+
			antigravityStep(4, "USER_INPUT", selects("Gemini 3.6 Flash (Medium)", "Claude Opus 4.6"))+antigravityStep(5, "PLANNER_RESPONSE", `,"tool_calls":[{"name":"run_command","args":{"Cwd":"/q"}}]`))), importer.Options{})
	require.NoError(t, err)
	thread, err := s.FindThread(ctx, "82084ec2-09ba-42bd-8aef-93492f96a3f9")
	require.NoError(t, err)
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.Contains(t, string(info.Metadata), `"model":"Claude Opus 4.6","cwd":"/p"`)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	var models []string
	for e, err := range main.Entries(ctx, lineage.Window{}) {
		require.NoError(t, err)
		models = append(models, e.Origin.ModelID)
	}
	require.Equal(t, []string{"", "Gemini 3.6 Flash (Medium)", "", "Gemini 3.6 Flash (Medium)", "", "Claude Opus 4.6"}, models)
}
