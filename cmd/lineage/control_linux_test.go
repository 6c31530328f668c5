package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// evil is text that takes over a terminal that it reaches: escape sequences with a
// 7-bit and an 8-bit start, as a character and as a byte, the title, DEL, carriage
// return, and characters that reorder the line.
const evil = "evil\x1b[7m\x1b[31m\x1b]0;t\a\u009b7m\x9b7m\x7f\r\b\v\u0085\u202e\u2066\u200e\u200f\u061c\xff\xe2\x80"

// evilName is the same for the names of files.
const evilName = "evil\x1b7\u009b\x9b\x7f\r\u202e\xff"

// evilJSON is JSON that has such characters as they are.
const evilJSON = `{"evil` + "\u009b7m\x7f\u202e\u200f" + `":"` + "\u009b7m\u2066\x7f\x9b" + `"}`

// evilStore makes a store in which everything that can be chosen is evil, and returns
// its directory, in a folder that is evil too, and the ids that the commands are given.
func evilStore(t *testing.T, parent string) (dir string, ids map[string]string) {
	t.Helper()
	ctx := t.Context()
	dir = filepath.Join(parent, evilName)
	store, err := lineage.Open(ctx, dir, lineage.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	overrides := lineage.Overrides{Model: ptr("model " + evil), SystemPrompt: ptr("system " + evil), JSON: []byte(evilJSON)}
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{
		SourceID: "thread " + evil, UserID: "user " + evil, Title: "title " + evil, Metadata: []byte(evilJSON), Overrides: overrides,
	})
	require.NoError(t, err)
	_, err = store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "second " + evil, Title: "title " + evil})
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	origin := lineage.Origin{UserID: "user " + evil, ModelID: "model " + evil, SourceID: "source " + evil}
	spans, err := main.Extend(ctx,
		lineage.Item{Role: "user", Body: []byte("needle " + evil + "\nmore " + evil), SourceID: "message " + evil, Origin: origin, Metadata: []byte(evilJSON)},
		lineage.Item{Role: "assistant" + evil, Name: "name " + evil, Body: []byte(evilJSON), Type: content.TypeJSON, Origin: origin},
		lineage.Item{Role: "tool", Name: "tool" + evil, Body: []byte("needle " + evil), Type: "text/plain; " + evil},
		lineage.Item{Kind: lineage.Document, Document: "document " + evil, Revision: 1, Body: []byte(evil)},
		lineage.Item{Kind: lineage.Asset, Filename: "file " + evil, Body: []byte(evil), Type: "image/" + evil},
		lineage.Item{Role: "user", Body: []byte("last " + evil)},
	)
	require.NoError(t, err)
	branch, err := thread.CreateBranch(ctx, "branch "+evil, lineage.BranchOptions{At: spans[1], Overrides: overrides})
	require.NoError(t, err)
	_, err = branch.Extend(ctx, lineage.User("other "+evil))
	require.NoError(t, err)
	_, err = thread.SetCheckpoint(ctx, "checkpoint "+evil, lineage.CheckpointOptions{At: spans[2]})
	require.NoError(t, err)
	fork, err := main.Fork(ctx, lineage.ForkOptions{})
	require.NoError(t, err)
	_, err = main.Summarize(ctx, evilSummarizer{}, lineage.SummarizeOptions{Keep: 1})
	require.NoError(t, err)
	return dir, map[string]string{
		"MAIN": main.ID().String(), "BRANCH": branch.ID().String(), "FORK": fork.ID().String(), "FIRST": spans[0].String(),
	}
}

type evilSummarizer struct{}

func (evilSummarizer) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: "summary " + evil, Model: "model " + evil}, nil
}

func ptr(s string) *string { return &s }

