package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/serving"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/lineage/records"
)

func TestMain(m *testing.M) {
	app.Grace, serving.UpdateFor, derivedfile.Patience = time.Hour, time.Hour, time.Hour // the machine may be slow
	testscript.Main(m, map[string]func(){"lineage": main, "obstinate": obstinate})
}

// allRecords has one of each kind of record.
func allRecords() []records.Record {
	return []records.Record{
		&records.Serving{}, &records.Token{}, &records.AgentEntry{}, &records.LoginEntry{},
		&records.Error{}, &records.Warning{}, &records.Init{}, &records.Info{}, &records.Thread{}, &records.Deleted{}, &records.Message{}, &records.Context{},
		&records.Moved{}, &records.Appended{}, &records.Sent{}, &records.Alternative{}, &records.Branch{}, &records.Move{}, &records.Value{},
		&records.Checkpoint{}, &records.Merged{}, &records.Diff{}, &records.DocumentDiff{}, &records.DiffSummary{}, &records.CommonPrefix{}, &records.Part{},
		&records.Resolved{}, &records.Summary{}, &records.Content{}, &records.Finding{}, &records.Verified{}, &records.Repaired{}, &records.Salvaged{}, &records.Loss{},
		&records.Stats{}, &records.Erased{}, &records.Event{}, &records.Version{}, &records.Completion{}, &records.Node{}, &records.Imported{},
		&records.Hit{}, &records.Bundled{}, &records.Unbundled{}, &records.Inventory{},
		&records.Exported{}, &records.Packed{}, &records.Collected{}, &records.Copied{}, &records.StoreCopied{}, &records.Projected{}, &records.Compared{}, &records.Difference{},
		&records.Followed{}, &records.Agent{}, &records.Usage{}, &records.Resumed{},
	}
}

func TestAllRecordsAreListed(t *testing.T) {
	listed := make(map[string]bool)
	for _, r := range allRecords() {
		listed[reflect.TypeOf(r).Elem().Name()] = true
	}
	names, err := filepath.Glob("../../lineage/records/*.go")
	require.NoError(t, err)
	declared := 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && f.Name.Name == "RecordType" && f.Recv != nil && f.Body != nil {
				declared++
				name := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
				require.True(t, listed[name], "%s is not among allRecords", name)
			}
			return true
		})
	}
	require.Equal(t, len(listed), declared)
}

func scriptParams(dir string) testscript.Params {
	return testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"} {
				e.Setenv(name, "") // the folders of agents are those below the home directory
			}
			e.Setenv("LINEAGE_STORE", "")
			e.Setenv("LINEAGE_THREAD", "")
			e.Setenv("OPENAI_BASE_URL", "")
			e.Setenv("TZ", "UTC")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"capture": capture, "records": checkRecords, "code": checkCode, "damage": damage, "sqlite": runSQL,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	}
}

func TestScripts(t *testing.T) { testscript.Run(t, scriptParams("testdata/script")) }

// sqlite FILE SCRIPT runs a script on a SQLite file, as another program would.
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sqlite FILE SCRIPT")
	}
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.Exec(args[1])
	ts.Check(errors.Join(err, db.Close()))
}

// capture NAME [KEY] sets a variable to what the last command printed, or to a field
// of the first record that has it.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: capture NAME [KEY]")
	}
	out := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) == 1 {
		ts.Setenv(args[0], out)
		return
	}
	for line := range strings.Lines(out) {
		var fields map[string]any
		ts.Check(json.Unmarshal([]byte(line), &fields))
		if value, ok := fields[args[1]]; ok {
			ts.Setenv(args[0], fmt.Sprint(value))
			return
		}
	}
	ts.Fatalf("no record has %q", args[1])
}

// records TYPE… checks that the last command printed records of these types, each with
// the fields that its type has and no others. TYPE* is any number of them, and a
// leading "stderr" looks there.
func checkRecords(ts *testscript.TestScript, neg bool, want []string) {
	from := "stdout"
	if len(want) > 0 && want[0] == "stderr" {
		from, want = want[0], want[1:]
	}
	types := make(map[string]reflect.Type)
	for _, r := range allRecords() {
		types[r.RecordType()] = reflect.TypeOf(r).Elem()
	}
	var got []string
	for line := range strings.Lines(ts.ReadFile(from)) {
		var head struct {
			Type string `json:"type"`
		}
		ts.Check(json.Unmarshal([]byte(line), &head))
		known, ok := types[head.Type]
		if !ok {
			ts.Fatalf("unknown type of record: %s", line)
		}
		body := strings.Replace(line, `"type":"`+head.Type+`",`, "", 1)
		d := json.NewDecoder(strings.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(reflect.New(known).Interface()); err != nil {
			ts.Fatalf("%v in %s", err, line)
		}
		got = append(got, head.Type)
	}
	i := 0
	for _, w := range want {
		if many, ok := strings.CutSuffix(w, "*"); ok {
			for i < len(got) && got[i] == many {
				i++
			}
			continue
		}
		if i == len(got) || got[i] != w {
			ts.Fatalf("records are %v, not %v", got, want)
		}
		i++
	}
	if i != len(got) || neg {
		ts.Fatalf("records are %v, not %v", got, want)
	}
}

// code N COMMAND… runs a command that has to exit with the code N.
func checkCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	script := `"$@"; code=$?; if [ $code -ne ` + strconv.Itoa(want) + ` ]; then echo "exit code is $code" >&2; exit 99; fi`
	if err := ts.Exec("sh", append([]string{"-c", script, "sh"}, args[1:]...)...); err != nil {
		ts.Fatalf("exit code is not %d", want)
	}
}

// damage FILE flips a bit in the middle of a file.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	at := len(b) / 2
	if len(args) > 1 {
		if at = bytes.Index(b, []byte(args[1])); at < 0 {
			ts.Fatalf("%q is not in %s", args[1], args[0])
		}
	}
	b[at] ^= 1
	ts.Check(os.WriteFile(path, b, 0o600))
}

// exampleStore makes the small store that examples are run on.
func exampleStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), app.StoreDir)
	for _, line := range [][]string{
		{"init", dir},
		{"thread", "create", "--title", "Lisbon", "--id", "lisbon", "--user", "ada"},
		{"append", "Plan a weekend in Lisbon."},
		{"append", "Friday in Alfama, Saturday in Belém.", "--role", "assistant", "--model", "large-2"},
		{"checkpoint", "start"},
		{"branch", "cheap"},
		{"append", "cheap", "Make it cheaper."},
		{"append", "cheap", "Walk, and take the 28.", "--role", "assistant", "--model", "small-1"},
		{"append", "And where do we eat?"},
		{"append", "Pastéis in Belém, fish in Graça.", "--role", "assistant", "--model", "large-2"},
	} {
		got := runLine(t.Context(), append(line, "--store", dir)...)
		require.Equal(t, 0, got.code, "%v: %s", line, got.err)
	}
	return dir
}

// aSession is a session file.
const aSession = `{"parentUuid":null,"type":"user","uuid":"u1","sessionId":"s1","cwd":"/trip","timestamp":"2026-01-05T10:00:01.000Z","message":{"role":"user","content":"Plan the migration to postgres."}}
`

// Every command's examples are run on the same small store, and only in full runs, because TestScripts runs
// every command.
func TestExamples(t *testing.T) {
	campaign.Long(t)
	store, dir := exampleStore(t), t.TempDir()
	for _, c := range allCommands(app.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, os.Getenv)) {
		require.NotEmpty(t, c.Example, "%s has no example", c.CommandPath())
		var script strings.Builder
		if c.Name() == "init" || !c.HasParent() {
			script.WriteString("rm .lineage\n") // these begin with nothing
		}
		if c.Name() == "export" {
			script.WriteString("exec lineage follow --once\n") // it writes session files, too
		}
		for _, line := range strings.Split(strings.TrimSpace(c.Example), "\n") {
			if c.CommandPath() == "lineage token delete" { // ids are random
				line = strings.Replace(line, "3f9ac2d1", `$(lineage token create --name ci --json | sed "s/.*\"id\":\"//; s/\".*//")`, 1)
			}
			fmt.Fprintf(&script, "exec sh -c '%s'\n", strings.ReplaceAll(strings.TrimSpace(line), "'", "''"))
		}
		script.WriteString("-- chats.jsonl --\n" +
			`{"messages":[{"role":"user","content":"And Porto?"},{"role":"assistant","content":"By train."}]}` + "\n" +
			"-- home/.claude/projects/-trip/lisbon.jsonl --\n" + aSession)
		name := strings.ReplaceAll(c.CommandPath(), " ", "_") + ".txtar"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script.String()), 0o600))
	}
	params := scriptParams(dir)
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		return errors.Join(setup(e), os.CopyFS(filepath.Join(e.WorkDir, app.StoreDir), os.DirFS(store)))
	}
	testscript.Run(t, params)
}