// evilLines are lines for every command, by the path of the command. They are run one
// after another on a copy of the store of evilStore: a word in capitals is one of the
// ids, or a file in a folder whose name is evil.
var evilLines = map[string][]string{
	"lineage":                    {"", "--evil", "nonesuch-EVIL", "--store EVIL log"},
	"lineage init":               {"init DIR", "init STORE"},
	"lineage info":               {"info", "inspect"},
	"lineage thread":             {"thread", "thread nonesuch-EVIL"},
	"lineage thread create":      {"thread create --title EVIL --id EVIL --user EVIL --model EVIL --system EVIL", "thread create --id EVIL"},
	"lineage thread delete":      {"thread delete nonesuch-EVIL", "thread delete THREAD", "thread delete --user nonesuch-EVIL", "thread delete --user USER", "thread delete THREAD --yes", "thread delete --user USER --yes"},
	"lineage thread list":        {"thread list", "thread list --user USER", "thread list --title EVIL --source-prefix EVIL --metadata EVIL=EVIL", "thread list --metadata EVIL", "thread list --since EVIL", "thread list --after EVIL", "thread list --limit 1 --oldest"},
	"lineage thread set":         {"thread set --title EVIL --user EVIL", "thread set nonesuch-EVIL", "thread set --metadata EVIL"},
	"lineage thread show":        {"thread show", "thread show THREAD", "thread show EVIL"},
	"lineage thread use":         {"thread use THREAD", "thread use TITLE"},
	"lineage import":             {"import ARCHIVE --user EVIL", "import FOLDER", "import nonesuch-EVIL", "import DIR --format EVIL", "import sqlite:EVIL"},
	"lineage follow install":     {"follow install EVIL", "follow install --store EVIL", "follow install --write --store EVIL"},
	"lineage follow":             {"follow --list --from FOLDER", "follow --once --from FOLDER", "follow --once --json --from FOLDER --not-project EVIL", "follow --agent EVIL"},
	"lineage resume":             {"resume --agent codex", "resume --agent pi --dry-run", "resume --agent claude-code --json", "resume --agent EVIL", "resume nonesuch-EVIL", "resume --agent pi --dir EVIL", "resume --agent pi --dir FOLDER"},
	"lineage export":             {"export", "export --format html", "export --format openai", "export --format sharegpt", "export --format responses", "export --format anthropic", "export --format openai --as-given", "export --format sharegpt --as-given", "export --all", "export --format EVIL", "export -o DIR.md"},
	"lineage bundle":             {"bundle", "bundle nonesuch-EVIL"},
	"lineage bundle create":      {"bundle create BUNDLE", "bundle create BUNDLE --against ARCHIVE", "bundle create BUNDLE nonesuch-EVIL"},
	"lineage bundle import":      {"bundle create BUNDLE", "bundle import BUNDLE", "bundle import ARCHIVE"},
	"lineage bundle inventory":   {"bundle inventory DIR"},
	"lineage log":                {"log", "log --oneline", "log BRANCH", "log --oneline --role EVIL", "log nonesuch-EVIL", "log --from EVIL"},
	"lineage show":               {"show", "show FIRST", "show :2", "show :4", "show :5", "show BRANCH", "show nonesuch-EVIL"},
	"lineage contexts":           {"contexts", "contexts THREAD", "contexts --alone", "contexts nonesuch-EVIL"},
	"lineage tree":               {"tree", "tree --full", "tree THREAD", "tree nonesuch-EVIL"},
	"lineage usage":              {"usage", "usage --by thread,branch,user,agent,project,model", "usage THREAD", "usage --csv --by user,branch", "usage nonesuch-EVIL", "usage --by EVIL", "usage --zone EVIL", "usage --prices nonesuch-EVIL", "usage --user EVIL --model EVIL"},
	"lineage cat":                {"cat :1", "cat :2", "cat :4", "cat :5", "cat nonesuch-EVIL"},
	"lineage document":           {"append --document EVIL -m EVIL", "document", "document nonesuch-EVIL"},
	"lineage document list":      {"append --document EVIL -m EVIL", "document list", "document list EVIL", "document list --context nonesuch-EVIL"},
	"lineage document show":      {"append --document EVIL -m EVIL", "document show nonesuch-EVIL", "document show EVIL EVIL", "document show EVIL 9"},
	"lineage document diff":      {"append --document EVIL -m EVIL", "append --document EVIL -m other-EVIL", "document diff EVIL 1", "document diff EVIL EVIL", "document diff EVIL 1 9"},
	"lineage diff":               {"diff MAIN BRANCH", "diff MAIN nonesuch-EVIL"},
	"lineage common-prefix":      {"common-prefix MAIN BRANCH", "common-prefix nonesuch-EVIL"},
	"lineage resolve":            {"resolve", "resolve --format xml", "resolve --format markdown", "resolve --format toml", "resolve --format toon", "resolve --format openai", "resolve --format responses", "resolve --format anthropic", "resolve --format EVIL", "resolve --budget 1000"},
	"lineage search":             {"search needle", "search nonesuch-EVIL", "search needle --role EVIL"},
	"lineage where":              {"where :1", "where nonesuch-EVIL"},
	"lineage provenance":         {"provenance :1", "provenance nonesuch-EVIL"},
	"lineage reflog":             {"rewind :1 --in-place", "reflog", "reflog nonesuch-EVIL"},
	"lineage watch":              {"watch --from 1 --follow=false"},
	"lineage serve":              {"serve --idle 1ms"},
	"lineage mcp":                {"mcp --write EVIL"},
	"lineage mcp install":        {"mcp install EVIL", "mcp install gemini --tools EVIL"},
	"lineage token":              {"token nonesuch-EVIL"},
	"lineage token create":       {"token create --name EVIL --user EVIL --project EVIL"},
	"lineage token list":         {"token create --name EVIL", "token list"},
	"lineage token delete":       {"token delete nonesuch-EVIL"},
	"lineage append":             {"append EVIL --role EVIL --name EVIL --model EVIL --id EVIL", "append EVIL --id EVIL", "append nonesuch-EVIL EVIL", "append --file nonesuch-EVIL", "append --jsonl ARCHIVE", "append --file ARCHIVE --asset EVIL --type text/EVIL"},
	"lineage edit":               {"edit :1 EVIL", "edit nonesuch-EVIL EVIL", "edit :1 EVIL --replay EVIL"},
	"lineage set":                {"set --model EVIL --system EVIL", "set --overrides EVIL"},
	"lineage value":              {"value set EVIL 1", "value", "value nonesuch-EVIL"},
	"lineage value list":         {"value set EVIL \"EVIL\"", "value list", "value list --user EVIL"},
	"lineage value get":          {"value set EVIL \"EVIL\"", "value get EVIL", "value get nonesuch-EVIL", "value get EVIL --context EVIL"},
	"lineage value set":          {"value set EVIL EVIL", "value set EVIL 1 --app EVIL"},
	"lineage value delete":       {"value set EVIL 1", "value delete EVIL", "value delete EVIL"},
	"lineage value history":      {"value set EVIL \"EVIL\"", "value history EVIL", "value history nonesuch-EVIL"},
	"lineage summarize":          {"summarize", "summarize --list", "summarize nonesuch-EVIL", "summarize --of EVIL", "summarize --model EVIL --url http://127.0.0.1:1/EVIL"},
	"lineage send":               {"send :1 BRANCH", "send nonesuch-EVIL BRANCH"},
	"lineage fork":               {"fork", "fork --branch EVIL", "fork --branch EVIL", "fork nonesuch-EVIL"},
	"lineage subagent":           {"subagent --task EVIL --model EVIL", "subagent nonesuch-EVIL"},
	"lineage return":             {"return FORK EVIL --name EVIL --role EVIL", "return nonesuch-EVIL"},
	"lineage alternatives":       {"alternatives --model EVIL --count 2", "alternatives", "alternatives nonesuch-EVIL", "alternatives --to @", "alternatives --to @ --retry --model EVIL"},
	"lineage choose":             {"choose nonesuch-EVIL", "choose BRANCH"},
	"lineage branch":             {"branch", "branch EVIL", "branch EVIL", "branch EVIL~1"},
	"lineage switch":             {"switch BRANCHNAME", "switch nonesuch-EVIL"},
	"lineage rename":             {"rename BRANCHNAME EVIL", "rename nonesuch-EVIL EVIL"},
	"lineage delete":             {"delete nonesuch-EVIL", "delete CHECKPOINT", "delete CHECKPOINT --yes", "delete BRANCHNAME --yes", "delete FORK --yes"},
	"lineage rewind":             {"rewind :1", "rewind nonesuch-EVIL"},
	"lineage aside":              {"aside", "aside nonesuch-EVIL"},
	"lineage checkpoint":         {"checkpoint", "checkpoint EVIL", "checkpoint"},
	"lineage restore-checkpoint": {"restore-checkpoint CHECKPOINT", "restore-checkpoint nonesuch-EVIL"},
	"lineage merge":              {"merge BRANCH", "merge nonesuch-EVIL", "merge BRANCH --strategy EVIL"},
	"lineage undo":               {"undo", "undo nonesuch-EVIL", "undo BRANCHNAME"},
	"lineage project":            {"project sqlite:DB", "project sqlite:DB --chats-only", "project sqlite:ARCHIVE", "project EVIL"},
	"lineage compare":            {"project sqlite:DB", "append EVIL", "compare sqlite:DB", "compare sqlite:nonesuch-EVIL"},
	"lineage stats":              {"stats"},
	"lineage verify":             {"verify", "verify --deep"},
	"lineage repair":             {"repair"},
	"lineage pack":               {"pack", "pack --dense"},
	"lineage gc":                 {"gc --dry-run", "gc", "gc --yes --keep-reflog 0"},
	"lineage erase":              {"erase :1", "erase :1 --yes", "erase nonesuch-EVIL"},
	"lineage backup":             {"backup DIR", "backup DIR", "backup STORE"},
	"lineage restore":            {"backup DIR", "restore DIR BUNDLE", "restore nonesuch-EVIL BUNDLE"},
	"lineage copy":               {"copy STORE DIR", "copy STORE BUNDLE", "copy nonesuch-EVIL DIR"},
	"lineage salvage":            {"salvage STORE DIR", "salvage nonesuch-EVIL DIR"},
	"lineage version":            {"version"},
	"lineage completion":         {"completion bash", "completion EVIL", "__complete log ", "__complete switch b", "__complete thread use ", "__complete --store STORE cat "},
	"database":                   {"project sqlite:DB", "--store sqlite:DB thread", "--store sqlite:DB log", "--store sqlite:DB log --oneline", "--store sqlite:DB tree", "--store sqlite:DB show", "--store sqlite:DB branch", "--store sqlite:DB checkpoint", "--store sqlite:DB search needle", "--store sqlite:DB thread show", "--store sqlite:DB show nonesuch-EVIL", "import sqlite:DB", "--store sqlite:DB delete BRANCHNAME --yes", "--store sqlite:DB append EVIL"},
	"lineage help":               {"help log", "help nonesuch-EVIL"},
}

// isRaw reports whether the output of a line in a pipe is content as it is.
func isRaw(line string) bool {
	return strings.HasPrefix(line, "cat ") || strings.HasPrefix(line, "export") || strings.HasPrefix(line, "resolve --format") || strings.HasPrefix(line, "value get")
}

// styles are the sequences that the program itself writes to a terminal.
var styles = func() *strings.Replacer {
	var pairs []string
	for _, code := range []string{"0", "1", "2", "31", "32", "33", "34", "35", "36"} {
		for _, bold := range []string{"", ";1"} {
			pairs = append(pairs, "\x1b["+code+bold+"m", "")
		}
	}
	return strings.NewReplacer(append(pairs, "\r\x1b[K", "")...)
}()

// requireSafe checks that text has no control character and is UTF-8.
func requireSafe(t *testing.T, text, what string) {
	t.Helper()
	require.NotContains(t, text, "evil\x1b[31m", what)
	require.True(t, utf8.ValidString(text), "%s: %q", what, text)
	for i, r := range text {
		if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r)) {
			t.Fatalf("%s: %q at %q", what, r, text[max(0, i-40):min(len(text), i+40)])
		}
	}
}

// Whatever is stored, named or typed, no command writes control characters to a terminal,
// in JSON or in errors.
func TestNoControlCharactersReachATerminal(t *testing.T) {
	ownHome(t)
	parent := t.TempDir()
	store, ids := evilStore(t, parent)
	lines := map[string][]string{"database": evilLines["database"]}
	for _, c := range allCommands(app.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, os.Getenv)) {
		require.NotEmpty(t, evilLines[c.CommandPath()], "%s has no lines to be run with", c.CommandPath())
		lines[c.CommandPath()] = evilLines[c.CommandPath()]
	}
	require.Len(t, evilLines, len(lines), "a command is gone")
	for path, lines := range lines {
		for _, mode := range []string{"terminal", "terminal json", "pipe", "pipe json"} {
			t.Run(path+" to a "+mode, func(t *testing.T) {
				folder := filepath.Join(t.TempDir(), evilName)
				copied := filepath.Join(folder, app.StoreDir)
				require.NoError(t, errors.Join(os.CopyFS(copied, os.DirFS(store)), os.Mkdir(filepath.Join(folder, "files"), 0o700),
					os.WriteFile(filepath.Join(folder, "files", "odd"+evilName), []byte("odd"), 0o600), os.WriteFile(filepath.Join(folder, "files", "c.jsonl"), evilArchive(t), 0o600)))
				archive := filepath.Join(folder, "archive"+evilName+".jsonl")
				require.NoError(t, os.WriteFile(archive, evilArchive(t), 0o600))
				names := map[string]string{
					"EVIL": evil, "STORE": copied, "DIR": filepath.Join(folder, "new"+evilName), "BUNDLE": filepath.Join(folder, "bundle"+evilName),
					"ARCHIVE": archive, "FOLDER": filepath.Join(folder, "files"), "DB": filepath.Join(folder, evilName+".db"), "THREAD": "thread " + evil, "TITLE": "title " + evil, "USER": "user " + evil,
					"BRANCHNAME": "branch " + evil, "CHECKPOINT": "checkpoint " + evil,
				}
				for _, line := range lines {
					args := evilArgs(line, names, ids)
					if strings.HasSuffix(mode, "json") {
						args = append(args, "--json")
					}
					runEvil(t, line, copied, args, strings.HasPrefix(mode, "terminal"))
				}
			})
		}
	}
}