func TestExitCodesAreDocumentedOnce(t *testing.T) {
	var codes []int
	for _, c := range app.ExitCodes() {
		codes = append(codes, c.Code)
	}
	require.True(t, slices.IsSorted(codes))
	require.Equal(t, len(codes), len(slices.Compact(slices.Clone(codes))))
}

// The demonstration works, and leaves alone what is not its own.
func TestDemo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the demonstration is a shell script")
	}
	campaign.Long(t)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	bench := filepath.Join(t.TempDir(), "lineage-bench")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bench, "./cmd/lineage-bench")
	build.Dir = filepath.Join(root, "bench")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	script := "env DEMO=$WORK/demo LINEAGE=lineage LINEAGE_BENCH=" + bench + " DEMO_ROUNDS=3 DEMO_LENGTH=10\n" +
		"exec bash " + root + "/scripts/demo.sh\n" +
		"stdout '1,167'\nstdout 'subagent [0-9a-f]{8}'\nstdout 'added 2 messages of clearer to mine'\nstdout '^    .*[Ss]ymbolic link'\n! stdout 'mark>'\n" +
		"! stdout '^[^ /\\n][^/\\n]{100}'\n! stdout '^    [A-Za-z.][^/\\n]{96}'\nstdout 'every byte is what was written'\nstdout '10 +sqlite'\nstdout 'read 9 sessions'\nstdout 'pi --session'\nstdout 'the page answers'\n! stderr .\n" +
		"env DEMO=$WORK\n! exec bash " + root + "/scripts/demo.sh\nstderr 'is there and is no demonstration'\nexists demo\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "demo.txtar"), []byte(script), 0o600))
	testscript.Run(t, scriptParams(dir))
}

// The commands that the README shows work one after the other, and the search finds what was said before.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	var script strings.Builder
	script.WriteString("cd home\n")
	commands := 0
	for line := range strings.Lines(string(readme)) {
		line, shown := strings.CutPrefix(line, "$ lineage ")
		if !shown {
			continue
		}
		line, _, _ = strings.Cut(line, " # ")
		switch line = strings.TrimSpace(line); line {
		case "follow":
			line = "follow --once"
		case "serve --follow --open":
			line = "serve --follow --idle 100ms --listen 127.0.0.1:0"
		case "init":
			script.WriteString("cd ..\n")
		}
		fmt.Fprintf(&script, "exec sh -c 'lineage %s'\n", strings.ReplaceAll(strings.TrimSpace(line), "'", "''"))
		switch {
		case strings.HasPrefix(line, "search 'migration"):
			script.WriteString("stdout 'Plan the migration to postgres'\n")
		case strings.HasPrefix(line, "search"):
			script.WriteString("stdout 'Plan a weekend in Lisbon'\nstdout 'Lisbon \\([0-9a-f]{8}\\)$'\n")
		}
		commands++
	}
	require.Greater(t, commands, 5)
	script.WriteString("-- home/.claude/projects/-trip/s1.jsonl --\n" + aSession)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readme.txtar"), []byte(script.String()), 0o600))
	params := scriptParams(dir)
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		demo := filepath.Join("testdata", "demo")
		return errors.Join(setup(e), os.CopyFS(filepath.Join(e.WorkDir, demo), os.DirFS(filepath.Join("..", "..", demo))))
	}
	testscript.Run(t, params)
}