// evilArgs returns the arguments that a line stands for.
func evilArgs(line string, names ...map[string]string) []string {
	var args []string
	for _, word := range strings.Split(line, " ") {
		best := ""
		for _, entries := range names {
			for name := range entries {
				if strings.Contains(word, name) && len(name) > len(best) {
					best = name
				}
			}
		}
		for _, entries := range names {
			if value, ok := entries[best]; ok {
				word = strings.ReplaceAll(word, best, value)
			}
		}
		args = append(args, word)
	}
	if line == "" {
		return nil
	}
	return args
}

func runEvil(t *testing.T, line, store string, args []string, terminal bool) {
	t.Helper()
	getenv := func(name string) string {
		return map[string]string{"LINEAGE_STORE": store, "LINEAGE_THREAD": "thread " + evil, "HOME": filepath.Dir(store)}[name]
	}
	if !terminal {
		var out, errOut bytes.Buffer
		execute(t.Context(), app.New(strings.NewReader(""), &out, &errOut, getenv), args)
		requireSafe(t, errOut.String(), line)
		if !isRaw(line) || args[len(args)-1] == "--json" {
			requireSafe(t, out.String(), line)
		}
		return
	}
	p := openPTY(t)
	execute(t.Context(), app.New(strings.NewReader(""), p.File, p.File, getenv), args)
	wrote := p.Close()
	requireSafe(t, styles.Replace(wrote), line)
}

// evilArchive returns an archive of conversations of which some cannot be read.
func evilArchive(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, content := range []any{"hello " + evil, 7, "more"} {
		line, err := json.Marshal(map[string]any{
			"id": "c " + evil, "messages": []any{map[string]any{"role": "user", "content": content}, map[string]any{"role": "x" + evil, "content": []any{map[string]any{"type": evil}}}},
		})
		require.NoError(t, err)
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteString(evil + "\n")
	return b.Bytes()
}
